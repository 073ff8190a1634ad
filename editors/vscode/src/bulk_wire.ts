/** The messages of bulk edits and of the next edit. The server's side is lsp_server/wire.py. */

export const BULK_EDIT = 'midspan/bulkEdit';
export const APPLY_BULK_EDIT = 'midspan/applyBulkEdit';
export const NEXT_EDIT = 'textDocument/copilotInlineEdit';
export const NEXT_EDIT_SHOWN = 'textDocument/didShowInlineEdit';
export const NEXT_EDIT_DISMISSED = 'midspan.nextEditDismissed';

export interface Position {
  line: number;
  character: number;
}

export interface Range {
  start: Position;
  end: Position;
}

/** What a code action does, for one version of a document. */
export interface BulkAction {
  action: 'repeat' | 'stubs' | 'annotations' | 'docstrings' | 'refill' | 'paste';
  scope: 'selection' | 'file' | 'workspace';
  uri: string;
  version: number;
  range: Range;
}

/**
 * One place that changes. `before` and `after` are whole lines, without the last line end. Of the `wide` ones, which only the
 * widest form of the rule fits, the user takes all or some.
 */
export interface BulkPlace {
  id: number;
  uri: string;
  path: string;
  range: Range;
  before: string;
  after: string;
  reason: string;
  doubtful: boolean;
  wide: boolean;
}

/** A place that was left out; `line` counts from 0. */
export interface BulkOmission {
  uri: string;
  path: string;
  line: number;
  reason: string;
}

/**
 * What an action would change. With `exclusive` the places are answers to choose one of. `following` has what follows the
 * chosen places of its file, such as imports: it is shown, and cannot be chosen.
 */
export interface BulkEdit {
  id: number;
  title: string;
  rule: string;
  places: BulkPlace[];
  leftOut: BulkOmission[];
  reached: string[];
  exclusive: boolean;
  following: BulkPlace[];
}

export interface ApplyResult {
  applied: boolean;
  message: string;
}

/** The edit to offer: `text` takes the place of `range`. `remaining` counts the places with this one. */
export interface NextEdit {
  text: string;
  range: Range;
  textDocument: { uri: string; version: number };
  command: { command: string; arguments?: unknown[] };
  remaining: number;
}

export interface NextEditResult {
  edits: NextEdit[];
}
