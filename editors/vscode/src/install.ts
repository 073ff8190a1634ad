import { readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import {
  type CancellationToken,
  ConfigurationTarget,
  type ExtensionContext,
  type LogOutputChannel,
  ProgressLocation,
  type QuickPickItem,
  Uri,
  window,
  workspace,
} from 'vscode';
import { findProgram, run } from './process';
import { newEnoughPython } from './python';
import { allServers, privateFolder, privatePython, programOf } from './server';
import type { StatusItem } from './status_item';

const INSTALL = 'Install the Server';
const CHOOSE = 'Choose a Server';
const SHOW_LOG = 'Show Log';
const OTHER = 'Another one: its path';

/** Makes a private environment and installs Midspan there, with progress. Throws a one-line Error if that fails. */
export async function installServer(
  context: ExtensionContext,
  log: LogOutputChannel,
  status: StatusItem,
): Promise<void> {
  const requirement = packageToInstall(context);
  const folder = privateFolder(context);
  const options = { location: ProgressLocation.Notification, title: 'Installing Midspan', cancellable: true };
  const before = status.status;
  status.show({ state: 'starting', message: 'The language server is being installed.' });
  await window.withProgress(options, async (progress, token) => {
    const tell = (line: string) => {
      log.info(line);
      progress.report({ message: line.slice(0, 80) });
    };
    try {
      await rm(folder, { recursive: true, force: true });
      await fillEnvironment(folder, privatePython(context), requirement, tell, token);
    } catch (error) {
      // The next start would take an unfinished environment for a complete one.
      await rm(folder, { recursive: true, force: true });
      status.show(before);
      throw error;
    }
  });
}

/** Lets the user mend a missing server: install one, choose one, or read the log. Returns whether there is another one. */
export async function mendServer(
  context: ExtensionContext,
  log: LogOutputChannel,
  status: StatusItem,
): Promise<boolean> {
  const chosen = await window.showQuickPick([INSTALL, CHOOSE, SHOW_LOG], { title: 'Midspan: the language server' });
  if (chosen === INSTALL) {
    await installServer(context, log, status);
    return true;
  }
  if (chosen === CHOOSE) {
    await chooseServer(context);
  } else if (chosen === SHOW_LOG) {
    log.show();
  }
  return false;
}

/** Lets the user choose a server, from those that were found here or by its path, and keeps it in the settings. */
export async function chooseServer(context: ExtensionContext): Promise<void> {
  const found: QuickPickItem[] = (await allServers(context)).map(server => ({
    label: programOf(server),
    description: server.origin,
  }));
  const options = { title: 'Midspan: which language server?' };
  const chosen = await window.showQuickPick([...found, { label: OTHER }], options);
  const path = chosen?.label === OTHER ? await askForFile() : chosen?.label;
  if (path) {
    await workspace.getConfiguration('midspan.server').update('path', path, ConfigurationTarget.Global);
  }
}

async function askForFile(): Promise<string | undefined> {
  const files = await window.showOpenDialog({
    title: 'The program midspan-lsp',
    openLabel: 'Use',
    defaultUri: Uri.file(homedir()),
  });
  return files?.[0]?.fsPath;
}

/** Returns what to install: what the setting names, else the wheel that this extension carries. */
function packageToInstall(context: ExtensionContext): string {
  const named = workspace.getConfiguration('midspan.server').get<string>('package', '').trim();
  const wheel = carriedWheel(context);
  if (!named && !wheel) {
    throw new Error(
      'this extension carries no server; build it with `make dist` in a clone of Midspan, or name a wheel in the ' +
        'setting midspan.server.package',
    );
  }
  return named || String(wheel);
}

function carriedWheel(context: ExtensionContext): string | undefined {
  const folder = join(context.extensionPath, 'server');
  try {
    const wheel = readdirSync(folder).find(name => name.endsWith('.whl'));
    return wheel && join(folder, wheel);
  } catch {
    return undefined;
  }
}

async function fillEnvironment(
  folder: string,
  python: string,
  requirement: string,
  tell: (line: string) => void,
  token: CancellationToken,
): Promise<void> {
  const base = await newEnoughPython();
  const uv = findProgram('uv') ?? findProgram(join(homedir(), '.local', 'bin', 'uv'));
  if (!base && !uv) {
    throw new Error('no Python 3.11 or newer was found; install one, or set midspan.server.path to a midspan-lsp');
  }
  if (uv) {
    tell(`making an environment with ${uv}`);
    await run(uv, ['venv', '--python', base ?? '3.12', folder], tell, token);
    await run(uv, ['pip', 'install', '--python', python, requirement], tell, token);
    return;
  }
  tell(`making an environment with ${base}`);
  await run(String(base), ['-m', 'venv', folder], tell, token);
  const pip = ['-m', 'pip', 'install', '--disable-pip-version-check', '--no-input', requirement];
  await run(python, pip, tell, token);
}
