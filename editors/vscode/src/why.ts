import { type QuickPickItem, Range, Uri, window } from 'vscode';
import type { LanguageClient } from 'vscode-languageclient/node';
import { WHY, type Why } from './wire';

interface Choice extends QuickPickItem {
  uri: Uri;
  line: number;
}

/** Shows where the last suggestion in the active editor came from. Choosing a place opens it. */
export async function whyThisSuggestion(client: LanguageClient): Promise<void> {
  const document = window.activeTextEditor?.document;
  if (!document) {
    throw new Error('open a file first: its last suggestion is the one that is explained');
  }
  const params = { textDocument: { uri: client.code2ProtocolConverter.asUri(document.uri) } };
  const { summary, places } = await client.sendRequest<Why>(WHY, params);
  if (!places.length) {
    window.showInformationMessage(`Midspan: ${summary}`);
    return;
  }
  const choices: Choice[] = places.map(({ text, uri, line }) => {
    // One line is too narrow for all of it.
    const end = text.lastIndexOf('; ');
    return { label: text.slice(0, end), detail: text.slice(end + 2), uri: Uri.parse(uri), line };
  });
  const chosen = await window.showQuickPick(choices, { title: 'Why This Suggestion?', placeHolder: summary });
  if (chosen) {
    const selection = new Range(chosen.line, 0, chosen.line, 0);
    await window.showTextDocument(chosen.uri, { selection });
  }
}
