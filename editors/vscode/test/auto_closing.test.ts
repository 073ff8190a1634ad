import assert from 'node:assert/strict';
import { test } from 'node:test';
import { autoClosed, withAutoClosed } from '../src/auto_closing.ts';

test('what the editor closes by itself is known for each bracket that a text leaves open', () => {
  assert.deepEqual(autoClosed('name'), []);
  assert.deepEqual(autoClosed('call(first'), [')']);
  assert.deepEqual(autoClosed('call(first)'), []);
  assert.deepEqual(autoClosed('outer({ key: inner['), [')', '})', ']})']);
  assert.deepEqual(autoClosed('first) + second('), [')']);
});

test('a quote is closed too, and brackets in it are characters', () => {
  assert.deepEqual(autoClosed('print("a ( in '), [')', '")']);
  assert.deepEqual(autoClosed('print("a \\" and (" + text['), [')', '])']);
});

test('the closed items come after those of the server, and with their command', () => {
  const command = { command: 'midspan.accepted', title: '' };
  const answer = withAutoClosed([{ insertText: 'call(a', command }, { insertText: 'b' }]);
  assert.deepEqual(answer, [
    { insertText: 'call(a', command },
    { insertText: 'b' },
    { insertText: 'call(a)', command },
  ]);
});
