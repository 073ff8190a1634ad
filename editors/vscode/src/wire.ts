/** Our additions to standard LSP. The server's side is lsp_server/wire.py. */

export const STATUS = 'midspan/status';
export const CURSOR_MOVED = 'midspan/cursorMoved';
export const WHY = 'midspan/whyThisSuggestion';
export const WHY_NOTHING = 'midspan/whyNoSuggestion';
/** The server asks for a document's errors and warnings. */
export const DIAGNOSTICS = 'midspan/diagnostics';
export const RESTART_ENGINE = 'midspan.restartEngine';
export const REPORT = 'midspan.status';
export const INSTALL_MODEL = 'midspan.installModel';
export const DISMISSED = 'midspan.dismissed';
export const SNOOZE = 'midspan.snooze';

/** A larger model that this machine carries: a sentence with its size, licence and time, and its name. */
export interface ModelOffer {
  text: string;
  model: string;
}

/** What the status item shows. `snoozedUntil` is in seconds since the epoch. */
export interface Status {
  state: 'idle' | 'starting' | 'ready' | 'busy' | 'off' | 'error';
  message: string;
  model?: string | null;
  medianMs?: number | null;
  memory?: string | null;
  snoozedUntil?: number | null;
  offer?: ModelOffer | null;
}

/** What is wrong with the language server itself, which cannot say so: in a few words for the bar, and what a click does. */
export interface Broken extends Status {
  state: 'error';
  brief: string;
  click: string;
}

export interface Report extends Status {
  model: string;
  asked: number;
  reused: number;
  shown: number;
  accepted: number;
  dismissed: number;
  engine: { model: { name: string; device: string } } | null;
}

/** Where the last suggestion came from, or why there is none; lines count from 0. `isHeldBack`: the gate alone hides one. */
export interface Why {
  summary: string;
  isHeldBack: boolean;
  places: { text: string; uri: string; line: number }[];
}

const EXTENSION_ONLY = ['server', 'tab', 'heldBack'];

/** Returns our settings without those that only the extension reads, because the server does not know these. */
export function forServer(section: unknown, exclude: unknown): unknown {
  if (typeof section !== 'object' || section === null) {
    return section;
  }
  return { ...Object.fromEntries(Object.entries(section).filter(([name]) => !EXTENSION_ONLY.includes(name))), exclude };
}
