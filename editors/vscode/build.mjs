// Bundles the extension into one file, so that it starts faster and the package needs no node_modules; and the preview,
// which runs in a webview, into another with its style.
import { build } from 'esbuild';

const shared = { bundle: true, minify: true, legalComments: 'none', logLevel: 'warning' };

await build({
  ...shared,
  entryPoints: ['src/extension.ts'],
  outfile: 'dist/extension.js',
  platform: 'node',
  format: 'cjs',
  // The Node of VS Code 1.91, the oldest VS Code that vscode-languageclient supports.
  target: 'node20',
  external: ['vscode'],
});
await build({
  ...shared,
  entryPoints: ['webview/preview.ts', 'webview/preview.css'],
  outdir: 'dist',
  platform: 'browser',
  format: 'iife',
  // The Chromium of VS Code 1.91.
  target: 'chrome122',
});
