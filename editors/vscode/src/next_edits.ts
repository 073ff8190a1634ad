import {
  CancellationTokenSource,
  commands,
  type Disposable,
  EndOfLine,
  type LogOutputChannel,
  Range,
  Selection,
  type TextDocumentChangeEvent,
  type TextEditor,
  Uri,
  window,
  workspace,
} from 'vscode';
import { NEXT_EDIT, NEXT_EDIT_DISMISSED, NEXT_EDIT_SHOWN, type NextEdit, type NextEditResult } from './bulk_wire';
import { NextEditDecorations } from './next_edit_decorations';
import { hintOf } from './next_edit_look';
import type { Session } from './session';
import { isOn } from './settings';

const PAUSE_MS = 50;
const PATIENCE_MS = 1000;
const CONTEXT = 'midspan.nextEdit';
const SCHEMES = ['file', 'untitled', 'vscode-notebook-cell'];

/** The next edit: asked for when typing pauses, drawn where it is, and taken or dismissed by a key. */
export class NextEdits implements Disposable {
  private readonly decorations = new NextEditDecorations();
  private readonly watching: Disposable[];
  private shown: NextEdit | undefined;
  private asking: CancellationTokenSource | undefined;
  private pause: NodeJS.Timeout | undefined;
  private doing: Promise<void> = Promise.resolve();
  private isBusy = false;
  private isApplying = false;

  constructor(
    private readonly session: Session,
    private readonly log: LogOutputChannel,
  ) {
    this.watching = [
      this.decorations,
      workspace.onDidChangeTextDocument(event => this.changed(event)),
      window.onDidChangeTextEditorSelection(() => this.draw()),
      window.onDidChangeActiveTextEditor(() => this.draw()),
      window.onDidChangeVisibleTextEditors(() => this.draw()),
    ];
  }

  /** Does what Tab does: goes to the next edit, or takes it if the cursor is there. */
  follow(): Promise<void> {
    return this.one(edit => (isAt(window.activeTextEditor, edit) ? this.takeEdit(edit) : this.opened(edit)));
  }

  /** Puts the cursor on the next edit. */
  go(): Promise<void> {
    return this.one(edit => this.opened(edit));
  }

  /** Makes the next edit, and asks for the one after it. Throws an Error whose message is one line. */
  take(): Promise<void> {
    return this.one(edit => this.takeEdit(edit));
  }

  /** Ends the offers of this edit for good. */
  dismiss(): Promise<void> {
    return this.one(edit => {
      this.hide();
      return this.tell(NEXT_EDIT_DISMISSED, edit.command.arguments ?? []);
    });
  }

  dispose(): void {
    this.hide();
    for (const watching of this.watching) {
      watching.dispose();
    }
  }

  /**
   * Does something with the edit that is shown, after what an earlier key has asked for. Until it is done the keys stay
   * ours: a second Tab that comes too early must not indent a line.
   */
  private one(action: (edit: NextEdit) => Promise<unknown>): Promise<void> {
    this.doing = this.doing
      .catch(() => undefined)
      .then(async () => {
        this.isBusy = true;
        try {
          await (this.shown && action(this.shown));
        } finally {
          this.isBusy = false;
          this.updateKeys();
        }
      });
    return this.doing;
  }

  private async takeEdit(edit: NextEdit): Promise<void> {
    const editor = await this.opened(edit);
    if (!editor || this.shown !== edit) {
      return;
    }
    this.hide();
    const range = asRange(edit);
    this.isApplying = true;
    try {
      if (!(await editor.edit(change => change.replace(range, edit.text)))) {
        throw new Error('the file cannot be edited');
      }
    } finally {
      this.isApplying = false;
    }
    const end = editor.document.positionAt(editor.document.offsetAt(range.start) + lengthIn(editor, edit.text));
    editor.selection = new Selection(end, end);
    editor.revealRange(new Range(end, end));
    await this.tell(edit.command.command, edit.command.arguments ?? []);
    await this.askBriefly();
  }

  private changed({ document, contentChanges }: TextDocumentChangeEvent): void {
    if (this.isApplying || !contentChanges.length || !SCHEMES.includes(document.uri.scheme)) {
      return;
    }
    this.hide();
    if (document === window.activeTextEditor?.document) {
      this.pause = setTimeout(() => this.ask(), PAUSE_MS);
    }
  }

  /** Asks, and waits for the answer if that comes soon. The search of a large workspace goes on meanwhile. */
  private async askBriefly(): Promise<void> {
    await Promise.race([this.ask(), new Promise(resolve => setTimeout(resolve, PATIENCE_MS))]);
  }

