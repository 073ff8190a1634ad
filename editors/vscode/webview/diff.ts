/** A part of a line; `changed` if the other text has something else there. */
export interface Part {
  text: string;
  changed: boolean;
}

export interface Line {
  kind: 'same' | 'removed' | 'added';
  parts: Part[];
}

const MOST_CELLS = 250_000;

/** Compares two texts line by line. In a line that stands for another, what differs is marked. */
export function diff(before: string, after: string): Line[] {
  const old = before.split('\n');
  const fresh = after.split('\n');
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  for (const [oldIndex, freshIndex] of [...common(old, fresh), [old.length, fresh.length] as const]) {
    lines.push(...changes(old.slice(i, oldIndex), fresh.slice(j, freshIndex)));
    const same = old[oldIndex];
    if (same !== undefined) {
      lines.push({ kind: 'same', parts: [{ text: same, changed: false }] });
    }
    [i, j] = [oldIndex + 1, freshIndex + 1];
  }
  return lines;
}

/** Returns the index pairs of a longest common subsequence; none if it would take too long to find. */
function common(old: string[], fresh: string[]): (readonly [number, number])[] {
  if (old.length * fresh.length > MOST_CELLS) {
    return [];
  }
  const width = fresh.length + 1;
  // lengths[i * width + j]: how much old.slice(i) and fresh.slice(j) have in common.
  const lengths = new Uint32Array((old.length + 1) * width);
  const at = (i: number, j: number) => lengths[i * width + j] ?? 0;
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = fresh.length - 1; j >= 0; j--) {
      lengths[i * width + j] = old[i] === fresh[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const pairs: (readonly [number, number])[] = [];
  for (let i = 0, j = 0; i < old.length && j < fresh.length; ) {
    if (old[i] === fresh[j]) {
      pairs.push([i++, j++]);
    } else if (at(i + 1, j) >= at(i, j + 1)) {
      i++;
    } else {
      j++;
    }
  }
  return pairs;
}

function changes(old: string[], fresh: string[]): Line[] {
  const paired = old.length === fresh.length ? old.map((line, index) => marked(line, fresh[index] ?? '')) : undefined;
  const whole = (text: string): Part[] => [{ text, changed: false }];
  return [
    ...old.map((text, index): Line => ({ kind: 'removed', parts: paired?.[index]?.[0] ?? whole(text) })),
    ...fresh.map((text, index): Line => ({ kind: 'added', parts: paired?.[index]?.[1] ?? whole(text) })),
  ];
}

/** Marks the words and signs of two lines that the other line has not. */
function marked(old: string, fresh: string): [Part[], Part[]] {
  const olds = tokens(old);
  const freshes = tokens(fresh);
  const pairs = common(olds, freshes);
  return [parts(olds, new Set(pairs.map(([i]) => i))), parts(freshes, new Set(pairs.map(([, j]) => j)))];
}

function tokens(line: string): string[] {
  return line.match(/[\p{L}\p{N}_]+|\s+|./gu) ?? [];
}

function parts(all: string[], same: Set<number>): Part[] {
  const made: Part[] = [];
  all.forEach((text, index) => {
    const changed = !same.has(index);
    const last = made.at(-1);
    if (last?.changed === changed) {
      last.text += text;
    } else {
      made.push({ text, changed });
    }
  });
  return made;
}
