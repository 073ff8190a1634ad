// The canvas, pass by pass: tiles of the tokens, a roll of all passes, and a player that goes back and forth.
import type { Cell, Origin, Trace } from './api.ts';
import { counted, make, milliseconds, percent, say, the, visible } from './dom.ts';
import { Player } from './player.ts';

const SOURCES = ['the model', 'this file', 'the workspace'] as const;
const STATES: Record<Cell['state'], string> = {
  written: 'written by this or an earlier pass',
  verified: 'drafted, then verified',
  refused: 'drafted, then thrown away',
  draft: 'drafted; the next pass verifies it',
  mask: 'a mask',
};

/** A tile's elements, made once and filled for each pass: scrubbing makes nothing new. */
interface Tile {
  root: HTMLButtonElement;
  text: HTMLSpanElement;
  refused: HTMLSpanElement;
  bars: HTMLSpanElement[];
  chance: HTMLSpanElement;
}

function makeTile(chosen: () => void): Tile {
  const bars = SOURCES.map((_, index) => make('span', { class: `part part-${index}` }));
  const refused = make('span', { class: 'refused' });
  const text = make('span', { class: 'word' });
  const chance = make('span', { class: 'chance' });
  const root = make('button', { type: 'button', class: 'tile' });
  root.append(refused, text, make('span', { class: 'parts', 'aria-hidden': 'true' }, ...bars), chance);
  root.addEventListener('click', chosen);
  return { root, text, refused, bars, chance };
}

/** What a position has in a pass: its cell, and what was refused there. */
interface Spot {
  cell: Cell | undefined;
  refused: Cell | undefined;
}

function spotsOf(cells: Cell[], width: number): Spot[] {
  const spots: Spot[] = Array.from({ length: width }, () => ({ cell: undefined, refused: undefined }));
  for (const cell of cells) {
    const spot = spots[cell.at];
    if (!spot) continue;
    if (cell.state === 'refused') spot.refused ??= cell;
    else spot.cell = cell;
  }
  return spots;
}

export class Canvas {
  private trace: Trace | null = null;
  private frames: Spot[][] = [];
  private shown = 0;
  private chosen = -1;
  private tiles: Tile[] = [];
  private readonly player = new Player(the('player'), index => this.draw(index));
  private readonly roll = make('canvas', { role: 'img' });
  private readonly shares: { bar: HTMLElement; value: HTMLElement }[] = [];

