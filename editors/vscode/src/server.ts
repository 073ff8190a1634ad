import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type ExtensionContext, workspace } from 'vscode';
import { findProgram } from './process';
import { midspanVersion, selectedPython } from './python';

/** The command that starts the language server; `origin` says where it was found. */
export interface Server {
  command: string;
  args: string[];
  origin: string;
}

/**
 * Finds the server: by the setting midspan.server.path, else in the selected Python interpreter, else in the private
 * environment. Returns undefined if there is none; throws a one-line Error if the setting is wrong.
 */
export async function findServer(context: ExtensionContext): Promise<Server | undefined> {
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
  const selected = await selectedPython();
  if (selected && (await midspanVersion(selected))) {
    return pythonServer(selected, 'the selected Python interpreter');
  }
  const own = privatePython(context);
  if (existsSync(own) && (await midspanVersion(own))) {
    return pythonServer(own, 'the private environment');
  }
  return undefined;
}

/** The folder of the private environment. It is on the machine that has the files, and all windows share it. */
export function privateFolder(context: ExtensionContext): string {
  return join(context.globalStorageUri.fsPath, 'server');
}

/** The interpreter of the private environment. It may not exist. */
export function privatePython(context: ExtensionContext): string {
  const place = process.platform === 'win32' ? ['Scripts', 'python.exe'] : ['bin', 'python'];
  return join(privateFolder(context), ...place);
}

function pythonServer(python: string, origin: string): Server {
  return { command: python, args: ['-P', '-m', 'lsp_server'], origin };
}
