import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ModelSheet, modelChoices, pullProgress } from '../src/model_sheet.ts';

const EMBEDDED: ModelSheet = {
  name: 'embedded',
  here: '/weights',
  in_use: true,
  parameters: 16_200_000,
  catalog: { family: 'embedded', licence: 'Apache-2.0', free: true, size_bytes: 16_800_000, notes: '' },
  fits: { memory: { int8: 'fits' } },
};
const SMALL: ModelSheet = {
  name: 'small',
  here: null,
  in_use: false,
  parameters: 500_000_000,
  catalog: { family: 'qwen-fim', licence: 'Apache-2.0', free: true, size_bytes: 1_000_000_000, notes: '' },
  fits: { memory: { bf16: 'too large', int8: 'fits', int4: 'fits' } },
};
const HUGE: ModelSheet = { ...SMALL, name: 'huge', parameters: 25e9, fits: { memory: { int4: 'too large' } } };

test('only what is here or fits is offered, what is here first', () => {
  const names = (sheets: ModelSheet[]) => modelChoices(sheets, 'default').map(choice => choice.label);
  assert.deepEqual(names([HUGE, SMALL, EMBEDDED]), ['embedded', 'small']);
  assert.deepEqual(names([{ ...HUGE, here: '/huge' }, SMALL]), ['huge', 'small']);
});

test('a choice says how large it is and in which precision it fits', () => {
  const [embedded, small] = modelChoices([SMALL, EMBEDDED], 'default');
  assert.equal(embedded?.description, '16 M, in use');
  assert.equal(small?.description, '500 M, to download: 1.0 GB');
  assert.equal(small?.detail, 'fits in int8; licence Apache-2.0');
  assert.equal(modelChoices([EMBEDDED], 'small')[0]?.description, '16 M, here');
});

test('a line of a pull says how far it is, any other line nothing', () => {
  const line = '{"doing": "model.safetensors", "present": 250, "total": 1000}';
  assert.deepEqual(pullProgress(line), { message: '25 %, model.safetensors', percent: 25 });
  assert.equal(pullProgress('midspan: the hub cannot be reached'), undefined);
});
