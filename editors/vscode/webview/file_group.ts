import type { BulkEdit, BulkPlace } from '../src/bulk_wire';
import { element } from './element';
import { followingBlock, PlaceBlock } from './place_block';

/** The places of one file under its path, with a box that ticks all or none of them. */
export class FileGroup {
  readonly box: HTMLInputElement;
  readonly blocks: PlaceBlock[];
  readonly root: HTMLElement;
  private readonly count: HTMLElement;

  constructor(
    readonly uri: string,
    path: string,
    places: BulkPlace[],
    edit: BulkEdit,
  ) {
    this.box = element('input', 'box');
    this.box.type = 'checkbox';
    this.box.hidden = edit.exclusive;
    this.count = element('span', 'count');
    this.blocks = places.map(place => new PlaceBlock(place, edit));
    const head = element('h2', 'file-head', element('label', 'path', this.box, path), this.count);
    const following = edit.following.filter(place => place.uri === uri).map(followingBlock);
    this.root = element('section', 'file', head, ...following, ...this.blocks.map(block => block.root));
  }

  /** Shows how many of the file's places are ticked. */
  show({ ticked, all }: { ticked: number; all: number }): void {
    this.box.checked = ticked === all;
    this.box.indeterminate = ticked > 0 && ticked < all;
    this.count.textContent = this.box.hidden ? '' : `${ticked} of ${all}`;
  }
}

/** Groups the places of an edit by file, in their order. */
export function fileGroups(edit: BulkEdit): FileGroup[] {
  const files = new Map<string, BulkPlace[]>();
  for (const place of edit.places) {
    files.set(place.uri, [...(files.get(place.uri) ?? []), place]);
  }
  return [...files].map(([uri, places]) => new FileGroup(uri, places[0]?.path ?? uri, places, edit));
}
