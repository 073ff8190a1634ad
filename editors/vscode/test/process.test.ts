import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CancellationToken } from 'vscode';
import { findProgram, outputOf, run } from '../src/process.ts';

const NEVER: CancellationToken = { isCancellationRequested: false, onCancellationRequested: () => ({ dispose() {} }) };

test('a program is found by its path and on the PATH', () => {
  assert.equal(findProgram(process.execPath), process.execPath);
  assert.ok(findProgram('node'));
  assert.equal(findProgram('/no/such/program'), undefined);
  assert.equal(findProgram('no-such-program'), undefined);
});

test('the output of a program that fails or is missing is undefined', async () => {
  assert.equal(await outputOf(process.execPath, ['-p', '6 * 7']), '42');
  assert.equal(await outputOf(process.execPath, ['-e', 'process.exit(3)']), undefined);
  assert.equal(await outputOf('no-such-program', []), undefined);
});

test('a run reports each line of both outputs', async () => {
  const lines: string[] = [];
  await run(process.execPath, ['-e', 'console.log("one"); console.error("two")'], line => lines.push(line), NEVER);
  assert.deepEqual(lines.sort(), ['one', 'two']);
});

test('a failed run says which program failed and how', async () => {
  const failing = run(process.execPath, ['-e', 'process.exit(3)'], () => {}, NEVER);
  await assert.rejects(failing, /process\.exit\(3\)` ended with 3/);
  await assert.rejects(
    run('no-such-program', [], () => {}, NEVER),
    /no-such-program cannot be run/,
  );
});
