// The engine: what runs, how fast, what it holds; and how long the last suggestions took.
import type { EngineStatus } from './api.ts';
import { make, say, the } from './dom.ts';

const KEPT_S = 300;
const SVG = 'http://www.w3.org/2000/svg';
const [WIDTH, HEIGHT] = [600, 90];

export class Engine {
  private passes: { at: number; count: number } | null = null;
  private rate = 0;
  private samples: { at: number; ms: number }[] = [];
  private readonly values = new Map<string, HTMLElement>();
  private readonly line = document.createElementNS(SVG, 'path');
  private readonly dots = document.createElementNS(SVG, 'path');
  private readonly scale = make('p', { class: 'note' });

  constructor() {
    const list = make('dl', {});
    for (const name of ['Model', 'Runs on', 'Passes a second', 'Queue', 'Cache', 'Memory of this workspace', 'Of all workspaces']) {
      const value = make('dd', {}, '–');
      this.values.set(name, value);
      list.append(make('div', {}, make('dt', {}, name), value));
    }
    the('facts').append(list);
    const plot = document.createElementNS(SVG, 'svg');
    plot.setAttribute('viewBox', `0 0 ${WIDTH} ${HEIGHT}`);
    plot.setAttribute('preserveAspectRatio', 'none');
    plot.setAttribute('role', 'img');
    plot.setAttribute('aria-label', 'Milliseconds of the suggestions of the last five minutes');
    this.dots.setAttribute('class', 'dots');
    plot.append(this.line, this.dots);
    the('plot').append(plot, this.scale);
    this.draw();
  }

  /** Note how long a suggestion took, in milliseconds from key to answer. */
  took(ms: number): void {
    const now = performance.now() / 1000;
    this.samples.push({ at: now, ms });
    this.samples = this.samples.filter(sample => sample.at > now - KEPT_S);
    this.draw();
  }

  show(status: EngineStatus): void {
    const engine = status.engine;
    if (!engine) {
      for (const value of this.values.values()) say(value, '–');
      this.passes = null;
      return;
    }
    const now = performance.now() / 1000;
    if (this.passes && now > this.passes.at) this.rate = (engine.passes - this.passes.count) / (now - this.passes.at);
    this.passes = { at: now, count: engine.passes };
    const { model } = engine;
    const held = `${Math.round(100 * engine.cache_hit_rate)} % of context reused, ${megabytes(engine.cache_bytes)} held`;
    const texts: Record<string, string> = {
      Model: `${model.name}, ${(model.parameters / 1e6).toFixed(0)} M parameters`,
      'Runs on': model.server || `${model.device}, ${model.dtype}, ${engine.threads} threads`,
      'Passes a second': `${Math.max(0, this.rate).toFixed(1)}; ${engine.passes} in all`,
      Queue: `${engine.active} under way, ${engine.waiting} waiting`,
      Cache: held,
      'Memory of this workspace': status.memory?.replace(/^memory: /, '') ?? 'nothing learned yet',
      'Of all workspaces': status.workspaces.map(each => `${each.name}: ${each.memory}`).join('\n') || 'nothing learned yet',
    };
    for (const [name, value] of this.values) say(value, texts[name] ?? '–');
  }

  private draw(): void {
    const now = performance.now() / 1000;
    const most = Math.max(50, ...this.samples.map(sample => sample.ms));
    const points = this.samples.map(({ at, ms }) => {
      const x = (WIDTH - 8) * (1 - (now - at) / KEPT_S);
      return `${x.toFixed(1)} ${(HEIGHT - 4 - (HEIGHT - 8) * (ms / most)).toFixed(1)}`;
    });
    this.line.setAttribute('d', points.length ? `M${points.join('L')}` : '');
    this.dots.setAttribute('d', points.map(point => `M${point}h0`).join(''));
    const sorted = this.samples.map(sample => sample.ms).sort((one, other) => one - other);
    const median = sorted[Math.floor(sorted.length / 2)];
    const [text, longest] = ['Suggestions of the last five minutes, from key to answer: median', sorted.at(-1) ?? 0];
    say(this.scale, median === undefined ? 'Type, and each suggestion’s time is drawn here.' : `${text} ${Math.round(median)} ms, longest ${Math.round(longest)} ms`);
  }
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
}
