import type { BulkEdit } from '../src/bulk_wire';

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

  setFile(uri: string, on: boolean): void {
    for (const id of this.idsOf(uri)) {
      this.set(id, on);
    }
  }

  /** Returns how many places of a file are ticked. */
  countOf(uri: string): { ticked: number; all: number } {
    const ids = this.idsOf(uri);
    return { ticked: ids.filter(id => this.ticked.has(id)).length, all: ids.length };
  }

  private idsOf(uri: string): number[] {
    return this.edit.places.filter(place => place.uri === uri).map(place => place.id);
  }
}
