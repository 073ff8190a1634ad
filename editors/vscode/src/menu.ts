import { commands, type QuickPickItem, QuickPickItemKind, window } from 'vscode';
import { SHOW_LOG } from './failure';
import { isAutomatic, isOn } from './settings';
import { clock, snoozed } from './status_text';
import type { Status } from './wire';

interface Choice extends QuickPickItem {
  command?: string;
}

/** The menu of the status item. Each choice is a command of its own, for who would rather bind a key. */
export async function showMenu(status: Status): Promise<void> {
  const chosen = await window.showQuickPick(choices(status), { title: 'Midspan' });
  if (chosen?.command) {
    // The focus would go back to the status item, where a typed space opens this menu again.
    await commands.executeCommand('workbench.action.focusActiveEditorGroup');
    await commands.executeCommand(chosen.command);
  }
}

function choices(status: Status): Choice[] {
  const language = window.activeTextEditor?.document.languageId;
  const until = snoozed(status);
  const forLanguage: Choice[] =
    language && isOn()
      ? [
          {
            label: `Turn Suggestions ${onOrOff(!isOn(language))} for ${language}`,
            command: 'midspan.toggleLanguage',
          },
        ]
      : [];
  return [
    { label: `Turn Suggestions ${onOrOff(!isOn())}`, command: 'midspan.toggleSuggestions' },
    ...forLanguage,
    until === undefined
      ? { label: 'Snooze for 5 Minutes', command: 'midspan.toggleSnooze' }
      : { label: 'End the Snooze', description: `until ${clock(until)}`, command: 'midspan.toggleSnooze' },
    { label: isAutomatic() ? 'Suggest Only When Asked' : 'Suggest While Typing', command: 'midspan.toggleAutomatic' },
    { label: 'Suggest Now', command: 'midspan.trigger' },
    { label: 'Why This Suggestion?', command: 'midspan.whyThisSuggestion' },
    { label: 'Why No Suggestion?', command: 'midspan.whyNoSuggestion' },
    { label: 'Repeat My Last Edit in the Workspace', command: 'midspan.repeatEdit' },
    { label: '', kind: QuickPickItemKind.Separator },
    { label: 'Choose a Model', ...(status.model && { description: status.model }), command: 'midspan.chooseModel' },
    { label: 'Statistics', command: 'midspan.showStatus' },
    { label: 'Settings', command: 'midspan.openSettings' },
    { label: SHOW_LOG, command: 'midspan.showLog' },
    { label: 'Restart the Engine', command: 'midspan.restart' },
  ];
}

export function onOrOff(on: boolean): string {
  return on ? 'on' : 'off';
}
