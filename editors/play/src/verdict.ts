// What shaping cut of the model's text, what the gate shows of the rest, and the number that decided.
import type { Verdict } from './api.ts';
import { make, percent, the } from './dom.ts';

/** A text with the parts that the next stage dropped struck through. */
function kept(text: string, part: string): HTMLElement {
  const code = make('code', { class: 'text' });
  const at = part.trim() ? text.indexOf(part.trim().split('\n')[0] ?? '') : -1;
  if (!text) return make('code', { class: 'text' }, '(nothing)');
  if (at < 0) code.append(make('del', {}, text));
  else {
    const end = Math.min(text.length, at + part.trim().length);
    if (at) code.append(make('del', {}, text.slice(0, at)));
    code.append(text.slice(at, end));
    if (end < text.length) code.append(make('del', {}, text.slice(end)));
  }
  return code;
}

/** What it saves on average to show a text, as the rest of a sentence. */
function balance(worth: number): string {
  const keys = `${Math.abs(worth).toFixed(1)} keys`;
  return worth < 0 ? `to read it costs ${keys} more than it saves` : `it saves ${keys} more than it costs to read`;
}

function reason(verdict: Verdict): string {
  if (!verdict.written.trim()) return 'The model wrote nothing here.';
  if (!verdict.shaped) return 'Shaping left nothing: it repeats what follows, or does not parse there.';
  const sure = percent(verdict.confidence);
  if (verdict.shown) return `Shown: it is ${sure} sure, and on average ${balance(verdict.worth)}.`;
  if (verdict.needed > 1) return `Kept back: so short a text saves less than a look at it costs.`;
  return `Kept back: it is ${sure} sure, and a text of this length needs ${percent(verdict.needed)}; ${balance(verdict.worth)}.`;
}

export function showVerdict(verdict: Verdict): void {
  const gauge = make('div', { class: 'gauge', role: 'img' });
  gauge.setAttribute('aria-label', `${percent(verdict.confidence)} sure, ${percent(verdict.needed)} needed`);
  const fill = make('span', { class: verdict.shown ? 'sure' : 'sure low' });
  fill.style.width = `${100 * Math.min(1, verdict.confidence)}%`;
  const needed = make('span', { class: 'needed' });
  needed.style.left = `${100 * Math.min(1, verdict.needed)}%`;
  gauge.append(fill, needed);
  const stages: [string, HTMLElement][] = [
    ['The model wrote', kept(verdict.written, verdict.shaped)],
    ['Shaping kept', kept(verdict.shaped, verdict.shown)],
    ['The gate shows', make('code', { class: 'text' }, verdict.shown || '(nothing)')],
  ];
  const list = make('dl', {});
  for (const [name, text] of stages) list.append(make('div', {}, make('dt', {}, name), make('dd', {}, text)));
  the('gate').classList.remove('pending');
  the('verdict').replaceChildren(list, gauge, make('p', { class: 'reason' }, reason(verdict)));
}
