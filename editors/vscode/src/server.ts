import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { type ExtensionContext, type LogOutputChannel, workspace } from 'vscode';
import { findProgram, outputOf } from './process';
import { midspanVersion, pythonIn, selectedPython } from './python';

// Where pipx and uv put programs, and the environment of Midspan's README. A VS Code that was started from a menu may lack them
// in its PATH.
const USUAL_FOLDERS = [
  ['.local', 'bin'],
  ['.midspan', process.platform === 'win32' ? 'Scripts' : 'bin'],
];

/** The command that starts the language server; `origin` says where it was found. */
export interface Server {
  command: string;
  args: string[];
  origin: string;
}

/** A place where a server may be. `found` returns it if it runs. */
interface Place {
  origin: string;
  found: () => Promise<Server | undefined>;
}

/**
 * Finds the server: by the setting midspan.server.path, else in the first of `places` that has one. Logs what was tried.
 * Returns undefined if there is none; throws a one-line Error if the setting is wrong.
 */
export async function findServer(context: ExtensionContext, log: LogOutputChannel): Promise<Server | undefined> {
  const path = workspace.getConfiguration('midspan.server').get<string>('path', '').trim();
  if (path) {
    const command = findProgram(path);
    if (!command) {
      throw new Error(
        `the setting midspan.server.path is "${path}", and no such program can be run; ` +
          'give the path of midspan-lsp, or empty the setting',
      );
    }
    return { command, args: [], origin: 'the setting midspan.server.path' };
  }
  for (const place of places(context)) {
    const server = await place.found();
    log.info(`looking for a server in ${place.origin}: ${server ? server.command : 'none'}`);
    if (server) {
      return server;
    }
  }
  return undefined;
}

/** Returns all servers that run here, those of the setting left out, in the order in which they are looked for. */
export async function allServers(context: ExtensionContext): Promise<Server[]> {
  const found = await Promise.all(places(context).map(place => place.found()));
  return found.filter(server => server !== undefined);
}

/** Returns what the setting midspan.server.path must be to start this server. */
export function programOf(server: Server): string {
  const beside = join(dirname(server.command), process.platform === 'win32' ? 'midspan-lsp.exe' : 'midspan-lsp');
  return server.args.length > 0 && existsSync(beside) ? beside : server.command;
}

/** The folder of the private environment. It is on the machine that has the files, and all windows share it. */
export function privateFolder(context: ExtensionContext): string {
  return join(context.globalStorageUri.fsPath, 'server');
}

/** The interpreter of the private environment. It may not exist. */
export function privatePython(context: ExtensionContext): string {
  return pythonIn(privateFolder(context));
}

function places(context: ExtensionContext): Place[] {
  const folders = (workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === 'file');
  return [
    ...folders.map(({ uri }) =>
      pythonPlace(`the workspace's ${join(uri.fsPath, '.venv')}`, async () => pythonIn(join(uri.fsPath, '.venv'))),
    ),
    pythonPlace('the selected Python interpreter', selectedPython),
    programPlace('the PATH', 'midspan-lsp'),
    ...USUAL_FOLDERS.map(folder => programPlace(join('~', ...folder), join(homedir(), ...folder, 'midspan-lsp'))),
    pythonPlace('its own environment', async () => privatePython(context)),
  ];
}

function pythonPlace(origin: string, python: () => Promise<string | undefined>): Place {
  const found = async () => {
    const command = await python();
    const runs = command && existsSync(command) && (await midspanVersion(command));
    return runs ? { command, args: ['-P', '-m', 'lsp_server'], origin } : undefined;
  };
  return { origin, found };
}

function programPlace(origin: string, program: string): Place {
  const found = async () => {
    const command = findProgram(program);
    const runs = command && (await outputOf(command, ['--version']));
    return runs ? { command, args: [], origin } : undefined;
  };
  return { origin, found };
}
