import assert from 'node:assert/strict';
import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { CancellationToken } from 'vscode';
import { findProgram, lastError, outputOf, run } from '../src/process.ts';

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

test('a failed run tells the last error of the program itself', async () => {
  const script = 'console.error("ERROR: no such wheel"); console.error("\\n[notice] a new pip"); process.exit(1)';
  await assert.rejects(
    run(process.execPath, ['-e', script], () => {}, NEVER),
    { message: 'no such wheel' },
  );
  assert.equal(lastError(['  × No solution found:', '  ╰─▶ a needs b']), 'a needs b');
  assert.equal(lastError(['error: No solution found', '  cause: Because a needs b']), 'Because a needs b');
  assert.equal(lastError(['one', 'two', '']), 'two');
  assert.match(String(lastError(['it failed because ensurepip is not', 'available'])), /apt install python3-venv/);
  assert.equal(lastError([]), undefined);
});

test('a cancelled run ends what its program has started too', {
  skip: process.platform === 'win32',
  timeout: 20_000,
}, async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'run-')), 'pid');
  let cancel = () => {};
  const token = {
    isCancellationRequested: false,
    onCancellationRequested: (listener: () => void) => {
      cancel = listener;
      return { dispose() {} };
    },
  };
  // The run is over only when nothing holds its output any more: `sleep` does for a minute.
  const script = `sleep 60 & echo $! > ${file}.new; mv ${file}.new ${file}; wait`;
  const running = run('sh', ['-c', script], () => {}, token as unknown as CancellationToken);
  while (!existsSync(file)) {
    await new Promise(resolve => setTimeout(resolve, 10));
  }
  token.isCancellationRequested = true;
  cancel();
  await assert.rejects(running, /it was cancelled/);
});
