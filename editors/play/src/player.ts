// Buttons and a slider that go through the passes of a fill, by hand or by themselves.
import { make } from './dom.ts';

const SPEEDS = [0.5, 1, 2, 4];
const PASS_MS = 700;

export class Player {
  private count = 0;
  private shown = 0;
  private timer = 0;
  private speed = 1;
  private readonly slider = make('input', { type: 'range', min: '0', max: '0', value: '0', 'aria-label': 'Pass' });
  private readonly play = make('button', { type: 'button', class: 'play', 'aria-label': 'Play' }, '▶');
  private readonly rate = make('button', { type: 'button', 'aria-label': 'Speed 1' }, '1×');

  /** `draw` shows a pass, by its index. `gap` is between two passes at speed 1, in milliseconds. */
  constructor(
    parent: HTMLElement,
    private readonly draw: (index: number) => void,
    private readonly gap = PASS_MS,
  ) {
    const back = make('button', { type: 'button', 'aria-label': 'One pass back' }, '‹');
    const on = make('button', { type: 'button', 'aria-label': 'One pass on' }, '›');
    parent.append(back, this.play, on, this.slider, this.rate);
    back.addEventListener('click', () => this.stopAt(this.shown - 1));
    on.addEventListener('click', () => this.stopAt(this.shown + 1));
    this.play.addEventListener('click', () => (this.timer ? this.stop() : this.start()));
    this.slider.addEventListener('input', () => this.stopAt(Number(this.slider.value)));
    this.rate.addEventListener('click', () => this.faster());
  }

  /** Take another fill of so many passes: show its last one, or play from the first one on if `plays`. */
  load(count: number, plays: boolean): void {
    this.stop();
    this.count = count;
    this.slider.max = String(Math.max(0, count - 1));
    this.to(count - 1);
    if (plays && count > 1 && !matchMedia('(prefers-reduced-motion: reduce)').matches) this.start();
  }

  stopAt(index: number): void {
    this.stop();
    this.to(index);
  }

  private to(index: number): void {
    this.shown = Math.max(0, Math.min(index, this.count - 1));
    this.slider.value = String(this.shown);
    this.slider.setAttribute('aria-valuetext', `pass ${this.shown + 1} of ${this.count}`);
    this.draw(this.shown);
  }

  private start(): void {
    if (this.count < 2) return;
    if (this.shown === this.count - 1) this.to(0);
    this.play.textContent = '❚❚';
    this.play.setAttribute('aria-label', 'Pause');
    const next = () => {
      if (this.shown >= this.count - 1) return this.stop();
      this.to(this.shown + 1);
      this.timer = window.setTimeout(next, this.gap / this.speed);
    };
    this.timer = window.setTimeout(next, this.gap / this.speed);
  }

  private stop(): void {
    window.clearTimeout(this.timer);
    this.timer = 0;
    this.play.textContent = '▶';
    this.play.setAttribute('aria-label', 'Play');
  }

  private faster(): void {
    this.speed = SPEEDS[(SPEEDS.indexOf(this.speed) + 1) % SPEEDS.length] ?? 1;
    this.rate.textContent = `${this.speed}×`;
    this.rate.setAttribute('aria-label', `Speed ${this.speed}`);
  }
}
