import type { CancellationToken, TextEditor } from 'vscode';
import type { LanguageClient } from 'vscode-languageclient/node';
import { NEXT_EDIT, NEXT_EDIT_SHOWN, type NextEdit, type NextEditResult } from './bulk_wire';
import { documentOf } from './next_edit_place';

/** Asks for the next edit at the cursor. Returns undefined if there is none, or if a text has changed meanwhile. */
export async function nextEdit(
  client: LanguageClient,
  { document, selection }: TextEditor,
  token: CancellationToken,
): Promise<NextEdit | undefined> {
  const { version } = document;
  const converter = client.code2ProtocolConverter;
  const params = {
    textDocument: { uri: converter.asUri(document.uri), version },
    position: converter.asPosition(selection.active),
    anyFile: true,
  };
  const answer = await client.sendRequest<NextEditResult | null>(NEXT_EDIT, params, token);
  const edit = answer?.edits[0];
  if (!edit || token.isCancellationRequested || document.version !== version) {
    return undefined;
  }
  const there = documentOf(edit);
  return !there || there.version === edit.textDocument.version ? edit : undefined;
}

/** Tells the server that an edit is shown, as clients of Copilot do. */
export function tellShown(client: LanguageClient, edit: NextEdit): Promise<void> {
  return client.sendNotification(NEXT_EDIT_SHOWN, { item: { command: edit.command } });
}
