import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forServer } from '../src/wire.ts';

test('the server is not sent what only the extension reads', () => {
  assert.deepEqual(forServer({ budgetMs: 150, server: { path: '' } }), { budgetMs: 150 });
  assert.equal(forServer(null), null);
});
