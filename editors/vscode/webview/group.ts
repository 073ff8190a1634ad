import type { BulkEdit, BulkPlace } from '../src/bulk_wire';
import { element } from './element';
import { followingBlock, PlaceBlock } from './place_block';

/** The places of one file under its path, or the wide ones of all files, with a box that ticks all or none of them. */
export class Group {
  readonly box: HTMLInputElement;
  readonly blocks: PlaceBlock[];
  readonly root: HTMLElement;
  private readonly count: HTMLElement;

  constructor(
    title: string,
    readonly places: BulkPlace[],
    edit: BulkEdit,
    uri = '',
  ) {
    this.box = element('input', 'box');
    this.box.type = 'checkbox';
    this.box.hidden = edit.exclusive;
    this.count = element('span', 'count');
    this.blocks = places.map(place => new PlaceBlock(place, edit));
    const head = element('h2', 'file-head', element('label', 'path', this.box, title), this.count);
    const following = edit.following.filter(place => place.uri === uri).map(followingBlock);
    this.root = element('section', 'file', head, ...following, ...this.blocks.map(block => block.root));
  }

  /** Shows how many of its places are ticked. */
  show({ ticked, all }: { ticked: number; all: number }): void {
    this.box.checked = ticked === all;
    this.box.indeterminate = ticked > 0 && ticked < all;
    this.count.textContent = this.box.hidden ? '' : `${ticked} of ${all}`;
  }
}

/** Groups the places of an edit by file, in their order; the wide ones come last, in a group of their own. */
export function groupsOf(edit: BulkEdit): { files: Group[]; wide?: Group } {
  const byFile = new Map<string, BulkPlace[]>();
  for (const place of edit.places.filter(({ wide }) => !wide)) {
    byFile.set(place.uri, [...(byFile.get(place.uri) ?? []), place]);
  }
  const files = [...byFile].map(([uri, places]) => new Group(places[0]?.path ?? uri, places, edit, uri));
  const wide = edit.places.filter(place => place.wide);
  return wide.length ? { files, wide: new Group('Wide: only what the edit changes is there', wide, edit) } : { files };
}
