import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clock, type Here, readable, shown } from '../src/status_text.ts';
import type { Broken, Report, Status } from '../src/wire.ts';

const READY: Status = { state: 'ready', message: 'Ready.', model: 'midspan-small', medianMs: 44.6 };
const PYTHON: Here = { language: { id: 'python', on: true }, automatic: true };
const PYTHON_OFF: Here = { language: { id: 'python', on: false }, automatic: true };

test('ready shows the model and the median', () => {
  assert.equal(shown(READY, PYTHON).text, '$(circle-filled) midspan-small 45 ms');
});

test('what the memory knows is in the tooltip', () => {
  const memory = 'memory: 1,240 files, 2.9 M tokens, 104 MB';
  assert.match(shown({ ...READY, memory }, PYTHON).tooltip, /^Ready\.\n\nMedian: 45 ms\.\n\nmemory: 1,240 files/);
});

test('the tooltip says why nothing is shown', () => {
  const silence = 'unsure: "b" is 30 % sure, and is shown from 60 % on';
  assert.match(shown(READY, { ...PYTHON, silence }).tooltip, /^Ready\.\n\nNo suggestion: unsure: "b" is 30 % sure/);
});

test('before the first fill there is no median', () => {
  assert.equal(shown({ ...READY, medianMs: null }, PYTHON).text, '$(circle-filled) midspan-small');
});

test('the text stays in place while busy', () => {
  assert.equal(shown({ ...READY, state: 'busy' }, PYTHON).text, '$(circle-outline) midspan-small 45 ms');
});

test('a language that is off is named', () => {
  const { text, tooltip } = shown(READY, PYTHON_OFF);
  assert.equal(text, '$(circle-slash) Midspan');
  assert.match(tooltip, /off for python/);
});

test('an error is shown whatever the language', () => {
  const { severity, tooltip } = shown({ state: 'error', message: 'No engine.' }, PYTHON_OFF);
  assert.equal(severity, 'error');
  assert.match(tooltip, /No engine\.\n\nClick for what to do/);
});

test('an error says in the bar what is wrong, and what a click does', () => {
  const broken: Broken = {
    state: 'error',
    message: 'Not installed.',
    brief: 'install the server',
    click: 'Click to install.',
  };
  const { text, tooltip } = shown(broken, PYTHON);
  assert.equal(text, '$(error) Midspan: install the server');
  assert.equal(tooltip, 'Not installed.\n\nClick to install.');
  assert.equal(shown({ state: 'error', message: 'No engine.' }, PYTHON).text, '$(error) Midspan: no suggestions');
});

test('a start shows a spinner', () => {
  assert.match(
    shown({ state: 'starting', message: 'Loading the model.' }, { language: undefined, automatic: true }).text,
    /~spin/,
  );
});

test('a report is one line', () => {
  const report: Report = {
    ...READY,
    model: 'embedded',
    asked: 4,
    reused: 3,
    shown: 2,
    accepted: 1,
    dismissed: 0,
    engine: null,
  };
  assert.equal(
    readable(report),
    'embedded, ready: 4 asked, 3 typed along, 2 shown, 1 accepted, 0 dismissed; median 45 ms.',
  );
  const engine = { model: { name: 'midspan-small', device: 'cpu' } };
  assert.match(readable({ ...report, engine }), /^midspan-small on cpu, ready/);
  assert.match(readable({ ...report, memory: 'memory: 3 files' }), /median 45 ms; memory: 3 files\.$/);
});

test('an engine that is not needed yet does not look switched off', () => {
  const idle: Status = { state: 'idle', message: 'The engine starts when it is first needed.' };
  const nowhere: Here = { language: undefined, automatic: true };
  assert.deepEqual(
    [shown(idle, nowhere).text, shown(idle, nowhere).tooltip],
    ['$(circle-outline) Midspan', 'The engine starts when it is first needed.'],
  );
});

test('a snooze says until when', () => {
  const until = new Date(2026, 10, 22, 14, 5).getTime() / 1000;
  const snoozing: Status = { ...READY, state: 'off', message: 'Snoozed until 14:05.', snoozedUntil: until };
  assert.equal(shown(snoozing, PYTHON).text, '$(bell-slash) Midspan');
  assert.match(shown(snoozing, PYTHON).tooltip, /^Snoozed until 14:05\./);
  assert.equal(clock(until), '14:05');
});

test('the subtle mode has a closed eye', () => {
  const subtle: Here = { ...PYTHON, automatic: false };
  assert.equal(shown(READY, subtle).text, '$(eye-closed) midspan-small 45 ms');
  assert.match(shown(READY, subtle).tooltip, /only when you ask/);
});
