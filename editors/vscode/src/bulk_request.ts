import { randomUUID } from 'node:crypto';
import { type Progress, ProgressLocation, window } from 'vscode';
import {
  WorkDoneProgress,
  type WorkDoneProgressBegin,
  type WorkDoneProgressEnd,
  type WorkDoneProgressReport,
} from 'vscode-languageclient';
import type { LanguageClient } from 'vscode-languageclient/node';
import { BULK_EDIT, type BulkAction, type BulkEdit } from './bulk_wire';

const TITLE = 'Midspan';

type Done = WorkDoneProgressBegin | WorkDoneProgressReport | WorkDoneProgressEnd;

/** Asks what an action would change, with progress that can be cancelled. Returns undefined if it was. */
export async function bulkEdit(client: LanguageClient, action: BulkAction): Promise<BulkEdit | undefined> {
  const options = { location: ProgressLocation.Notification, title: TITLE, cancellable: true };
  return window.withProgress(options, async (progress, token) => {
    const workDoneToken = randomUUID();
    const watching = client.onProgress(WorkDoneProgress.type, workDoneToken, reportTo(progress));
    try {
      return await client.sendRequest<BulkEdit>(BULK_EDIT, { action, workDoneToken }, token);
    } catch (error) {
      if (token.isCancellationRequested) {
        return undefined;
      }
      throw error;
    } finally {
      watching.dispose();
    }
  });
}

/** VS Code adds up what it is given; the server says how much is done in all. */
function reportTo(progress: Progress<{ message?: string; increment?: number }>): (done: Done) => void {
  let reached = 0;
  return done => {
    const message = done.kind === 'begin' ? (done.message ?? done.title.replace(`${TITLE}: `, '')) : done.message;
    const percentage = done.kind === 'end' ? undefined : done.percentage;
    const increment = Math.max((percentage ?? 0) - reached, 0);
    reached += increment;
    progress.report({ ...(message && { message }), ...(increment && { increment }) });
  };
}
