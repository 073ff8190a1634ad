// What is drawn over the text: the hole as it was cut, and the heat map.
import { RangeSetBuilder, StateEffect, StateField } from '@codemirror/state';
import { Decoration, type DecorationSet, EditorView } from '@codemirror/view';
import type { HeatToken, Trace } from './api.ts';

export const setHole = StateEffect.define<Trace['hole'] | null>();
export const setHeat = StateEffect.define<HeatToken[] | null>();

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

/** Five steps from unlikely to certain; the style has a colour for each. */
export function heatStep(probability: number): number {
  return probability >= 0.9 ? 4 : probability >= 0.5 ? 3 : probability >= 0.15 ? 2 : probability >= 0.02 ? 1 : 0;
}

const heats = [0, 1, 2, 3, 4].map(step => Decoration.mark({ class: `heat heat-${step}` }));

export const heatField = StateField.define<{ tokens: HeatToken[]; marks: DecorationSet }>({
  create: () => ({ tokens: [], marks: Decoration.none }),
  update(heat, transaction) {
    for (const effect of transaction.effects) {
      if (!effect.is(setHeat)) continue;
      const builder = new RangeSetBuilder<Decoration>();
      const tokens = (effect.value ?? []).filter(token => token.to <= transaction.state.doc.length);
      for (const token of tokens) {
        const mark = heats[heatStep(token.probability)];
        if (mark && token.to > token.from) builder.add(token.from, token.to, mark);
      }
      return { tokens, marks: builder.finish() };
    }
    return transaction.docChanged ? { tokens: [], marks: Decoration.none } : heat;
  },
  provide: field => EditorView.decorations.from(field, heat => heat.marks),
});