  /** `open` shows the place that a token came from. */
  constructor(private readonly open: (origin: Origin) => void) {
    the('roll').append(this.roll);
    this.roll.addEventListener('click', event => {
      const y = event.offsetY / this.roll.clientHeight;
      this.player.stopAt(Math.floor(y * this.frames.length));
    });
    for (const [index, name] of SOURCES.entries()) {
      const bar = make('span', { class: `share part-${index}` });
      const value = make('span', { class: 'value' });
      this.shares.push({ bar, value });
      the('shares').append(
        make('div', { class: 'source' }, make('span', {}, name), make('span', { class: 'track' }, bar), value),
      );
    }
    new ResizeObserver(() => this.drawRoll()).observe(the('roll'));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.drawRoll());
  }

  /** Say why there is no fill of this hole yet. The one of the last hole stays, and is pale. */
  wait(why: string): void {
    this.player.stopAt(this.shown);
    the('canvas').classList.add('pending');
    say(the('pass'), why);
  }

  /** Show another fill: its last pass, or from the first one on if `plays`. */
  show(trace: Trace, plays: boolean): void {
    this.trace = trace;
    const width = Math.max(0, ...trace.passes.flatMap(pass => pass.cells.map(cell => cell.at + 1)));
    this.frames = trace.passes.map(pass => spotsOf(pass.cells, width));
    while (this.tiles.length < width) {
      const at = this.tiles.length;
      this.tiles.push(makeTile(() => this.choose(at)));
    }
    the('tiles').replaceChildren(...this.tiles.slice(0, width).map(tile => tile.root));
    this.chosen = -1;
    the('canvas').classList.remove('pending');
    this.drawRoll();
    this.player.load(this.frames.length, plays);
  }

  /** Show a pass. It changes only what differs, so that a drag on the slider keeps up with the screen. */
  private draw(index: number): void {
    this.shown = index;
    const frame = this.frames[this.shown] ?? [];
    for (const [at, spot] of frame.entries()) this.fill(this.tiles[at], spot);
    const pass = this.trace?.passes[this.shown];
    const total = this.frames.length;
    say(the('pass'), pass ? `pass ${pass.step} of ${total}, ${milliseconds(pass.ms)}` : 'no pass was needed');
    this.drawShares(frame);
    this.markRoll();
    this.tell();
  }

  private fill(tile: Tile | undefined, { cell, refused }: Spot): void {
    if (!tile) return;
    const state = cell?.state ?? 'none';
    const word = !cell ? '' : cell.state === 'mask' && !cell.text ? '░' : visible(cell.text);
    tile.root.className = `tile ${state}${refused ? ' over' : ''}`;
    tile.root.disabled = !cell && !refused;
    say(tile.text, word);
    say(tile.refused, refused ? visible(refused.text) : '');
    const known = cell?.probability ?? null;
    say(tile.chance, known === null ? '' : `${Math.round(known * 100)}`);
    const parts = cell?.shares.length ? cell.shares : [1, 0, 0];
    for (const [index, bar] of tile.bars.entries()) {
      bar.style.width = `${100 * (known ?? 0) * (parts[index] ?? 0)}%`;
    }
  }

  private drawShares(frame: Spot[]): void {
    const committed = frame.flatMap(({ cell }) => (cell && /written|verified/.test(cell.state) ? [cell] : []));
    for (const [index, { bar, value }] of this.shares.entries()) {
      const sum = committed.reduce((all, cell) => all + (cell.shares.length ? (cell.shares[index] ?? 0) : Number(!index)), 0);
      const share = committed.length ? sum / committed.length : 0;
      bar.style.width = `${100 * share}%`;
      say(value, committed.length ? percent(share) : '');
    }
  }

  private choose(at: number): void {
    this.chosen = this.chosen === at ? -1 : at;
    this.tell();
  }

  /** Say what is known of the chosen token, and offer the place that it came from. */
  private tell(): void {
    for (const [at, tile] of this.tiles.entries()) tile.root.setAttribute('aria-pressed', String(at === this.chosen));
    const spot = this.frames[this.shown]?.[this.chosen];
    const about = the('token');
    if (!spot?.cell) {
      const hint = this.frames.length ? 'Choose a token to see where it came from.' : '';
      about.replaceChildren(make('p', { class: 'note' }, hint));
      return;
    }
    const { cell, refused } = spot;
    const chance = cell.probability === null ? '' : `, ${percent(cell.probability)}`;
    const head = make('p', {}, make('code', {}, visible(cell.text)), ` ${STATES[cell.state]}${chance}`);
    if (refused) head.append('; instead of ', make('code', {}, visible(refused.text)), ', thrown away');
    const lines: HTMLElement[] = [head];
    const origin = this.originOf(this.chosen);
    if (origin && /written|verified/.test(cell.state)) {
      const place = make('button', { type: 'button', class: 'link' }, `${origin.path}:${origin.line}`);
      place.addEventListener('click', () => this.open(origin));
      const times = `, ${origin.count} of ${counted(origin.total, 'time', 'times')}; the model alone ${percent(origin.alone)}`;
      lines.push(make('p', {}, 'from ', place, times));
    } else if (/written|verified/.test(cell.state)) {
      lines.push(make('p', {}, 'from the model; no known file gave more to it'));
    }
    about.replaceChildren(...lines);
  }

  private originOf(at: number): Origin | undefined {
    const trace = this.trace;
    if (!trace) return undefined;
    const start = trace.tokens.slice(0, at).join('').length;
    const end = start + (trace.tokens[at]?.length ?? 0);
    return trace.origins.find(origin => origin.start < end && origin.start + origin.text.length > start);
  }

  /** Draw all passes, a row each: what was certain when. */
  drawRoll(): void {
    const rows = this.frames.length;
    const columns = this.frames[0]?.length ?? 0;
    const box = the('roll');
    const height = Math.max(1, Math.min(rows * 12, box.clientHeight));
    const ratio = window.devicePixelRatio || 1;
    this.roll.style.height = `${height}px`;
    this.roll.width = Math.max(1, box.clientWidth * ratio);
    this.roll.height = height * ratio;
    this.roll.setAttribute('aria-label', `${counted(rows, 'pass', 'passes')} over ${counted(columns, 'position', 'positions')}`);
    const pen = this.roll.getContext('2d');
    if (!pen || !columns) return;
    const style = getComputedStyle(box);
    const colour = (name: string): string => style.getPropertyValue(name);
    const [w, h] = [Math.min(this.roll.width / columns, 26 * ratio), this.roll.height / rows];
    for (const [y, frame] of this.frames.entries()) {
      for (const [x, { cell, refused }] of frame.entries()) {
        if (!cell && !refused) continue;
        const state = cell?.state ?? 'refused';
        const sure = cell?.probability ?? 0.5;
        pen.globalAlpha = state === 'mask' || state === 'draft' ? 0.35 : 0.35 + 0.65 * sure;
        pen.fillStyle = colour(refused ? '--refused' : state === 'mask' ? '--mask' : sourceColour(cell));
        const inset = state === 'draft' ? 0.28 : 0.1;
        pen.fillRect(x * w + ratio, (y + inset) * h, Math.max(1, w - 2 * ratio), h * (1 - 2 * inset));
      }
    }
    pen.globalAlpha = 1;
    this.markRoll();
  }

  private markRoll(): void {
    const height = this.frames.length ? this.roll.clientHeight / this.frames.length : 0;
    the('roll').style.setProperty('--row', `${height * this.shown}px`);
    the('roll').style.setProperty('--row-height', `${height}px`);
  }
}

/** The colour of the source that gave most of a token. */
function sourceColour(cell: Cell | undefined): string {
  const shares = cell?.shares ?? [];
  const most = shares.length ? shares.indexOf(Math.max(...shares)) : 0;
  return ['--model', '--file', '--space'][most] ?? '--model';
}
