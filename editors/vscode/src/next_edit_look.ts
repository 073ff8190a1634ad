import type { NextEdit, Position, Range } from './bulk_wire';

/** How the next edit is drawn: what goes is marked, and new text is shown after a position. */
export interface Look {
  removed: Range | undefined;
  added: { at: Position; text: string }[];
}

/** Returns how to draw the replacement of `old`, which begins at `start`, by `text`. Lines end in "\n" in both. */
export function lookOf(start: Position, old: string, text: string): Look {
  const { head, tail } = common(old, text);
  const from = moved(start, old.slice(0, head));
  const goes = old.slice(head, old.length - tail);
  const comes = text.slice(head, text.length - tail);
  const to = moved(from, goes);
  return { removed: goes ? { start: from, end: to } : undefined, added: spread(from, goes, comes) };
}

/** Returns the line that follows the cursor. `there` if the cursor is at the edit, `file` if that is in another file. */
export function hintOf(edit: NextEdit, where: { there: boolean; file: string | undefined }): string {
  const line = edit.range.start.line + 1;
  const more = edit.remaining > 1 ? `, ${edit.remaining - 1} more` : '';
  if (where.there) {
    return `⇥ take this edit${more}`;
  }
  return where.file ? `⇥ next edit, ${where.file}:${line}` : `⇥ next edit, line ${line}`;
}

/** Returns a text as a decoration can show it: VS Code would draw a run of spaces as one. */
export function drawable(text: string): string {
  return text.replaceAll('\t', '    ').replaceAll(' ', '\u00a0');
}

/** Returns how many characters two texts share at their starts and ends: whole words, or whole lines if there are several. */
function common(old: string, text: string): { head: number; tail: number } {
  const shorter = Math.min(old.length, text.length);
  const byLine = old.includes('\n') || text.includes('\n');
  let head = 0;
  while (head < shorter && old[head] === text[head]) {
    head++;
  }
  while (head > 0 && !isBoundary(old, head, byLine)) {
    head--;
  }
  let tail = 0;
  while (tail < shorter - head && old[old.length - 1 - tail] === text[text.length - 1 - tail]) {
    tail++;
  }
  while (tail > 0 && !isBoundary(old, old.length - tail, byLine)) {
    tail--;
  }
  return { head, tail };
}

/** Whether a word, or with `byLine` a line without its indentation, may begin or end at an offset. */
function isBoundary(text: string, offset: number, byLine: boolean): boolean {
  if (byLine) {
    return (
      offset === text.length ||
      text[offset] === '\n' ||
      !text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset).trim()
    );
  }
  const isHalf = /^[\uDC00-\uDFFF]/.test(text.slice(offset)); // The second unit of a character that has two in UTF-16.
  return !isHalf && !/^[\p{L}\p{N}_]{2}$/u.test(text.slice(offset - 1, offset + 1));
}

/** A decoration has one line. So each new line is shown after the old line in its place, and the rest after the last. */
function spread(from: Position, goes: string, comes: string): Look['added'] {
  const old = goes.split('\n');
  const fresh = comes.split('\n');
  const added: Look['added'] = [];
  old.forEach((line, index) => {
    const last = index === old.length - 1;
    const rest = fresh.slice(index).map((one, below) => (below ? one.trim() : one));
    const text = last ? rest.join(' ↵ ') : (fresh[index] ?? '');
    if (text.trim()) {
      const start = index === 0 ? from.character : 0;
      added.push({ at: { line: from.line + index, character: start + line.length }, text });
    }
  });
  return added;
}

function moved(position: Position, text: string): Position {
  const lines = text.split('\n');
  const last = lines.at(-1)?.length ?? 0;
  return lines.length === 1
    ? { line: position.line, character: position.character + last }
    : { line: position.line + lines.length - 1, character: last };
}
