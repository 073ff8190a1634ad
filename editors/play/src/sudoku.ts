// A Sudoku that a small network fills from all sides, pass by pass.
import { ask, type Cell, type Solved } from './api.ts';
import { counted, make, milliseconds, say, the } from './dom.ts';
import { Player } from './player.ts';
import { arrow, check } from './radio.ts';

const SIDE = 9;
const CELLS = SIDE * SIDE;
const GAP_MS = 350;
const WAYS = [
  { way: 'sides', name: 'From all sides', about: 'the surest cells first, in at most 20 passes' },
  { way: 'doubts', name: 'With second thoughts', about: 'the same, and a written digit may be taken back' },
  { way: 'left', name: 'Left to right', about: 'the same network, one cell after the other' },
] as const;
type Way = (typeof WAYS)[number]['way'];

interface Card {
  root: HTMLButtonElement;
  passes: HTMLElement;
  ms: HTMLElement;
  verdict: HTMLElement;
  solved: Solved | null;
}

export class Sudoku {
  private puzzles: string[] = [];
  private number = 0;
  private chosen: Way = 'sides';
  private run = 0;
  private readonly cells: { root: HTMLElement; digit: HTMLElement; gone: HTMLElement }[] = [];
  private readonly cards = new Map<Way, Card>();
  private readonly player: Player;
  private readonly fillButton = the<HTMLButtonElement>('sudoku-fill');

  constructor(private readonly complain: (error: unknown) => void) {
    for (let at = 0; at < CELLS; at += 1) {
      const digit = make('span', { class: 'digit' });
      const gone = make('span', { class: 'gone' });
      const root = make('div', { class: 'cell' }, gone, digit);
      this.cells.push({ root, digit, gone });
    }
    the('grid').append(...this.cells.map(cell => cell.root));
    for (const { way, name, about } of WAYS) {
      const [passes, ms, verdict] = [make('strong', { class: 'passes' }, '–'), make('span', { class: 'ms' }), make('span', { class: 'about' })];
      const root = make('button', { type: 'button', role: 'radio', class: 'card' });
      root.append(make('span', { class: 'name' }, name), make('span', { class: 'about' }, about));
      root.append(make('span', { class: 'numbers' }, passes, ms), verdict);
      root.addEventListener('click', () => this.choose(way));
      root.addEventListener('keydown', event => arrow(event, this.cards, way, next => this.choose(next)));
      this.cards.set(way, { root, passes, ms, verdict, solved: null });
      the('sudoku-cards').append(root);
    }
    this.player = new Player(the('sudoku-player'), index => this.draw(index), GAP_MS);
    this.fillButton.addEventListener('click', () => void this.fill());
    the('sudoku-next').addEventListener('click', () => this.show(this.number + 1));
    check(this.cards, this.chosen);
  }

  /** Fetch the puzzles and show the first one; fill it at once if `fills`. */
  async begin(fills: boolean): Promise<void> {
    this.puzzles = (await ask<{ puzzles: string[] }>('puzzles')).puzzles;
    this.show(0);
    if (fills) await this.fill();
  }

  private get puzzle(): string {
    return this.puzzles[this.number] ?? '.'.repeat(CELLS);
  }

  private show(number: number): void {
    this.run += 1;
    this.number = number % Math.max(1, this.puzzles.length);
    for (const card of this.cards.values()) {
      card.solved = null;
      say(card.passes, '–');
      say(card.ms, '');
      say(card.verdict, '');
    }
    this.fillButton.disabled = false;
    delete document.body.dataset.sudoku;
    this.player.load(0, false);
  }

  private async fill(): Promise<void> {
    const run = ++this.run;
    this.fillButton.disabled = true;
    try {
      for (const { way } of WAYS) {
        const solved = await ask<Solved>('sudoku', { puzzle: this.puzzle, way });
        if (run !== this.run) return;
        this.put(way, solved);
        if (way === this.chosen) this.player.load(solved.passes.length, true);
      }
      document.body.dataset.sudoku = 'done';
    } catch (error) {
      if (run === this.run) this.complain(error);
    }
    if (run === this.run) this.fillButton.disabled = false;
  }

  private put(way: Way, solved: Solved): void {
    const card = this.cards.get(way);
    if (!card) return;
    card.solved = solved;
    say(card.passes, counted(solved.passes.length, 'pass', 'passes'));
    say(card.ms, milliseconds(solved.ms));
    say(card.verdict, solved.right ? 'Solved.' : 'Not solved: a digit stands twice.');
  }

  private draw(index: number): void {
    const passes = this.cards.get(this.chosen)?.solved?.passes ?? [];
    const [now, before] = [passes[index], passes[index - 1]];
    const known = new Set((before?.cells ?? []).filter(cell => cell.state === 'written').map(cell => cell.at));
    const byCell = new Map<number, Cell>();
    const refused = new Map<number, Cell>();
    for (const cell of now?.cells ?? []) (cell.state === 'refused' ? refused : byCell).set(cell.at, cell);
    let written = 0;
    for (const [at, { root, digit, gone }] of this.cells.entries()) {
      const given = this.puzzle[at] !== '.';
      const cell = byCell.get(at);
      const isWritten = cell?.state === 'written' || cell?.state === 'verified';
      written += Number(given || isWritten);
      const state = given ? 'given' : isWritten ? (known.has(at) ? 'written' : 'written fresh') : 'open';
      root.className = `cell ${state}${refused.has(at) ? ' back' : ''}`;
      say(digit, given ? (this.puzzle[at] ?? '') : (cell?.text ?? ''));
      say(gone, refused.get(at)?.text ?? '');
    }
    const text = now ? `pass ${now.step} of ${passes.length}, ${written} of ${CELLS} cells` : `${written} of ${CELLS} cells given`;
    say(the('sudoku-pass'), text);
    the('grid').setAttribute('aria-label', `The grid: ${text}`);
  }

  private choose(way: Way): void {
    this.chosen = way;
    check(this.cards, this.chosen);
    this.player.load(this.cards.get(way)?.solved?.passes.length ?? 0, true);
  }
}
