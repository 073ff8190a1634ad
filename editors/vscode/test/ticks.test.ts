import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BulkEdit, BulkPlace } from '../src/bulk_wire.ts';
import { Ticks } from '../webview/ticks.ts';

const RANGE = { start: { line: 0, character: 0 }, end: { line: 0, character: 1 } };

function place(id: number, uri: string, doubtful = false): BulkPlace {
  return { id, uri, path: uri, range: RANGE, before: 'a', after: 'b', reason: '', doubtful, wide: false };
}

function edit(exclusive: boolean): BulkEdit {
  const places = [place(1, 'a.py'), place(2, 'a.py', true), place(3, 'b.py')];
  return { id: 7, title: '', rule: '', places, leftOut: [], reached: [], exclusive, following: [] };
}

test('all places but the doubtful are ticked', () => {
  assert.deepEqual(new Ticks(edit(false)).chosen, [1, 3]);
});

test('a group is ticked as a whole', () => {
  const ticks = new Ticks(edit(false));
  const group = edit(false).places.slice(0, 2);
  ticks.setAll(group, true);
  assert.deepEqual(ticks.chosen, [1, 2, 3]);
  ticks.setAll(group, false);
  assert.deepEqual(ticks.chosen, [3]);
  assert.deepEqual(ticks.countOf(group), { ticked: 0, all: 2 });
});

test('of answers that exclude each other one is ticked', () => {
  const ticks = new Ticks(edit(true));
  assert.deepEqual(ticks.chosen, [1]);
  ticks.set(3, true);
  assert.deepEqual(ticks.chosen, [3]);
});

test('what was ticked is remembered', () => {
  assert.deepEqual(new Ticks(edit(false), [2]).chosen, [2]);
});
