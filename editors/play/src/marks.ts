// What is drawn over the text: the hole as it was cut.
import { StateEffect, StateField } from '@codemirror/state';
import { Decoration, type DecorationSet, EditorView } from '@codemirror/view';
import type { Trace } from './api.ts';

export const setHole = StateEffect.define<Trace['hole'] | null>();

const unread = Decoration.mark({ class: 'unread' });
const hidden = Decoration.mark({ class: 'from-model-hidden' });
const holeLine = Decoration.line({ class: 'hole-line' });

export const holeField = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, transaction) {
    marks = marks.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (!effect.is(setHole)) continue;
      const hole = effect.value;
      if (!hole) return Decoration.none;
      const length = transaction.state.doc.length;
      const [from, to] = [Math.min(hole.read[0], length), Math.min(hole.read[1], length)];
      const [closed, closes] = [Math.min(hole.hidden[0], length), Math.min(hole.hidden[1], length)];
      const ranges = [holeLine.range(transaction.state.doc.lineAt(closed).from)];
      if (from > 0) ranges.push(unread.range(0, from));
      if (closes > closed) ranges.push(hidden.range(closed, closes));
      if (to < length) ranges.push(unread.range(to, length));
      return Decoration.set(ranges, true);
    }
    return marks;
  },
  provide: field => EditorView.decorations.from(field),
});
