import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allExcluded } from '../src/exclusion.ts';

const DEFAULT = ['.env', '*.pem'];

test('a workspace can exclude more files', () => {
  assert.deepEqual(allExcluded({ defaultValue: DEFAULT, workspaceValue: ['*.sql', '.env'] }), [...DEFAULT, '*.sql']);
  assert.deepEqual(allExcluded({ defaultValue: DEFAULT, workspaceFolderValue: ['a'] }), [...DEFAULT, 'a']);
});

test('a workspace cannot exclude fewer', () => {
  assert.deepEqual(allExcluded({ defaultValue: DEFAULT, workspaceValue: [] }), DEFAULT);
  assert.deepEqual(allExcluded({ defaultValue: DEFAULT, workspaceValue: null }), DEFAULT);
});

test('users decide for themselves', () => {
  assert.deepEqual(allExcluded({ defaultValue: DEFAULT, globalValue: ['mine'] }), ['mine']);
  assert.equal(allExcluded({ defaultValue: DEFAULT, globalValue: 'wrong' }), 'wrong');
});
