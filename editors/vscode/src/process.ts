import { execFile, spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { CancellationToken } from 'vscode';

/** Returns the trimmed stdout of a program; undefined if it cannot be run, fails or takes too long. */
export function outputOf(command: string, args: string[], timeoutMs = 15_000): Promise<string | undefined> {
  return new Promise(resolve => {
    execFile(command, args, { timeout: timeoutMs }, (error, stdout) => resolve(error ? undefined : stdout.trim()));
  });
}

/** Runs a program; `onLine` gets each line of its output. Rejects with one line if it fails or is cancelled. */
export function run(
  command: string,
  args: string[],
  onLine: (line: string) => void,
  token: CancellationToken,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const cancelling = token.onCancellationRequested(() => child.kill());
    createInterface({ input: child.stdout }).on('line', onLine);
    createInterface({ input: child.stderr }).on('line', onLine);
    child.on('error', error => reject(new Error(`${command} cannot be run: ${error.message}`)));
    child.on('close', status => {
      cancelling.dispose();
      if (status === 0) {
        resolve();
      } else {
        const line = [command, ...args].join(' ');
        reject(new Error(token.isCancellationRequested ? 'it was cancelled' : `\`${line}\` ended with ${status}`));
      }
    });
  });
}

/** Returns the path of a program, given by its path or found on the PATH; undefined if it cannot be run. */
export function findProgram(program: string): string | undefined {
  const folders = isAbsolute(program) ? [''] : (process.env.PATH ?? '').split(delimiter);
  const endings = process.platform === 'win32' ? ['', '.exe', '.cmd'] : [''];
  return folders.flatMap(folder => endings.map(ending => join(folder, program + ending))).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
