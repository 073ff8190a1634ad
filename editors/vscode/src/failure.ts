import { type LogOutputChannel, window } from 'vscode';

export const SHOW_LOG = 'Show Log';

/** Does something. If that fails, one line says why, and the user can open the log. */
export async function tellFailure(log: LogOutputChannel, action: () => unknown): Promise<void> {
  try {
    await action();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    log.error(reason);
    if ((await window.showErrorMessage(`Midspan: ${reason}`, SHOW_LOG)) === SHOW_LOG) {
      log.show();
    }
  }
}
