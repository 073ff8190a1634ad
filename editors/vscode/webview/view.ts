import type { BulkEdit } from '../src/bulk_wire';
import type { FromPreview } from '../src/preview_messages';
import { element } from './element';
import { type Group, groupsOf } from './group';
import type { Actions } from './keys';
import { counted, notes } from './notes';
import type { PlaceBlock } from './place_block';
import type { Ticks } from './ticks';

/** The whole preview: the rule, the files with their places, and the buttons. */
export class View implements Actions {
  private readonly groups: Group[];
  private readonly wide: Group | undefined;
  private readonly stops: { box: HTMLInputElement; block: PlaceBlock | undefined }[];
  private readonly applying = element('button', 'apply');
  private readonly summary = element('p', 'summary');
  private readonly warning = element('div', 'warning');
  private current: HTMLInputElement | undefined;

  constructor(
    private readonly edit: BulkEdit,
    private readonly ticks: Ticks,
    private readonly post: (message: FromPreview) => void,
    private readonly onTick: () => void,
  ) {
    const { files, wide } = groupsOf(edit);
    this.wide = wide;
    this.groups = wide ? [...files, wide] : files;
    const own = (group: Group) => (edit.exclusive ? [] : [{ box: group.box, block: undefined }]);
    this.stops = this.groups.flatMap(group => [
      ...own(group),
      ...group.blocks.map(block => ({ box: block.box, block })),
    ]);
    document.body.replaceChildren(this.head(), this.list(), this.foot());
    this.refresh();
    this.focus();
  }

  /** Puts the keyboard where it was; at first on the first place. Takes it from no other part of the window. */
  focus(): void {
    if (!document.hasFocus()) {
      return;
    }
    (this.current ?? this.stops.find(stop => stop.block)?.box ?? this.applying).focus();
  }

  /** Tells that the edit is out of date, and offers to compute it again. */
  warn(message: string): void {
    const again = element('button', 'again', 'Compute Again');
    again.addEventListener('click', () => this.post({ type: 'again' }));
    this.warning.replaceChildren(message, again);
  }

  move(by: number): void {
    const at = this.stops.findIndex(stop => stop.box === document.activeElement);
    const next = this.stops[Math.min(Math.max(at + by, 0), this.stops.length - 1)];
    next?.box.focus();
    (next?.block?.root ?? next?.box)?.scrollIntoView({ block: 'nearest' });
  }

  open(): void {
    const block = this.stops.find(stop => stop.box === document.activeElement)?.block;
    if (block) {
      this.post({ type: 'open', uri: block.place.uri, line: block.place.range.start.line });
    }
  }

  apply(): void {
    const places = this.ticks.chosen;
    if (places.length) {
      this.post({ type: 'apply', places });
    }
  }

  /** Ticks all wide places; none if all of them are ticked. */
  tickWide(): void {
    const { wide } = this;
    if (wide) {
      this.tick(() => this.ticks.setAll(wide.places, !wide.box.checked));
    }
  }

  cancel(): void {
    this.post({ type: 'cancel' });
  }

  private head(): HTMLElement {
    const { edit } = this;
    const head = element('header', '', element('h1', '', edit.title));
    if (edit.rule) {
      head.append(element('pre', 'rule', edit.rule));
    }
    this.warning.setAttribute('role', 'alert');
    head.append(this.summary, this.warning);
    return head;
  }

  private list(): HTMLElement {
    for (const group of this.groups) {
      group.box.addEventListener('change', () => this.tick(() => this.ticks.setAll(group.places, group.box.checked)));
      for (const { box, place } of group.blocks) {
        box.addEventListener('change', () => this.tick(() => this.ticks.set(place.id, box.checked)));
      }
    }
    for (const { box } of this.stops) {
      box.addEventListener('focus', () => {
        this.current = box;
      });
    }
    const open = (uri: string, line: number) => this.post({ type: 'open', uri, line });
    return element('main', '', ...this.groups.map(group => group.root), ...notes(this.edit, open));
  }

  private foot(): HTMLElement {
    const cancelling = element('button', 'cancel', 'Cancel');
    cancelling.addEventListener('click', () => this.cancel());
    this.applying.addEventListener('click', () => this.apply());
    const wide = this.wide ? ', w ticks the wide ones' : '';
    const keys = `Space ticks${wide}, arrows move, Enter opens, Ctrl+Enter applies, Escape closes`;
    return element('footer', '', this.applying, cancelling, element('span', 'keys', keys));
  }

  private tick(change: () => void): void {
    change();
    this.refresh();
    this.onTick();
  }

  private refresh(): void {
    for (const group of this.groups) {
      group.show(this.ticks.countOf(group.places));
      for (const { box, place } of group.blocks) {
        box.checked = this.ticks.has(place.id);
      }
    }
    const count = this.ticks.chosen.length;
    this.summary.textContent = this.edit.exclusive
      ? `${counted(this.edit.places.length, 'answer')}, one to choose`
      : `${count} of ${counted(this.edit.places.length, 'place')} ticked`;
    this.applying.textContent = this.edit.exclusive ? 'Apply This Answer' : `Apply ${counted(count, 'place')}`;
    this.applying.disabled = count === 0;
  }
}
