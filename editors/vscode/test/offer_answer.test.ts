import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDue, type OfferAnswer } from '../src/offer_answer.ts';

const DAY = 24 * 60 * 60 * 1000;

test('a user is asked about a larger model once, and a week after Later again', () => {
  const said = (answer: OfferAnswer['answer']): OfferAnswer => ({ answer, model: 'coder', at: 0 });
  assert.ok(isDue(undefined, 'coder', 0));
  assert.ok(!isDue(said('later'), 'coder', 6 * DAY));
  assert.ok(isDue(said('later'), 'coder', 8 * DAY));
  assert.ok(!isDue(said('never'), 'coder', 800 * DAY));
  assert.ok(!isDue(said('never'), 'larger', 800 * DAY));
  assert.ok(!isDue(said('install'), 'coder', 800 * DAY));
  assert.ok(isDue(said('install'), 'larger', 1));
});
