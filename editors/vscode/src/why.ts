import { type Position, type QuickPickItem, Range, type TextDocument, Uri, window } from 'vscode';
import type { LanguageClient } from 'vscode-languageclient/node';
import { WHY, WHY_NOTHING, type Why } from './wire';

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

/** Says why nothing is shown in the active editor. */
export async function whyNoSuggestion(client: LanguageClient): Promise<void> {
  const document = window.activeTextEditor?.document;
  if (!document) {
    throw new Error('open a file first: its last request is the one that is explained');
  }
  window.showInformationMessage(`Midspan: ${(await whyNothing(client, document)).summary}`);
}

function whyNothing(client: LanguageClient, { uri }: TextDocument): Promise<Why> {
  return client.sendRequest<Why>(WHY_NOTHING, { textDocument: { uri: client.code2ProtocolConverter.asUri(uri) } });
}

const PAUSE_MS = 500;

/** Why the last request, which was at `position`, showed nothing. */
interface Silence {
  why: Why;
  document: TextDocument;
  position: Position;
}

/**
 * Asks why nothing is shown once the user pauses, for the tooltip of the status item and the mark of what was held back.
 * No key press waits for it.
 */
export class Silences {
  private waiting: NodeJS.Timeout | undefined;

  /** `show` gets the reason and where; nothing once there is a suggestion. */
  constructor(private readonly show: (silence?: Silence) => void) {}

  /** Notes how many items answered a request that was made while the user typed. */
  answered(client: LanguageClient, document: TextDocument, position: Position, count: number): void {
    this.dispose();
    if (count > 0) {
      this.show();
    } else {
      const ask = () =>
        whyNothing(client, document).then(
          why => this.show({ why, document, position }),
          () => undefined,
        );
      this.waiting = setTimeout(ask, PAUSE_MS);
    }
  }

  dispose(): void {
    clearTimeout(this.waiting);
  }
}
