import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NextEdit } from '../src/bulk_wire.ts';
import { drawable, hintOf, lookOf } from '../src/next_edit_look.ts';

const START = { line: 4, character: 2 };

test('only what is new is shown', () => {
  assert.deepEqual(lookOf(START, 'get(url)', 'get(url, timeout=10)'), {
    removed: undefined,
    added: [{ at: { line: 4, character: 9 }, text: ', timeout=10' }],
  });
});

test('what goes is marked, and what comes is shown after it', () => {
  const look = lookOf(START, 'os.path.join(a, b)', 'Path(a, b)');
  assert.deepEqual(look.removed, { start: START, end: { line: 4, character: 14 } });
  assert.deepEqual(look.added, [{ at: { line: 4, character: 14 }, text: 'Path' }]);
});

test('each new line is shown after the old line in its place', () => {
  const look = lookOf({ line: 1, character: 4 }, 'f(a,\n  b)', 'g(c,\n  d,\n  e)!');
  assert.deepEqual(look.removed, { start: { line: 1, character: 4 }, end: { line: 2, character: 4 } });
  assert.deepEqual(look.added, [
    { at: { line: 1, character: 8 }, text: 'g(c,' },
    { at: { line: 2, character: 4 }, text: '  d, ↵ e)!' },
  ]);
});

test('words are not torn apart', () => {
  const look = lookOf(START, 'f(home, b)', 'f(house, b)');
  assert.deepEqual(look.removed, { start: { line: 4, character: 4 }, end: { line: 4, character: 8 } });
  assert.deepEqual(look.added, [{ at: { line: 4, character: 8 }, text: 'house' }]);
  assert.equal(lookOf(START, "'😀'", "'😁'").added[0]?.text, '😁');
});

test('a line that becomes several is shown as a whole', () => {
  const look = lookOf(START, 'data = read(other)', 'with open(other) as file:\n    data = read(file)');
  assert.deepEqual(look.removed, { start: START, end: { line: 4, character: 20 } });
  assert.deepEqual(look.added, [
    { at: { line: 4, character: 20 }, text: 'with open(other) as file: ↵ data = read(file)' },
  ]);
});

test('a line that is added leaves the others as they are', () => {
  const look = lookOf({ line: 1, character: 0 }, '  a()\n  b()\n', '  a()\n  new()\n  b()\n');
  assert.equal(look.removed, undefined);
  assert.deepEqual(look.added, [{ at: { line: 2, character: 2 }, text: 'new() ↵ ' }]);
});

test('an edit that only removes shows no new text', () => {
  assert.deepEqual(lookOf(START, 'f(a, b)', 'f(a)').added, []);
});

test('the hint says where the next edit is', () => {
  const edit: NextEdit = {
    text: '',
    range: { start: { line: 41, character: 0 }, end: { line: 41, character: 1 } },
    textDocument: { uri: 'file:///a.py', version: 1 },
    command: { command: 'midspan.nextEditAccepted' },
    remaining: 4,
  };
  assert.equal(hintOf(edit, { there: false, file: undefined }), '⇥ next edit, line 42');
  assert.equal(hintOf(edit, { there: false, file: 'b.py' }), '⇥ next edit, b.py:42');
  assert.equal(hintOf(edit, { there: true, file: undefined }), '⇥ take this edit, 3 more');
  assert.equal(hintOf({ ...edit, remaining: 1 }, { there: true, file: undefined }), '⇥ take this edit');
});

test('spaces survive in a decoration', () => {
  assert.equal(drawable('\ta  b'), '\u00a0\u00a0\u00a0\u00a0a\u00a0\u00a0b');
});
