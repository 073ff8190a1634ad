import type { BulkEdit } from './bulk_wire';

/** What the extension sends to the preview. */
export type ToPreview = { type: 'show'; edit: BulkEdit } | { type: 'stale'; message: string };

/** What the preview sends to the extension. Places are given by their ids. */
export type FromPreview =
  | { type: 'ready' }
  | { type: 'apply'; places: number[] }
  | { type: 'open'; uri: string; line: number }
  | { type: 'again' }
  | { type: 'cancel' };
