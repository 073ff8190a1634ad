import { ProgressLocation, type Selection, type TextEditor, window } from 'vscode';
import type { LanguageClient } from 'vscode-languageclient/node';
import { FILL, type Filled } from './wire';

const FIRST = { undoStopBefore: true, undoStopAfter: false };
const LAST = { undoStopBefore: false, undoStopAfter: true };

/** Replaces the selection by the model's text; one undo restores it. Throws an Error whose message is one line. */
export async function fillSelection(client: LanguageClient, editor: TextEditor): Promise<void> {
  const selection: Selection = editor.selection;
  const { document } = editor;
  const selected = document.getText(selection);
  const start = selection.start;
  // The server cuts the hole from the current document, so the selected text has to be deleted first.
  if (selected && !(await editor.edit(edit => edit.delete(selection), FIRST))) {
    throw new Error('the file cannot be edited');
  }
  const version = document.version;
  const converter = client.code2ProtocolConverter;
  const params = { ...converter.asTextDocumentPositionParams(document, start), budgetMs: 2000 };
  const options = { location: ProgressLocation.Window, title: 'Midspan fills the selection' };
  let text = selected;
  let failure: unknown;
  try {
    text = (await window.withProgress(options, () => client.sendRequest<Filled>(FILL, params))).text || selected;
  } catch (error) {
    failure = error;
  }
  if (document.version !== version) {
    throw new Error('the text was changed while it was filled; undo brings the selection back');
  }
  await editor.edit(edit => edit.insert(start, text), LAST);
  if (failure) {
    throw failure;
  }
  if (text === selected) {
    window.setStatusBarMessage('Midspan: the model has nothing for this hole', 5000);
  }
}
