// The same hole, filled three ways: passes, milliseconds and text side by side; a card shows its way on the canvas.
import type { Rule, Trace } from './api.ts';
import { counted, make, milliseconds, say, the } from './dom.ts';
import { arrow, check } from './radio.ts';

export const WAYS: { rule: Rule; name: string; about: string }[] = [
  { rule: 'left-to-right', name: 'Left to right', about: 'one token a pass' },
  { rule: 'threshold', name: 'Denoising', about: 'all that is sure, in any order' },
  { rule: 'verify', name: 'Draft and verify', about: 'left to right’s text in fewer passes' },
];

/** What a card and the canvas say until the hole at the cursor is filled. */
export const PENDING = 'pending';

interface Card {
  root: HTMLButtonElement;
  passes: HTMLElement;
  bar: HTMLElement;
  ms: HTMLElement;
  text: HTMLElement;
  trace: Trace | null;
  /** Why there is no trace. */
  why: string;
}

export class Ways {
  private readonly cards = new Map<Rule, Card>();
  chosen: Rule = 'threshold';

  /** `show` draws the chosen way; without a trace it says why. */
  constructor(private readonly show: (trace: Trace | null, why: string) => void) {
    for (const { rule, name, about } of WAYS) {
      const passes = make('strong', { class: 'passes' }, '–');
      const ms = make('span', { class: 'ms' });
      const bar = make('span', { class: 'bar-fill' });
      const text = make('code', { class: 'text' });
      const root = make('button', { type: 'button', role: 'radio', class: 'card' });
      root.append(
        make('span', { class: 'name' }, name),
        make('span', { class: 'about' }, about),
        make('span', { class: 'numbers' }, passes, ms),
        make('span', { class: 'bar-track', 'aria-hidden': 'true' }, bar),
        text,
      );
      root.addEventListener('click', () => this.choose(rule));
      root.addEventListener('keydown', event => arrow(event, this.cards, rule, next => this.choose(next)));
      this.cards.set(rule, { root, passes, bar, ms, text, trace: null, why: PENDING });
      the('cards').append(root);
    }
    check(this.cards, this.chosen);
  }

  /** The chosen way first, then the others. */
  order(): Rule[] {
    return [...this.cards.keys()].sort((one, other) => Number(other === this.chosen) - Number(one === this.chosen));
  }

  /** The text or the cursor is another one: what the cards said is no longer true. */
  wait(): void {
    for (const card of this.cards.values()) {
      card.trace = null;
      card.why = PENDING;
      card.root.classList.add('pending');
      say(card.ms, PENDING);
    }
  }

  put(rule: Rule, trace: Trace): void {
    const card = this.cards.get(rule);
    if (!card) return;
    card.trace = trace;
    say(card.passes, counted(trace.steps, 'pass', 'passes'));
    say(card.ms, milliseconds(trace.ms.denoise));
    say(card.text, trace.verdict.written || '(nothing)');
    card.root.classList.remove('failed', 'pending');
    const most = Math.max(1, ...[...this.cards.values()].map(each => each.trace?.steps ?? 0));
    for (const each of this.cards.values()) each.bar.style.width = `${(100 * (each.trace?.steps ?? 0)) / most}%`;
  }

  fail(rule: Rule, reason: string): void {
    const card = this.cards.get(rule);
    if (!card) return;
    card.trace = null;
    card.why = reason;
    card.bar.style.width = '0';
    say(card.passes, '–');
    say(card.ms, '');
    say(card.text, reason);
    card.root.classList.remove('pending');
    card.root.classList.add('failed');
  }

  private choose(rule: Rule): void {
    this.chosen = rule;
    check(this.cards, this.chosen);
    const card = this.cards.get(rule);
    if (card) this.show(card.trace, card.why);
  }
}
