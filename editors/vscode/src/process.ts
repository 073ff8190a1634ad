import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { CancellationToken } from 'vscode';

/** Returns the trimmed stdout of a program; undefined if it cannot be run, fails or takes too long. */
export function outputOf(command: string, args: string[], timeoutMs = 15_000): Promise<string | undefined> {
  return new Promise(resolve => {
    execFile(command, args, { timeout: timeoutMs }, (error, stdout) => resolve(error ? undefined : stdout.trim()));
  });
}

/**
 * Runs a program; `onLine` gets each line of its output. Rejects if it fails or is cancelled, with one line: its own last
 * error line if it wrote one.
 */
export function run(
  command: string,
  args: string[],
  onLine: (line: string) => void,
  token: CancellationToken,
): Promise<void> {
  return new Promise((resolve, reject) => {
    // A group of its own, because venv and pip start further processes, and cancelling must end these too.
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: process.platform !== 'win32' });
    const lines: string[] = [];
    const take = (line: string) => {
      lines.push(line);
      onLine(line);
    };
    const cancelling = token.onCancellationRequested(() => endGroup(child));
    createInterface({ input: child.stdout }).on('line', take);
    createInterface({ input: child.stderr }).on('line', take);
    child.on('error', error => reject(new Error(`${command} cannot be run: ${error.message}`)));
    child.on('close', status => {
      cancelling.dispose();
      if (token.isCancellationRequested) {
        reject(new Error('it was cancelled'));
      } else if (status === 0) {
        resolve();
      } else {
        reject(new Error(lastError(lines) ?? `\`${[command, ...args].join(' ')}\` ended with ${status}`));
      }
    });
  });
}

/** Returns what pip or uv says was wrong: the last line that is marked as an error, else the last one that is not empty. */
export function lastError(lines: string[]): string | undefined {
  if (lines.some(line => line.includes('ensurepip is not'))) {
    return 'this Python cannot make environments; on Debian and Ubuntu: apt install python3-venv';
  }
  const marked = lines.findLast(line => /^\s*(error\b|cause:|×|╰─▶)/i.test(line));
  const line = marked ?? lines.findLast(each => each.trim());
  return line?.trim().replace(/^(error:|cause:|×|╰─▶)\s*/i, '');
}

/** Returns the path of a program, given by its path or found on the PATH; undefined if it cannot be run. */
export function findProgram(program: string): string | undefined {
  const folders = isAbsolute(program) ? [''] : (process.env.PATH ?? '').split(delimiter);
  const endings = process.platform === 'win32' ? ['', '.exe', '.cmd'] : [''];
  return folders.flatMap(folder => endings.map(ending => join(folder, program + ending))).find(isExecutable);
}

function endGroup(child: ChildProcess): void {
  try {
    process.kill(process.platform === 'win32' ? Number(child.pid) : -Number(child.pid));
  } catch {
    child.kill(); // It has just ended, or never began.
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
