import {
  CancellationTokenSource,
  commands,
  type Disposable,
  type LogOutputChannel,
  Range,
  Selection,
  type TextDocumentChangeEvent,
  type TextEditor,
  Uri,
  window,
  workspace,
} from 'vscode';
import { NEXT_EDIT_DISMISSED, type NextEdit } from './bulk_wire';
import { NextEditDecorations } from './next_edit_decorations';
import { NextEditKeys } from './next_edit_keys';
import { hintOf } from './next_edit_look';
import { isAt, isOf, lengthIn, rangeOf } from './next_edit_place';
import { nextEdit, tellShown } from './next_edit_request';
import type { Session } from './session';
import { isOn, offersNextEdits } from './settings';

const PAUSE_MS = 50;
const PATIENCE_MS = 1000;
const SCHEMES = ['file', 'untitled', 'vscode-notebook-cell'];

/** The next edit: asked for when typing pauses, drawn where it is, and taken or dismissed by a key. */
export class NextEdits implements Disposable {
  private readonly decorations = new NextEditDecorations();
  private readonly keys = new NextEditKeys();
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
      window.onDidChangeTextEditorSelection(() => this.shown && this.draw()),
      window.onDidChangeActiveTextEditor(() => this.shown && this.draw()),
      window.onDidChangeVisibleTextEditors(() => this.shown && this.draw()),
    ];
  }

  /** Does what Tab does: goes to the next edit, or takes it if the cursor is there. */
  follow(): Promise<void> {
    return this.one(async edit => {
      if (isAt(window.activeTextEditor, edit)) {
        await this.takeEdit(edit);
      } else if (this.keys.wouldIndent(edit)) {
        // The key came before VS Code knew that it is not ours here.
        await commands.executeCommand('tab');
      } else {
        await this.opened(edit);
      }
    });
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
  async dismiss(): Promise<void> {
    if (this.isBusy) {
      await this.doing.catch(() => undefined);
    }
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
          this.keys.update(this.shown, this.isBusy);
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
    const range = rangeOf(edit);
    this.isApplying = true;
    try {
      if (!(await editor.edit(change => change.replace(range, edit.text)))) {
        throw new Error('the file cannot be edited');
      }
    } finally {
      this.isApplying = false;
    }
    const end = editor.document.positionAt(
      editor.document.offsetAt(range.start) + lengthIn(editor.document, edit.text),
    );
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
    const editor = window.activeTextEditor;
    if (!editor || !SCHEMES.includes(editor.document.uri.scheme)) {
      return;
    }
    if (!this.session.isRunning || !offersNextEdits() || !isOn(editor.document.languageId)) {
      return;
    }
    const client = this.session.running;
    const asking = new CancellationTokenSource();
    this.asking = asking;
    try {
      const edit = await nextEdit(client, editor, asking.token);
      if (edit) {
        this.shown = edit;
        this.keys.offered();
        this.draw();
        await tellShown(client, edit);
      }
    } catch (error) {
      this.log.debug(`no next edit: ${error instanceof Error ? error.message : error}`);
    }
  }

  /** Hides what is shown, and drops what is asked for. */
  private hide(): void {
    clearTimeout(this.pause);
    this.asking?.cancel();
    this.asking = undefined;
    if (this.shown) {
      this.shown = undefined;
      this.draw();
    }
  }

  private draw(): void {
    this.keys.update(this.shown, this.isBusy);
    for (const editor of window.visibleTextEditors) {
      this.decorations.clear(editor);
      if (this.shown && isOf(editor, this.shown)) {
        this.decorations.draw(editor, this.shown);
      }
    }
    const editor = window.activeTextEditor;
    if (this.shown && editor && this.keys.isNear(this.shown)) {
      const file = isOf(editor, this.shown) ? undefined : Uri.parse(this.shown.textDocument.uri).path.split('/').pop();
      this.decorations.drawHint(editor, hintOf(this.shown, { there: isAt(editor, this.shown), file }));
    }
  }

  /** Opens the edit's file with the cursor on the edit. Returns no editor if the file is not what the server knew. */
  private async opened(edit: NextEdit): Promise<TextEditor | undefined> {
    if (isAt(window.activeTextEditor, edit)) {
      return window.activeTextEditor;
    }
    const { start } = rangeOf(edit);
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
