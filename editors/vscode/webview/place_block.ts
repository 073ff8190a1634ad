import type { BulkEdit, BulkPlace } from '../src/bulk_wire';
import { diff, type Line } from './diff';
import { element } from './element';

const SIGNS = { same: ' ', removed: '-', added: '+' };

/** One place: its box, its line number, why it is here, and its lines before and after. */
export class PlaceBlock {
  readonly box: HTMLInputElement;
  readonly root: HTMLElement;

  constructor(
    readonly place: BulkPlace,
    edit: BulkEdit,
  ) {
    this.box = element('input', 'box');
    this.box.type = edit.exclusive ? 'radio' : 'checkbox';
    this.box.name = edit.exclusive ? 'answer' : `place-${place.id}`;
    this.box.ariaLabel = `${place.path}, ${lineOf(place)}${place.reason && `: ${place.reason}`}`;
    const where = place.wide ? `${place.path}, ${lineOf(place)}` : lineOf(place);
    const label = element('label', 'line-number', this.box, where);
    const head = element('div', 'place-head', label);
    if (place.reason) {
      head.append(element('span', place.doubtful ? 'reason doubtful' : 'reason', place.reason));
    }
    this.root = element('section', 'place', head, lines(place));
  }
}

/** A place that follows the others of its file, such as an import. It has no box. */
export function followingBlock(place: BulkPlace): HTMLElement {
  const reason = element('span', 'reason', 'follows the places of this file');
  const head = element('div', 'place-head', element('span', 'line-number', lineOf(place)), reason);
  return element('section', 'place following', head, lines(place));
}

function lineOf(place: BulkPlace): string {
  return `line ${place.range.start.line + 1}`;
}

function lines({ before, after }: BulkPlace): HTMLElement {
  return element('div', 'diff', ...diff(before, after).map(drawn));
}

function drawn({ kind, parts }: Line): HTMLElement {
  const text = parts.map(part => (part.changed ? element('span', 'changed', part.text) : part.text));
  return element('div', `diff-line ${kind}`, element('span', 'sign', SIGNS[kind]), element('code', '', ...text));
}
