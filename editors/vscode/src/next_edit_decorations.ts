import { type Disposable, MarkdownString, Range, type TextEditor, ThemeColor, window } from 'vscode';
import type { NextEdit } from './bulk_wire';
import { drawable, lookOf } from './next_edit_look';

/** Draws the next edit where it is, and the hint after the cursor's line. */
export class NextEditDecorations implements Disposable {
  private readonly removed = window.createTextEditorDecorationType({
    backgroundColor: new ThemeColor('diffEditor.removedTextBackground'),
    textDecoration: 'line-through',
  });
  private readonly added = window.createTextEditorDecorationType({
    after: { backgroundColor: new ThemeColor('diffEditor.insertedTextBackground'), margin: '0 0 0 2px' },
  });
  private readonly hint = window.createTextEditorDecorationType({
    after: { color: new ThemeColor('editorCodeLens.foreground'), fontStyle: 'italic', margin: '0 0 0 2em' },
  });

  /** Draws what an edit removes and adds in an editor of its document. */
  draw(editor: TextEditor, { range, text }: NextEdit): void {
    const lsp = new Range(range.start.line, range.start.character, range.end.line, range.end.character);
    const old = editor.document.getText(lsp).replaceAll('\r\n', '\n');
    const fresh = text.replaceAll('\r\n', '\n');
    const { removed, added } = lookOf(range.start, old, fresh);
    const hoverMessage = new MarkdownString().appendCodeblock(fresh, editor.document.languageId);
    editor.setDecorations(
      this.removed,
      removed ? [new Range(removed.start.line, removed.start.character, removed.end.line, removed.end.character)] : [],
    );
    const shown = added.map(({ at, text: line }) => ({
      // VS Code orders the texts at the end of a line by the starts of their ranges; the hint comes after this.
      range: new Range(at.line, 0, at.line, at.character),
      hoverMessage,
      renderOptions: { after: { contentText: drawable(line) } },
    }));
    editor.setDecorations(this.added, shown);
  }

  /** Draws the hint after the line of the cursor. */
  drawHint(editor: TextEditor, hint: string): void {
    const { range } = editor.document.lineAt(editor.selection.active.line);
    const after = { contentText: drawable(hint) };
    editor.setDecorations(this.hint, [{ range: new Range(range.end, range.end), renderOptions: { after } }]);
  }

  clear(editor: TextEditor): void {
    for (const type of [this.removed, this.added, this.hint]) {
      editor.setDecorations(type, []);
    }
  }

  dispose(): void {
    for (const type of [this.removed, this.added, this.hint]) {
      type.dispose();
    }
  }
}
