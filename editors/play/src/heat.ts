// The text as a heat map: how likely each token is, with the text on both sides of it known.
import { type Extension, RangeSet, RangeSetBuilder, StateEffect, StateField } from '@codemirror/state';
import { Decoration, type DecorationSet, EditorView, hoverTooltip } from '@codemirror/view';
import { ask, type HeatToken, type Place, Problem } from './api.ts';
import { make, percent, say, the, visible } from './dom.ts';

const REST_MS = 500;
const MOST_LINES = 400;
const LEVELS = [0.5, 0.2, 0.05, 0.01, 0.001];

/** A token on the text. */
interface Spot {
  from: number;
  to: number;
  token: HeatToken;
}

const addSpots = StateEffect.define<Spot[]>();
const clearSpots = StateEffect.define<null>();

function levelOf(probability: number): number {
  const level = LEVELS.findIndex(least => probability >= least);
  return level < 0 ? LEVELS.length : level;
}

function marksOf(spots: Spot[]): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  for (const { from, to, token } of spots) {
    builder.add(from, to, Decoration.mark({ class: `heat heat-${levelOf(token.probability)}` }));
  }
  return builder.finish();
}

const spotsField = StateField.define<Spot[]>({
  create: () => [],
  update(spots, transaction) {
    if (transaction.docChanged) return [];
    for (const effect of transaction.effects) {
      if (effect.is(clearSpots)) return [];
      if (effect.is(addSpots)) spots = [...spots, ...effect.value].sort((one, other) => one.from - other.from);
    }
    return spots;
  },
  provide: field => EditorView.decorations.from(field, spots => (spots.length ? marksOf(spots) : RangeSet.empty)),
});

function spotAt(view: EditorView, at: number): Spot | undefined {
  return view.state.field(spotsField).find(spot => spot.from <= at && at < spot.to);
}

/** What is said of a token: the token, how likely it is, and what would be likelier. */
function sentence({ token }: Spot): (string | Node)[] {
  const code = (text: string) => make('code', {}, visible(text));
  const parts: (string | Node)[] = [code(token.text), ` ${percent(token.probability)}. Likeliest: `];
  for (const [index, { text, probability }] of token.likeliest.entries()) {
    parts.push(index ? ', ' : '', code(text), ` ${percent(probability)}`);
  }
  return parts;
}

export const heatMap: Extension = [
  spotsField,
  hoverTooltip((view, at) => {
    const spot = spotAt(view, at);
    if (!spot) return null;
    return { pos: spot.from, end: spot.to, above: true, create: () => ({ dom: make('p', { class: 'heat-tip' }, ...sentence(spot)) }) };
  }),
];

export class Heat {
  private run = 0;
  private timer = 0;
  private on = false;
  private readonly button = the<HTMLButtonElement>('heat');
  private readonly note = the('heat-note');

  constructor(
    private readonly view: EditorView,
    private readonly place: () => Place,
    private readonly complain: (error: unknown) => void,
  ) {
    this.button.addEventListener('click', () => this.toggle());
  }

  /** The text or the cursor has changed. */
  changed(textToo: boolean): void {
    if (!this.on) return;
    if (!textToo) return this.tell();
    this.run += 1;
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.scoreLines(), REST_MS);
  }

  private toggle(): void {
    this.on = !this.on;
    this.run += 1;
    window.clearTimeout(this.timer);
    this.button.setAttribute('aria-pressed', String(this.on));
    document.body.classList.toggle('heating', this.on);
    the('heat-legend').hidden = !this.on;
    this.view.dispatch({ effects: clearSpots.of(null) });
    if (this.on) void this.scoreLines();
  }

  /** Ask for line after line, those on the screen first. A change of the text ends it. */
  private async scoreLines(): Promise<void> {
    const run = ++this.run;
    const { doc } = this.view.state;
    const [first, last] = [this.view.viewport.from, this.view.viewport.to].map(at => doc.lineAt(Math.min(at, doc.length)).number);
    const all = Array.from({ length: Math.min(doc.lines, MOST_LINES) }, (_, index) => index + 1);
    const seen = (number: number) => number >= (first ?? 1) && number <= (last ?? 1);
    const order = [...all.filter(seen), ...all.filter(number => !seen(number))].filter(number => doc.line(number).text.trim());
    document.body.dataset.heat = 'running';
    for (const [done, number] of order.entries()) {
      say(this.note, `Line ${done + 1} of ${order.length} is looked at.`);
      try {
        const { tokens } = await ask<{ tokens: HeatToken[] }>('heat', { ...this.place(), at: number - 1 });
        if (run !== this.run) return;
        this.view.dispatch({ effects: addSpots.of(placed(tokens, doc.line(number))) });
      } catch (error) {
        if (run !== this.run) return;
        this.complain(error);
        say(this.note, error instanceof Problem ? error.message : 'The heat map failed here.');
        return;
      }
    }
    document.body.dataset.heat = 'done';
    this.tell();
  }

  /** Say what is known of the token at the cursor: what the mouse shows in passing, the keyboard shows here. */
  private tell(): void {
    if (document.body.dataset.heat !== 'done') return;
    const spot = spotAt(this.view, this.view.state.selection.main.head);
    if (spot) this.note.replaceChildren(...sentence(spot));
    else say(this.note, 'Point at a token, or move the cursor to it, to see what else was likely there.');
  }
}

/** Return where tokens stand in their line. The first one may begin with the line break before it. */
function placed(tokens: HeatToken[], line: { from: number; to: number }): Spot[] {
  const spots: Spot[] = [];
  let at = line.from - (tokens[0]?.text.startsWith('\n') ? 1 : 0);
  for (const token of tokens) {
    const [from, to] = [Math.max(at, line.from), Math.min(at + token.text.length, line.to)];
    if (to > from && token.text.trim()) spots.push({ from, to, token });
    at += token.text.length;
  }
  return spots;
}
