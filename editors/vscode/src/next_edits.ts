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
const CONTEXT = 'midspan.nextEdit';
const SCHEMES = ['file', 'untitled', 'vscode-notebook-cell'];

/** The next edit: asked for when typing pauses, drawn where it is, and taken or dismissed by a key. */
export class NextEdits implements Disposable {
  private readonly decorations = new NextEditDecorations();
  private readonly watching: Disposable[];
  private shown: NextEdit | undefined;
  private asking: CancellationTokenSource | undefined;
  private pause: NodeJS.Timeout | undefined;
  private following: Promise<void> = Promise.resolve();

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
    // One after the other: the second Tab may come before the first has opened a file.
    this.following = this.following
      .catch(() => undefined)
      .then(() => (this.shown && isAt(window.activeTextEditor, this.shown) ? this.take() : this.go()));
    return this.following;
  }

  /** Puts the cursor on the next edit. */
  async go(): Promise<void> {
    if (this.shown) {
      await this.opened(this.shown);
    }
  }

  /** Makes the next edit, and asks for the one after it. Throws an Error whose message is one line. */
  async take(): Promise<void> {
    const edit = this.shown;
    const editor = edit && (await this.opened(edit));
    if (!editor || this.shown !== edit) {
      return;
    }
    this.hide();
    const range = asRange(edit);
    if (!(await editor.edit(change => change.replace(range, edit.text)))) {
      throw new Error('the file cannot be edited');
    }
    const end = editor.document.positionAt(editor.document.offsetAt(range.start) + lengthIn(editor, edit.text));
    editor.selection = new Selection(end, end);
    editor.revealRange(new Range(end, end));
    await this.tell(edit.command.command, edit.command.arguments ?? []);
    await this.ask();
  }

  /** Ends the offers of this edit for good. */
  async dismiss(): Promise<void> {
    const edit = this.shown;
    this.hide();
    if (edit) {
      await this.tell(NEXT_EDIT_DISMISSED, edit.command.arguments ?? []);
    }
  }

  dispose(): void {
    this.hide();
    for (const watching of this.watching) {
      watching.dispose();
    }
  }

  private changed({ document, contentChanges }: TextDocumentChangeEvent): void {
    if (!contentChanges.length || !SCHEMES.includes(document.uri.scheme)) {
      return;
    }
    this.hide();
    if (document === window.activeTextEditor?.document) {
      this.pause = setTimeout(() => this.ask(), PAUSE_MS);
    }
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
      void commands.executeCommand('setContext', CONTEXT, true);
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
      void commands.executeCommand('setContext', CONTEXT, false);
      this.draw();
    }
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
    await this.ask();
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
