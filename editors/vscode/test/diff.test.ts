import assert from 'node:assert/strict';
import { test } from 'node:test';
import { diff } from '../webview/diff.ts';

/** Returns lines as text: the sign, and what changed in brackets. */
function drawn(before: string, after: string): string[] {
  const signs = { same: ' ', removed: '-', added: '+' };
  return diff(before, after).map(
    ({ kind, parts }) => signs[kind] + parts.map(part => (part.changed ? `[${part.text}]` : part.text)).join(''),
  );
}

test('in a changed line what differs is marked', () => {
  assert.deepEqual(drawn('get(url)', 'get(url, timeout=10)'), ['-get(url)', '+get(url[, timeout=10])']);
});

test('several words of a line are marked apart', () => {
  assert.deepEqual(drawn('return os.path.join(a, b)', 'return Path(a) / b'), [
    '-return [os.path.join](a[,] b[)]',
    '+return [Path](a[)] [/ ]b',
  ]);
});

test('lines that stay are shown once', () => {
  assert.deepEqual(drawn('try:\n  a\n  b', 'try:\n  c\n  b\n  d'), [' try:', '-  [a]', '+  [c]', '   b', '+  d']);
});

test('indentation and blank lines are kept', () => {
  assert.deepEqual(drawn('\tf()\n\n\tg()', '\tf()\n\n\tg(1)'), [' \tf()', ' ', '-\tg()', '+\tg([1])']);
});

test('texts too long to compare are shown one after the other', () => {
  const lines = (name: string) => Array.from({ length: 600 }, (_, number) => `${name}${number}`).join('\n');
  const kinds = diff(lines('a'), `${lines('b')}\nend`).map(line => line.kind);
  assert.deepEqual(kinds, [...Array(600).fill('removed'), ...Array(601).fill('added')]);
});
