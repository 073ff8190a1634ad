import { ConfigurationTarget, workspace } from 'vscode';
import { allExcluded } from './exclusion';

const SECTION = 'midspan';

/** Returns whether suggestions are on, in general or for a language. */
export function isOn(language?: string): boolean {
  const settings = workspace.getConfiguration(SECTION);
  const enabled = settings.get<boolean>('enabled', true);
  return language === undefined
    ? enabled
    : enabled && (settings.get<Record<string, boolean>>('languages')?.[language] ?? true);
}

/** Returns whether the next edit is to be offered. */
export function offersNextEdits(): boolean {
  return workspace.getConfiguration(SECTION).get<boolean>('nextEdits', true);
}

/** Returns whether a line is marked on which the gate held a suggestion back. */
export function marksHeldBack(): boolean {
  return workspace.getConfiguration(SECTION).get<boolean>('heldBack', false);
}

/** Returns the patterns of the files that the model never reads. A workspace can only add some. */
export function excluded(): unknown {
  return allExcluded(workspace.getConfiguration(SECTION).inspect('exclude') ?? {});
}

/** Toggles suggestions and saves that where it was set before, else in the user's settings. Returns the new value. */
export async function toggle(): Promise<boolean> {
  const settings = workspace.getConfiguration(SECTION);
  const on = !settings.get<boolean>('enabled', true);
  await settings.update('enabled', on, target(settings.inspect('enabled')?.workspaceValue));
  return on;
}

/** Toggles suggestions for one language. Returns the new value. */
export async function toggleLanguage(language: string): Promise<boolean> {
  const settings = workspace.getConfiguration(SECTION);
  const on = !(settings.get<Record<string, boolean>>('languages')?.[language] ?? true);
  const set = settings.inspect<Record<string, boolean>>('languages');
  const inWorkspace = set?.workspaceValue?.[language] !== undefined;
  const there = (inWorkspace ? set?.workspaceValue : set?.globalValue) ?? {};
  await settings.update('languages', { ...there, [language]: on }, target(inWorkspace || undefined));
  return on;
}

function target(workspaceValue: unknown): ConfigurationTarget {
  return workspaceValue === undefined ? ConfigurationTarget.Global : ConfigurationTarget.Workspace;
}

/** Returns whether suggestions come while the user types; else they come only when the user asks. */
export function isAutomatic(): boolean {
  return workspace.getConfiguration(SECTION).get<boolean>('automatic', true);
}

/** Switches between suggestions while typing and only when asked. Returns the new value. */
export async function toggleAutomatic(): Promise<boolean> {
  const settings = workspace.getConfiguration(SECTION);
  const on = !isAutomatic();
  await settings.update('automatic', on, target(settings.inspect('automatic')?.workspaceValue));
  return on;
}

/** Lets the completion menu open with nothing selected: then VS Code shows a suggestion beside it. */
export async function showBesideMenu(): Promise<void> {
  const settings = workspace.getConfiguration('editor.suggest');
  await settings.update('selectionMode', 'never', ConfigurationTarget.Global);
}
