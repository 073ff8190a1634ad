import { rm } from 'node:fs/promises';
import { type ExtensionContext, type LogOutputChannel, ProgressLocation, window, workspace } from 'vscode';
import { run } from './process';
import { newEnoughPython } from './python';
import { privateFolder, privatePython } from './server';

/** Makes a private environment and installs Midspan there, with progress. Throws a one-line Error if that fails. */
export async function installServer(context: ExtensionContext, log: LogOutputChannel): Promise<void> {
  const requirement = workspace.getConfiguration('midspan.server').get<string>('package', 'midspan');
  const python = await newEnoughPython();
  if (!python) {
    throw new Error('no Python 3.11 or newer was found; install one, or set midspan.server.path to a midspan-lsp');
  }
  const folder = privateFolder(context);
  const options = { location: ProgressLocation.Notification, title: 'Installing Midspan', cancellable: true };
  await window.withProgress(options, async (progress, token) => {
    const tell = (line: string) => {
      log.info(line);
      progress.report({ message: line.slice(0, 80) });
    };
    try {
      tell(`making an environment with ${python}`);
      await run(python, ['-m', 'venv', '--clear', folder], tell, token);
      const pip = ['-m', 'pip', 'install', '--disable-pip-version-check', '--no-input', requirement];
      await run(privatePython(context), pip, tell, token);
    } catch (error) {
      // The next start would take an unfinished environment for a complete one.
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  });
}
