import {
  commands,
  type InlineCompletionItem,
  type InlineCompletionList,
  type Position,
  type TextDocument,
  window,
} from 'vscode';
import { ExecuteCommandRequest } from 'vscode-languageclient';
import type { LanguageClient } from 'vscode-languageclient/node';
import { DISMISSED } from './wire';

/** Remembers the document of our last suggestion, so that Escape can tell the server that it was dismissed. */
export class Dismissals {
  private uri: string | undefined;

  offered(document: TextDocument, answer: InlineCompletionItem[] | InlineCompletionList | null | undefined): void {
    const items = Array.isArray(answer) ? answer : (answer?.items ?? []);
    this.uri = items.length > 0 ? document.uri.toString() : undefined;
  }

  /** Hides the suggestion, as Escape always does. Tells the server if the suggestion may have been ours. */
  async dismiss(client: LanguageClient | undefined): Promise<void> {
    const editor = window.activeTextEditor;
    await commands.executeCommand('editor.action.inlineSuggest.hide');
    if (client && editor && editor.document.uri.toString() === this.uri) {
      await tell(client, editor.document, editor.selection.active);
    }
  }
}

async function tell(client: LanguageClient, document: TextDocument, position: Position): Promise<void> {
  const converter = client.code2ProtocolConverter;
  const place = { uri: converter.asUri(document.uri), position: converter.asPosition(position) };
  await client.sendRequest(ExecuteCommandRequest.type, { command: DISMISSED, arguments: [place] });
}
