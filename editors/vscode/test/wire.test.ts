import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forServer } from '../src/wire.ts';

test('the server is not sent what only the extension reads', () => {
  const section = { budgetMs: 150, exclude: [], server: { path: '' }, tab: 'all', heldBack: true };
  assert.deepEqual(forServer(section, ['.env']), { budgetMs: 150, exclude: ['.env'] });
  assert.equal(forServer(null, []), null);
});
