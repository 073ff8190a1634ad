// Bundles the page into one script, which is compressed, and one style, and puts them where the wheel takes them from.
// `--out DIR` puts them elsewhere: a test builds them again and compares.
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const at = process.argv.indexOf('--out');
const outdir = at > 0 ? process.argv[at + 1] : '../../engine/play/page';

await mkdir(outdir, { recursive: true });
const script = await build({
  entryPoints: { page: 'src/main.ts' },
  outdir,
  write: false,
  bundle: true,
  minify: true,
  legalComments: 'none',
  charset: 'utf8',
  logLevel: 'warning',
  platform: 'browser',
  format: 'esm',
  target: ['chrome110', 'firefox115', 'safari16.4'],
});
await writeFile(`${outdir}/page.js.gz`, gzipSync(script.outputFiles[0].contents, { level: 9 }));
await build({ entryPoints: { page: 'src/page.css' }, outdir, bundle: true, minify: true, logLevel: 'warning' });
await copyFile('src/index.html', `${outdir}/index.html`);
