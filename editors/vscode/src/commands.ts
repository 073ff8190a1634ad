import { commands, type Disposable, type ExtensionContext, type LogOutputChannel, window } from 'vscode';
import { SHOW_LOG, tellFailure } from './failure';
import { chooseServer, installServer, mendServer } from './install';
import { onOrOff, showMenu } from './menu';
import { chooseModel } from './models';
import type { Session } from './session';
import { showBesideMenu, toggle, toggleAutomatic, toggleLanguage } from './settings';
import type { StatusItem } from './status_item';
import { clock, readable, snoozed } from './status_text';
import { suggestNow } from './suggest_now';
import { whyNoSuggestion, whyThisSuggestion } from './why';
import { INSTALL_MODEL, REPORT, RESTART_ENGINE, type Report, SNOOZE } from './wire';

const SNOOZE_MINUTES = 5;
const WHILE_TYPING = 'suggestions come while you type';
const WHEN_ASKED = 'suggestions come only when you ask for one';

/** Registers the commands of the palette and `more`. If one fails, a line says why, and the user can open the log. */
export function registerCommands(
  context: ExtensionContext,
  session: Session,
  log: LogOutputChannel,
  status: StatusItem,
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
    register('whyNoSuggestion', () => whyNoSuggestion(session.running)),
    register('showLog', () => log.show()),
    register('showMenu', () => showMenu(status.status)),
    register('openSettings', () => commands.executeCommand('workbench.action.openSettings', '@ext:midspan.midspan')),
    register('chooseModel', () => chooseModel(session.origin, log)),
    register('installLargerModel', async () => {
      const { model } = await session.execute<{ model: string }>(INSTALL_MODEL);
      tell(`${model} is being installed; until it answers, the model in use goes on`);
    }),
    register('toggleSnooze', () => toggleSnooze(session, status)),
    register('toggleAutomatic', async () => tell((await toggleAutomatic()) ? WHILE_TYPING : WHEN_ASKED)),
    register('besideMenu', async () => {
      await showBesideMenu();
      tell(
        'the completion menu opens with nothing selected: Tab accepts the suggestion, the down arrow goes to the menu',
      );
    }),
    register('trigger', () => suggestNow()),
    register('dismiss', () => session.dismiss()),
    register('installServer', async () => {
      await installServer(context, log, status);
      await session.restart();
    }),
    register('chooseServer', () => chooseServer(context)),
    register('mendServer', async () => {
      if (session.isRunning) {
        await showMenu(status.status); // The engine has failed, not the server.
      } else if (await mendServer(context, log, status)) {
        await session.restart();
      }
    }),
  ];
}

/** Begins a snooze, or ends the one that goes on. */
async function toggleSnooze(session: Session, status: StatusItem): Promise<void> {
  const minutes = snoozed(status.status) === undefined ? SNOOZE_MINUTES : 0;
  const { until } = await session.execute<{ until: number | null }>(SNOOZE, minutes);
  tell(until === null ? 'the snooze is over' : `nothing is suggested unasked until ${clock(until)}`);
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

function tell(line: string): void {
  window.setStatusBarMessage(`Midspan: ${line}`, 5000);
}
