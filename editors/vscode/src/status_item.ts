import { type Disposable, StatusBarAlignment, type StatusBarItem, ThemeColor, window, workspace } from 'vscode';
import { isAutomatic, isOn } from './settings';
import { shown } from './status_text';
import type { Broken, Status } from './wire';

/** The item in the status bar. It shows the server's latest status for the language of the active editor. */
export class StatusItem implements Disposable {
  private readonly item: StatusBarItem;
  private readonly subscriptions: Disposable[];
  private reason: string | undefined;
  private latest: Status | Broken = { state: 'starting', message: 'Looking for the language server.' };

  constructor() {
    this.item = window.createStatusBarItem('status', StatusBarAlignment.Right, 100);
    this.item.name = 'Midspan';
    this.subscriptions = [
      this.item,
      window.onDidChangeActiveTextEditor(() => {
        this.reason = undefined;
        this.refresh();
      }),
      workspace.onDidOpenTextDocument(() => this.refresh()),
      workspace.onDidChangeConfiguration(event => event.affectsConfiguration('midspan') && this.refresh()),
    ];
    this.refresh();
    this.item.show();
  }

  /** The server's latest status. */
  get status(): Status {
    return this.latest;
  }

  show(status: Status | Broken): void {
    this.latest = status;
    this.refresh();
  }

  /** Says in the tooltip why nothing is shown, or nothing of that. */
  explain(reason: string | undefined): void {
    if (reason !== this.reason) {
      this.reason = reason;
      this.refresh();
    }
  }

  dispose(): void {
    for (const subscription of this.subscriptions) {
      subscription.dispose();
    }
  }

  private refresh(): void {
    const language = window.activeTextEditor?.document.languageId;
    const { text, tooltip, severity } = shown(this.latest, {
      language: language ? { id: language, on: isOn(language) } : undefined,
      automatic: isAutomatic(),
      silence: this.reason,
    });
    this.item.text = text;
    this.item.tooltip = tooltip;
    this.item.backgroundColor = severity === 'error' ? new ThemeColor('statusBarItem.errorBackground') : undefined;
    this.item.command = severity === 'error' ? 'midspan.mendServer' : 'midspan.showMenu';
  }
}
