// Bundles the extension into one file, so that it starts faster and the package needs no node_modules.
import { build } from 'esbuild';

await build({
  entryPoints: ['src/extension.ts'],
  outfile: 'dist/extension.js',
  bundle: true,
  minify: true,
  platform: 'node',
  format: 'cjs',
  // The Node of VS Code 1.91, the oldest VS Code that vscode-languageclient supports.
  target: 'node20',
  external: ['vscode'],
  legalComments: 'none',
  logLevel: 'warning',
});
