import { randomBytes } from 'node:crypto';
import { type Disposable, Uri, ViewColumn, type WebviewPanel, window } from 'vscode';
import type { BulkEdit } from './bulk_wire';
import type { FromPreview, ToPreview } from './preview_messages';
import { previewPage } from './preview_page';

/** A panel beside the editor that shows what a bulk edit changes, with a box to tick at each place. */
export class Preview implements Disposable {
  private readonly panel: WebviewPanel;

  constructor(extension: Uri, edit: BulkEdit, onMessage: (message: FromPreview) => void, onClose: () => void) {
    const folder = Uri.joinPath(extension, 'dist');
    this.panel = window.createWebviewPanel('midspan.preview', `Midspan: ${edit.title}`, ViewColumn.Beside, {
      enableScripts: true,
      localResourceRoots: [folder],
    });
    this.panel.iconPath = Uri.joinPath(extension, 'images', 'icon.png');
    const { webview } = this.panel;
    webview.onDidReceiveMessage((message: FromPreview) => {
      // A hidden panel forgets its page, which then asks for the edit again.
      if (message.type === 'ready') {
        this.post({ type: 'show', edit });
      } else {
        onMessage(message);
      }
    });
    this.panel.onDidDispose(onClose);
    webview.html = previewPage({
      source: webview.cspSource,
      nonce: randomBytes(16).toString('hex'),
      script: webview.asWebviewUri(Uri.joinPath(folder, 'preview.js')).toString(),
      style: webview.asWebviewUri(Uri.joinPath(folder, 'preview.css')).toString(),
    });
  }

  /** Tells that the edit is out of date. */
  warn(message: string): void {
    this.post({ type: 'stale', message });
  }

  dispose(): void {
    this.panel.dispose();
  }

  private post(message: ToPreview): void {
    void this.panel.webview.postMessage(message);
  }
}
