import type { BulkEdit, BulkPlace } from '../src/bulk_wire';

/** Which places of an edit are ticked. At first all but the doubtful ones; of answers that exclude each other, the first. */
export class Ticks {
  private readonly edit: BulkEdit;
  private ticked: Set<number>;

  constructor(edit: BulkEdit, remembered?: number[]) {
    this.edit = edit;
    const certain = edit.places.filter(place => !place.doubtful).map(place => place.id);
    this.ticked = new Set(remembered ?? (edit.exclusive ? certain.slice(0, 1) : certain));
  }

  /** The ids of the ticked places, in their order. */
  get chosen(): number[] {
    return this.edit.places.map(place => place.id).filter(id => this.ticked.has(id));
  }

  has(id: number): boolean {
    return this.ticked.has(id);
  }

  set(id: number, on: boolean): void {
    if (this.edit.exclusive) {
      this.ticked.clear();
    }
    if (on) {
      this.ticked.add(id);
    } else {
      this.ticked.delete(id);
    }
  }

  setAll(places: BulkPlace[], on: boolean): void {
    for (const { id } of places) {
      this.set(id, on);
    }
  }

  /** Returns how many of some places are ticked. */
  countOf(places: BulkPlace[]): { ticked: number; all: number } {
    return { ticked: places.filter(({ id }) => this.ticked.has(id)).length, all: places.length };
  }
}
