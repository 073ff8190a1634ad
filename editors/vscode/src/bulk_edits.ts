import {
  type Disposable,
  type ExtensionContext,
  type LogOutputChannel,
  Range,
  type TextDocumentChangeEvent,
  Uri,
  ViewColumn,
  window,
  workspace,
} from 'vscode';
import { ResponseError } from 'vscode-languageclient';
import { bulkEdit } from './bulk_request';
import { APPLY_BULK_EDIT, type ApplyResult, type BulkAction, type BulkEdit } from './bulk_wire';
import { tellFailure } from './failure';
import { Preview } from './preview';
import type { FromPreview } from './preview_messages';
import type { Session } from './session';

const TOLD_MS = 8000;
const SAVE_ALL = 'Save All';

/** An edit that is previewed. `applying` while the server changes the files, so that this is no surprise. */
interface Previewed {
  action: BulkAction;
  edit: BulkEdit;
  preview: Preview;
  applying: boolean;
}

/** Bulk edits in this window: computed by the server, previewed one at a time, and applied by the server. */
export class BulkEdits implements Disposable {
  private shown: Previewed | undefined;
  private readonly watching = workspace.onDidChangeTextDocument(event => this.warnAbout(event));

  constructor(
    private readonly context: ExtensionContext,
    private readonly session: Session,
    private readonly log: LogOutputChannel,
  ) {}

  /** Computes what an action would change, and shows it. Throws an Error whose message is one line. */
  async show(action: BulkAction): Promise<void> {
    const edit = await bulkEdit(this.session.running, action).catch(error => {
      // The server says in a line why there is nothing to show; that is no fault.
      if (error instanceof ResponseError) {
        window.showWarningMessage(`Midspan: ${error.message}`);
        return undefined;
      }
      throw error;
    });
    if (!edit) {
      return;
    }
    if (!edit.places.length && !edit.leftOut.length) {
      window.showInformationMessage(['Midspan: nothing to change', ...edit.reached].join('; '));
      return;
    }
    this.shown?.preview.dispose();
    const onMessage = (message: FromPreview) => tellFailure(this.log, () => this.follow(shown, message));
    const onClose = () => {
      this.shown = this.shown === shown ? undefined : this.shown;
    };
    const preview = new Preview(this.context.extensionUri, edit, onMessage, onClose);
    const shown: Previewed = { action, edit, preview, applying: false };
    this.shown = shown;
  }

  dispose(): void {
    this.watching.dispose();
    this.shown?.preview.dispose();
  }

  private async follow(shown: Previewed, message: FromPreview): Promise<void> {
    if (message.type === 'apply') {
      await this.apply(shown, message.places);
    } else if (message.type === 'open') {
      const selection = new Range(message.line, 0, message.line, 0);
      await window.showTextDocument(Uri.parse(message.uri), { selection, viewColumn: ViewColumn.One });
    } else if (message.type === 'again') {
      await this.show(refreshed(shown.action));
    } else {
      shown.preview.dispose();
    }
  }

  private async apply(shown: Previewed, places: number[]): Promise<void> {
    if (shown.applying) {
      return;
    }
    shown.applying = true;
    try {
      const params = { id: shown.edit.id, places };
      const { applied, message } = await this.session.running.sendRequest<ApplyResult>(APPLY_BULK_EDIT, params);
      if (applied) {
        shown.preview.dispose();
        this.tellApplied(message, changedBy(shown.edit, places));
      } else {
        shown.preview.warn(message);
      }
    } finally {
      shown.applying = false;
    }
  }

  /** Says what was changed, and offers to save what is only changed in editors. VS Code saves some refactorings itself. */
  private async tellApplied(message: string, uris: Set<string>): Promise<void> {
    const unsaved = workspace.textDocuments.filter(({ isDirty, uri }) => isDirty && uris.has(uri.toString()));
    if (!unsaved.length) {
      window.setStatusBarMessage(`Midspan: ${message} and saved`, TOLD_MS);
      return;
    }
    const files = unsaved.length === 1 ? '1 file is' : `${unsaved.length} files are`;
    const told = `Midspan: ${message}; ${files} not saved. One Undo takes all of it back.`;
    if ((await window.showInformationMessage(told, SAVE_ALL)) === SAVE_ALL) {
      await Promise.all(unsaved.map(document => document.save()));
    }
  }

  /** Tells at once what the server would tell when the edit is applied. */
  private warnAbout({ document, contentChanges }: TextDocumentChangeEvent): void {
    if (!this.shown || this.shown.applying || !contentChanges.length) {
      return;
    }
    const { edit, preview } = this.shown;
    const changed = edit.places.find(place => Uri.parse(place.uri).toString() === document.uri.toString());
    if (changed) {
      preview.warn(`${changed.path} has changed since.`);
    }
  }
}

/** Returns the files that the chosen places of an edit are in. */
function changedBy({ places }: BulkEdit, chosen: number[]): Set<string> {
  return new Set(places.filter(({ id }) => chosen.includes(id)).map(({ uri }) => Uri.parse(uri).toString()));
}

/** Returns the action for the document as it is now. */
function refreshed(action: BulkAction): BulkAction {
  const uri = Uri.parse(action.uri).toString();
  const document = workspace.textDocuments.find(open => open.uri.toString() === uri);
  return { ...action, version: document?.version ?? action.version };
}
