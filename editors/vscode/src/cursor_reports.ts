import { type Disposable, type LogOutputChannel, window } from 'vscode';
import type { Session } from './session';
import { isAutomatic, isOn } from './settings';
import { CURSOR_MOVED } from './wire';

const PAUSE_MS = 150;
const SCHEMES = ['file', 'untitled', 'vscode-notebook-cell'];

/** Tells the server where the cursor rests, so that a slow model reads the text there before the first suggestion. */
export class CursorReports implements Disposable {
  private readonly watching: Disposable[];
  private pause: NodeJS.Timeout | undefined;

  constructor(
    private readonly session: Session,
    private readonly log: LogOutputChannel,
  ) {
    this.watching = [
      window.onDidChangeTextEditorSelection(({ textEditor }) => textEditor === window.activeTextEditor && this.moved()),
      window.onDidChangeActiveTextEditor(() => this.moved()),
    ];
  }

  /** Reports the cursor once it rests: a cursor that passes a place is not to cost anything. */
  moved(): void {
    clearTimeout(this.pause);
    this.pause = setTimeout(() => this.report(), PAUSE_MS);
  }

  dispose(): void {
    clearTimeout(this.pause);
    for (const watching of this.watching) {
      watching.dispose();
    }
  }

  private async report(): Promise<void> {
    const editor = window.activeTextEditor;
    if (!editor || !SCHEMES.includes(editor.document.uri.scheme)) {
      return;
    }
    if (!this.session.isRunning || !isAutomatic() || !isOn(editor.document.languageId)) {
      return;
    }
    const client = this.session.running;
    const converter = client.code2ProtocolConverter;
    try {
      await client.sendNotification(CURSOR_MOVED, {
        textDocument: { uri: converter.asUri(editor.document.uri) },
        position: converter.asPosition(editor.selection.active),
      });
    } catch (error) {
      this.log.debug(`${CURSOR_MOVED}: ${error instanceof Error ? error.message : error}`);
    }
  }
}
