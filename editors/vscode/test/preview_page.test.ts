import assert from 'node:assert/strict';
import { test } from 'node:test';
import { previewPage } from '../src/preview_page.ts';

test('only our script may run, and nothing may be loaded from elsewhere', () => {
  const page = previewPage({ source: 'vscode:', nonce: 'n0nce', script: 'preview.js', style: 'preview.css' });
  assert.match(page, /content="default-src 'none'; style-src vscode:; script-src 'nonce-n0nce'"/);
  assert.deepEqual(page.match(/<script[^>]*>/g), ['<script nonce="n0nce" src="preview.js">']);
  assert.doesNotMatch(page, /\son\w+=|unsafe/);
});
