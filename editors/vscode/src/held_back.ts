import {
  type Disposable,
  type Position,
  Range,
  type TextDocument,
  type TextEditor,
  Uri,
  window,
  workspace,
} from 'vscode';
import { marksHeldBack } from './settings';

// Three dots of a grey that is readable on light and on dark; a breakpoint is one, and red.
const DOTS = [3, 8, 13].map(x => `<circle cx="${x}" cy="8" r="1.6"/>`).join('');
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" fill="#848484">${DOTS}</svg>`;

/** The mark beside the cursor's line where the gate held a suggestion back. Any key takes it away; *Suggest Now* shows that. */
export class HeldBackMark implements Disposable {
  private readonly type = window.createTextEditorDecorationType({
    gutterIconPath: Uri.parse(`data:image/svg+xml,${encodeURIComponent(ICON)}`),
  });
  private readonly watching = [
    window.onDidChangeTextEditorSelection(() => this.clear()),
    window.onDidChangeActiveTextEditor(() => this.clear()),
    // The Delete key moves no cursor; a save changes no text.
    workspace.onDidChangeTextDocument(
      ({ document, contentChanges }) => contentChanges.length && document === this.editor?.document && this.clear(),
    ),
  ];
  private editor: TextEditor | undefined;

  /** Marks the line of `position` if the user wants marks and the cursor is still there. */
  show(document: TextDocument, position: Position): void {
    this.clear();
    const editor = window.activeTextEditor;
    if (marksHeldBack() && editor?.document === document && editor.selection.active.isEqual(position)) {
      this.editor = editor;
      editor.setDecorations(this.type, [new Range(position, position)]);
    }
  }

  clear(): void {
    this.editor?.setDecorations(this.type, []);
    this.editor = undefined;
  }

  dispose(): void {
    for (const watching of this.watching) {
      watching.dispose();
    }
    this.type.dispose();
  }
}
