import type { BulkEdit } from '../src/bulk_wire';
import { element } from './element';

/** What the search did not reach, and the places that were left out, each with its reason. */
export function notes(edit: BulkEdit, open: (uri: string, line: number) => void): HTMLElement[] {
  const made: HTMLElement[] = edit.reached.map(line => element('p', 'reached', line));
  if (edit.leftOut.length) {
    const rows = edit.leftOut.map(({ uri, path, line, reason }) => {
      const place = element('button', 'link', `${path}:${line + 1}`);
      place.addEventListener('click', () => open(uri, line));
      return element('li', '', place, ` ${reason}`);
    });
    const summary = element('summary', '', `${counted(rows.length, 'place')} left out`);
    made.push(element('details', 'left-out', summary, element('ul', '', ...rows)));
  }
  return made;
}

/** Returns a number with its noun: "1 place", "2 places". */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
