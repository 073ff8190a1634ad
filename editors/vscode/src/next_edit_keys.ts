import { commands, type Position, type TextEditor, window } from 'vscode';
import type { NextEdit } from './bulk_wire';
import { isAt, isOf } from './next_edit_place';

const SHOWN = 'midspan.nextEdit';
const TAB = 'midspan.nextEditTab';

/** Says by context keys when Escape and Tab are ours: only where an edit is offered, and never where Tab would indent. */
export class NextEditKeys {
  private readonly last = new Map<string, boolean>();
  private from: { editor: TextEditor; position: Position } | undefined;

  /** Notes where the cursor was when an edit was offered: Tab is ours there in any case. */
  offered(): void {
    const editor = window.activeTextEditor;
    this.from = editor && { editor, position: editor.selection.active };
  }

  /** While an edit is being taken the keys are ours too: a Tab that comes too early must not indent a line. */
  update(edit: NextEdit | undefined, isBusy: boolean): void {
    const here = edit !== undefined && this.isNear(edit);
    this.set(SHOWN, isBusy || here);
    this.set(TAB, isBusy || (here && !this.wouldIndent(edit)));
  }

  /** Whether the active editor has the edit, or the text that it follows from. In other files it would only disturb. */
  isNear(edit: NextEdit): boolean {
    const editor = window.activeTextEditor;
    return editor !== undefined && (isOf(editor, edit) || editor.document === this.from?.editor.document);
  }

  private set(key: string, on: boolean): void {
    if ((this.last.get(key) ?? false) !== on) {
      this.last.set(key, on);
      void commands.executeCommand('setContext', key, on);
    }
  }

  /** Whether the user has moved the cursor to the indentation of a line elsewhere. */
  wouldIndent(edit: NextEdit): boolean {
    const editor = window.activeTextEditor;
    if (!editor || isAt(editor, edit)) {
      return false;
    }
    const { active } = editor.selection;
    const stayed = editor.document === this.from?.editor.document && active.isEqual(this.from.position);
    return !stayed && !editor.document.lineAt(active.line).text.slice(0, active.character).trim();
  }
}
