import { commands, type ExtensionContext, window, workspace } from 'vscode';
import { bulkCommands } from './bulk_commands';
import { BulkEdits } from './bulk_edits';
import { registerCommands } from './commands';
import { CursorReports } from './cursor_reports';
import { NextEdits } from './next_edits';
import { Offers } from './offer';
import { onSelectedPython } from './python';
import { Session } from './session';
import { StatusItem } from './status_item';

const INSTALL = 'Install';
const CHOOSE = 'Choose';
const HELP = 'How It Works';

export async function activate(context: ExtensionContext): Promise<void> {
  const log = window.createOutputChannel('Midspan', { log: true });
  const status = new StatusItem();
  const offers = new Offers(context.globalState, () => commands.executeCommand('midspan.installLargerModel'));
  const session = new Session(context, log, status, offerInstallation, offer => offers.consider(offer));
  const bulk = new BulkEdits(context, session, log);
  const next = new NextEdits(session, log);
  const cursor = new CursorReports(session, log);
  context.subscriptions.push(
    log,
    status,
    session,
    bulk,
    next,
    cursor,
    ...registerCommands(context, session, log, status, bulkCommands(session, bulk, next)),
    workspace.onDidChangeConfiguration(event => {
      if (event.affectsConfiguration('midspan.server')) {
        session.restartSoon();
      }
    }),
  );
  const selecting = await onSelectedPython(() => session.restartSoon());
  if (selecting) {
    context.subscriptions.push(selecting);
  }
  await session.restart();
  cursor.moved(); // The editor that is open already sends no event.
}

async function offerInstallation(): Promise<void> {
  const offer =
    'Midspan: the language server was not found. Install it into an environment of its own? That takes some 310 MB.';
  const answer = await window.showInformationMessage(offer, INSTALL, CHOOSE, HELP);
  if (answer === INSTALL) {
    await commands.executeCommand('midspan.installServer');
  } else if (answer === CHOOSE) {
    await commands.executeCommand('midspan.chooseServer');
  } else if (answer === HELP) {
    await commands.executeCommand('workbench.action.openWalkthrough', 'midspan.midspan#start');
  }
}
