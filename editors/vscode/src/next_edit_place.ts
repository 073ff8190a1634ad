import { EndOfLine, Range, type TextDocument, type TextEditor, Uri, workspace } from 'vscode';
import type { NextEdit } from './bulk_wire';

export function rangeOf({ range: { start, end } }: NextEdit): Range {
  return new Range(start.line, start.character, end.line, end.character);
}

/** The document of an edit; undefined if it is not open. */
export function documentOf(edit: NextEdit): TextDocument | undefined {
  const uri = Uri.parse(edit.textDocument.uri).toString();
  return workspace.textDocuments.find(document => document.uri.toString() === uri);
}

/** Whether an editor shows the document of an edit. */
export function isOf(editor: TextEditor, edit: NextEdit): boolean {
  return editor.document === documentOf(edit);
}

/** Whether the cursor of an editor is on the lines of an edit. */
export function isAt(editor: TextEditor | undefined, edit: NextEdit): boolean {
  const line = editor?.selection.active.line ?? -1;
  return editor !== undefined && isOf(editor, edit) && edit.range.start.line <= line && line <= edit.range.end.line;
}

/** The length of a text once it is in a document, whose line ends it gets. */
export function lengthIn(document: TextDocument, text: string): number {
  const lines = text.replaceAll('\r\n', '\n');
  return document.eol === EndOfLine.CRLF ? lines.replaceAll('\n', '\r\n').length : lines.length;
}
