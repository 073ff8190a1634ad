import {
  commands,
  type Disposable,
  type ExtensionContext,
  type LogOutputChannel,
  type QuickPickItem,
  window,
} from 'vscode';
import { SHOW_LOG, tellFailure } from './failure';
import { fillSelection } from './fill';
import { chooseServer, installServer, mendServer } from './install';
import type { Session } from './session';
import { isOn, toggle, toggleLanguage } from './settings';
import { readable } from './status_text';
import { whyThisSuggestion } from './why';
import { REPORT, RESTART_ENGINE, type Report } from './wire';

interface Choice extends QuickPickItem {
  command: string;
}

/** Registers the commands of the palette and `more`. If one fails, a line says why, and the user can open the log. */
export function registerCommands(
  context: ExtensionContext,
  session: Session,
  log: LogOutputChannel,
  more: Record<string, (argument: never) => unknown>,
): Disposable[] {
  const register = (name: string, action: (argument: never) => unknown) =>
    commands.registerCommand(`midspan.${name}`, (argument: never) => tellFailure(log, () => action(argument)));
  return [
    ...Object.entries(more).map(([name, action]) => register(name, action)),
    register('toggleSuggestions', async () => tell(`suggestions are ${onOrOff(await toggle())}`)),
    register('toggleLanguage', () => toggleActiveLanguage()),
    register('restart', () => restart(session)),
    register('showStatus', async () => {
      const report = await session.execute<Report>(REPORT);
      if ((await window.showInformationMessage(`Midspan: ${readable(report)}`, SHOW_LOG)) === SHOW_LOG) {
        log.show();
      }
    }),
    register('whyThisSuggestion', () => whyThisSuggestion(session.running)),
    register('showLog', () => log.show()),
    register('showMenu', () => showMenu()),
    register('trigger', () => commands.executeCommand('editor.action.inlineSuggest.trigger')),
    register('dismiss', () => session.dismiss()),
    register('fillSelection', async () => {
      if (window.activeTextEditor) {
        await fillSelection(session.running, window.activeTextEditor);
      }
    }),
    register('installServer', async () => {
      await installServer(context, log);
      await session.restart();
    }),
    register('chooseServer', () => chooseServer(context)),
    register('mendServer', async () => {
      if (await mendServer(context, log)) {
        await session.restart();
      }
    }),
  ];
}

/** Restarts the engine. If no server is running that could do this, restarts the server. */
async function restart(session: Session): Promise<void> {
  if (!session.isRunning) {
    return session.restart();
  }
  await session.execute(RESTART_ENGINE);
}

async function toggleActiveLanguage(): Promise<void> {
  const language = window.activeTextEditor?.document.languageId;
  if (!language) {
    throw new Error('open a file first: its language is the one that is switched');
  }
  tell(`suggestions are ${onOrOff(await toggleLanguage(language))} for ${language}`);
}

async function showMenu(): Promise<void> {
  const language = window.activeTextEditor?.document.languageId;
  const choices: Choice[] = [
    { label: `Turn Suggestions ${onOrOff(!isOn())}`, command: 'midspan.toggleSuggestions' },
    { label: 'Why This Suggestion?', command: 'midspan.whyThisSuggestion' },
    { label: 'Repeat My Last Edit in the Workspace', command: 'midspan.repeatEdit' },
    { label: 'Show Status', command: 'midspan.showStatus' },
    { label: SHOW_LOG, command: 'midspan.showLog' },
    { label: 'Restart the Engine', command: 'midspan.restart' },
  ];
  if (language && isOn()) {
    const label = `Turn Suggestions ${onOrOff(!isOn(language))} for ${language}`;
    choices.splice(1, 0, { label, command: 'midspan.toggleLanguage' });
  }
  const chosen = await window.showQuickPick(choices, { title: 'Midspan' });
  if (chosen) {
    await commands.executeCommand(chosen.command);
  }
}

function onOrOff(on: boolean): string {
  return on ? 'on' : 'off';
}

function tell(line: string): void {
  window.setStatusBarMessage(`Midspan: ${line}`, 5000);
}
