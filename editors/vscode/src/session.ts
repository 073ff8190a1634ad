import {
  commands,
  DiagnosticSeverity,
  type Disposable,
  type ExtensionContext,
  InlineCompletionTriggerKind,
  type LogOutputChannel,
  languages,
  window,
} from 'vscode';
import {
  ExecuteCommandRequest,
  RevealOutputChannelOn,
  State,
  type TextDocumentIdentifier,
} from 'vscode-languageclient';
import { LanguageClient, TransportKind } from 'vscode-languageclient/node';
import { withAutoClosed } from './auto_closing';
import { OwnCapabilities } from './capabilities';
import { Dismissals } from './dismissal';
import { HeldBackMark } from './held_back';
import { findServer, type Server } from './server';
import { excluded } from './settings';
import type { StatusItem } from './status_item';
import { Silences } from './why';
import { type Broken, DIAGNOSTICS, forServer, type ModelOffer, STATUS, type Status } from './wire';

const RESTART_DELAY_MS = 500;
const MISSING: Broken = {
  state: 'error',
  message: 'Nothing is suggested: the language server is not installed here.',
  brief: 'install the server',
  click: 'Click to install it, or to choose one that you have.',
};

function broken(message: string, brief: string): Broken {
  return { state: 'error', message, brief, click: 'Click to install another one, to choose one, or to read the log.' };
}

/** The language server of this window. It restarts when another server is chosen and stops with the window. */
export class Session implements Disposable {
  readonly dismissals = new Dismissals();
  private readonly mark = new HeldBackMark();
  private readonly silences = new Silences(silence => {
    this.status.explain(silence?.why.summary);
    if (silence?.why.isHeldBack) {
      this.mark.show(silence.document, silence.position);
    } else {
      this.mark.clear();
    }
  });
  private client: LanguageClient | undefined;
  private server: Server | undefined;
  private changes: Promise<void> = Promise.resolve();
  private restarting: NodeJS.Timeout | undefined;

  constructor(
    private readonly context: ExtensionContext,
    private readonly log: LogOutputChannel,
    private readonly status: StatusItem,
    private readonly onMissing: () => void,
    private readonly onOffer: (offer: ModelOffer) => void,
  ) {}

  get isRunning(): boolean {
    return this.client?.state === State.Running;
  }

  /** Where the server comes from that was started last. Throws a one-line Error if none was found. */
  get origin(): Server {
    if (!this.server) {
      throw new Error('the language server was not found; see the log');
    }
    return this.server;
  }

  /** The running client. Throws a one-line Error if there is none. */
  get running(): LanguageClient {
    if (!this.client || !this.isRunning) {
      throw new Error('the language server is not running; see the log');
    }
    return this.client;
  }

  /** Stops the server if there is one, then finds and starts it again. */
  restart(): Promise<void> {
    // One after the other: a client that is stopped during its start does not end its process.
    this.changes = this.changes.then(() => this.stop()).then(() => this.start());
    return this.changes;
  }

  /** Restarts when no further change came for a while, and only if the changes lead to another server. */
  restartSoon(): void {
    clearTimeout(this.restarting);
    this.restarting = setTimeout(async () => {
      const found = await findServer(this.context, this.log).catch(() => undefined);
      if (JSON.stringify(found) !== JSON.stringify(this.server) || !found) {
        await this.restart();
      }
    }, RESTART_DELAY_MS);
  }

  /** Runs a command of the server. */
  execute<Result>(command: string, ...args: unknown[]): Promise<Result> {
    return this.running.sendRequest(ExecuteCommandRequest.type, { command, arguments: args });
  }

  /** Hides the suggestion and tells the server that it was dismissed. */
  dismiss(): Promise<void> {
    return this.dismissals.dismiss(this.isRunning ? this.client : undefined);
  }

  dispose(): Promise<void> {
    clearTimeout(this.restarting);
    this.silences.dispose();
    this.mark.dispose();
    return this.stop();
  }

  private async start(): Promise<void> {
    this.status.show({ state: 'starting', message: 'Looking for the language server.' });
    try {
      this.server = await findServer(this.context, this.log);
      if (!this.server) {
        this.status.show(MISSING);
        this.onMissing();
        return;
      }
      this.log.info(`starting ${[this.server.command, ...this.server.args].join(' ')}, from ${this.server.origin}`);
      this.client = this.createClient(this.server);
      await this.client.start();
      await commands.executeCommand('setContext', 'midspan.ready', true); // Completes a step of the walkthrough.
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.status.show(broken(`The language server did not start: ${reason}`, 'the server did not start'));
      window.showErrorMessage(`Midspan: ${reason}`);
    }
  }

  private async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    this.server = undefined;
    await client?.dispose().catch(() => undefined); // A client that never ran rejects this.
  }

  private createClient({ command, args }: Server): LanguageClient {
    const run = { command, args, transport: TransportKind.stdio };
    const client = new LanguageClient('midspan', 'Midspan', run, {
      documentSelector: [{ scheme: 'file' }, { scheme: 'untitled' }, { scheme: 'vscode-notebook-cell' }],
      outputChannel: this.log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      middleware: {
        workspace: {
          configuration: async (params, token, next) => {
            const answer = await next(params, token);
            return Array.isArray(answer) ? answer.map(section => forServer(section, excluded())) : answer;
          },
        },
        provideInlineCompletionItems: async (document, position, context, token, next) => {
          const answer = await next(document, position, context, token);
          if (!token.isCancellationRequested) {
            this.dismissals.offered(document, answer); // Else the suggestion before it may still be on the screen.
          }
          const { length } = Array.isArray(answer) ? answer : (answer?.items ?? []);
          this.silences.answered(client, document, position, length);
          // Who asks goes through the guesses with keys, and there each item is one.
          return context.triggerKind === InlineCompletionTriggerKind.Automatic ? withAutoClosed(answer) : answer;
        },
      },
    });
    client.registerFeature(new OwnCapabilities());
    client.onRequest(DIAGNOSTICS, ({ uri }: TextDocumentIdentifier) =>
      languages
        .getDiagnostics(client.protocol2CodeConverter.asUri(uri))
        .filter(({ severity }) => severity <= DiagnosticSeverity.Warning)
        .map(({ range, message }) => ({ line: range.start.line, message })),
    );
    client.onNotification(STATUS, (status: Status) => {
      this.status.show(status);
      if (status.offer) {
        this.onOffer(status.offer);
      }
    });
    client.onDidChangeState(({ newState }) => {
      if (newState === State.Starting) {
        this.status.show({ state: 'starting', message: 'Starting the language server.' });
      } else if (newState === State.Stopped && this.client === client) {
        this.status.show(broken('The language server has stopped.', 'the server has stopped'));
      }
    });
    return client;
  }
}
