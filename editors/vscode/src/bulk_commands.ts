import { type TextEditor, window } from 'vscode';
import type { BulkEdits } from './bulk_edits';
import type { BulkAction } from './bulk_wire';
import type { NextEdits } from './next_edits';
import type { Session } from './session';

/** Returns the commands of bulk edits and of the next edit, by name. */
export function bulkCommands(session: Session, bulk: BulkEdits, next: NextEdits) {
  const show = (action: BulkAction['action'], scope: BulkAction['scope']) => () =>
    bulk.show(actionAt(session, activeEditor(), action, scope));
  return {
    preview: (action: BulkAction) => bulk.show(action),
    repeatEdit: show('repeat', 'workspace'),
    fillSelection: show('refill', 'selection'),
    fillStubs: show('stubs', 'file'),
    addAnnotations: show('annotations', 'file'),
    addDocstrings: show('docstrings', 'file'),
    goToNextEdit: () => next.go(),
    takeNextEdit: () => next.take(),
    followNextEdit: () => next.follow(),
    dismissNextEdits: () => next.dismiss(),
  };
}

function activeEditor(): TextEditor {
  if (!window.activeTextEditor) {
    throw new Error('open a file first: it is the one that is meant');
  }
  return window.activeTextEditor;
}

function actionAt(
  session: Session,
  { document, selection }: TextEditor,
  action: BulkAction['action'],
  scope: BulkAction['scope'],
): BulkAction {
  const converter = session.running.code2ProtocolConverter;
  const { uri, version } = document;
  return { action, scope, uri: converter.asUri(uri), version, range: converter.asRange(selection) };
}