  private async ask(): Promise<void> {
    this.hide();
    const document = window.activeTextEditor?.document;
    const position = window.activeTextEditor?.selection.active;
    if (!document || !position || !SCHEMES.includes(document.uri.scheme)) {
      return;
    }
    if (!this.session.isRunning || !isOn(document.languageId)) {
      return;
    }
    const client = this.session.running;
    const { version } = document;
    const asking = new CancellationTokenSource();
    this.asking = asking;
    const converter = client.code2ProtocolConverter;
    const params = {
      textDocument: { uri: converter.asUri(document.uri), version },
      position: converter.asPosition(position),
      anyFile: true,
    };
    try {
      const answer = await client.sendRequest<NextEditResult | null>(NEXT_EDIT, params, asking.token);
      const edit = answer?.edits[0];
      if (edit && !asking.token.isCancellationRequested && document.version === version) {
        this.show(edit);
        await client.sendNotification(NEXT_EDIT_SHOWN, { item: { command: edit.command } });
      }
    } catch (error) {
      this.log.debug(`no next edit: ${error instanceof Error ? error.message : error}`);
    }
  }

  private show(edit: NextEdit): void {
    const document = documentOf(edit);
    if (!document || document.version === edit.textDocument.version) {
      this.shown = edit;
      this.updateKeys();
      this.draw();
    }
  }

  /** Hides what is shown, and drops what is asked for. */
  private hide(): void {
    clearTimeout(this.pause);
    this.asking?.cancel();
    this.asking = undefined;
    if (this.shown) {
      this.shown = undefined;
      this.updateKeys();
      this.draw();
    }
  }

  private updateKeys(): void {
    void commands.executeCommand('setContext', CONTEXT, this.shown !== undefined || this.isBusy);
  }

  private draw(): void {
    for (const editor of window.visibleTextEditors) {
      this.decorations.clear(editor);
      if (this.shown && isOf(editor, this.shown)) {
        this.decorations.draw(editor, this.shown);
      }
    }
    const editor = window.activeTextEditor;
    if (this.shown && editor) {
      const file = isOf(editor, this.shown) ? undefined : Uri.parse(this.shown.textDocument.uri).path.split('/').pop();
      this.decorations.drawHint(editor, hintOf(this.shown, { there: isAt(editor, this.shown), file }));
    }
  }

  /** Opens the edit's file with the cursor on the edit. Returns no editor if the file is not what the server knew. */
  private async opened(edit: NextEdit): Promise<TextEditor | undefined> {
    if (isAt(window.activeTextEditor, edit)) {
      return window.activeTextEditor;
    }
    const { start } = asRange(edit);
    const there = window.visibleTextEditors.find(editor => isOf(editor, edit));
    const selection = new Range(start, start);
    const column = there?.viewColumn === undefined ? {} : { viewColumn: there.viewColumn };
    const editor = await window.showTextDocument(Uri.parse(edit.textDocument.uri), { selection, ...column });
    if (editor.document.version === edit.textDocument.version) {
      return editor;
    }
    // It was not open, so its version has only now begun.
    await this.askBriefly();
    return undefined;
  }

  private async tell(command: string, args: unknown[]): Promise<void> {
    try {
      await this.session.execute(command, ...args);
    } catch (error) {
      this.log.debug(`${command}: ${error instanceof Error ? error.message : error}`);
    }
  }
}

function asRange({ range: { start, end } }: NextEdit): Range {
  return new Range(start.line, start.character, end.line, end.character);
}

function documentOf(edit: NextEdit) {
  const uri = Uri.parse(edit.textDocument.uri).toString();
  return workspace.textDocuments.find(document => document.uri.toString() === uri);
}

function isOf(editor: TextEditor, edit: NextEdit): boolean {
  return editor.document === documentOf(edit);
}

function isAt(editor: TextEditor | undefined, edit: NextEdit): boolean {
  const line = editor?.selection.active.line ?? -1;
  return editor !== undefined && isOf(editor, edit) && edit.range.start.line <= line && line <= edit.range.end.line;
}

/** The length of a text once it is in the document, whose line ends it gets. */
function lengthIn(editor: TextEditor, text: string): number {
  const lines = text.replaceAll('\r\n', '\n');
  return editor.document.eol === EndOfLine.CRLF ? lines.replaceAll('\n', '\r\n').length : lines.length;
}
