// Drives the page in a headless Chromium: one JSON request a line on stdin, {id, method, params}; one answer a line on
// stdout, {id, result} or {id, error}. It knows nothing of Midspan; the tests do.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

let browser;
const pages = new Map();
let elsewhere = [];

const page = name => pages.get(name ?? 'first');

const methods = {
  async launch({ chromium: executablePath }) {
    browser = await chromium.launch({ executablePath, args: FLAGS });
  },

  /** A window of its own, with a fresh profile. `hidden` takes objects out of the window before the page runs. */
  async open({ url, name = 'first', width = 1280, height = 900, dark = false, scale = 2, hidden = [] }) {
    await pages.get(name)?.context().close();
    const context = await browser.newContext({
      viewport: { width, height },
      deviceScaleFactor: scale,
      colorScheme: dark ? 'dark' : 'light',
      reducedMotion: 'reduce',
    });
    const opened = await context.newPage();
    await opened.addInitScript(names => names.forEach(each => delete window[each]), hidden);
    elsewhere = [];
    const origin = new URL(url).origin;
    opened.on('request', request => {
      if (!request.url().startsWith(origin) && !request.url().startsWith('data:')) elsewhere.push(request.url());
    });
    pages.set(name, opened);
    await opened.goto(url);
  },

  async opened({ name }) {
    return pages.has(name);
  },

  async reload({ name }) {
    await page(name).reload();
  },

  /** The addresses outside of the page's own server that were asked for since `open`. */
  async elsewhere() {
    return elsewhere;
  },

  async type({ text, delay = 0, name }) {
    await page(name).keyboard.type(text, { delay });
  },

  async press({ key, name }) {
    await page(name).keyboard.press(key);
  },

  async click({ selector, name }) {
    await page(name).locator(selector).first().click();
  },

  async hover({ selector, name }) {
    await page(name).locator(selector).first().hover();
  },

  async fill({ selector, text, name }) {
    await page(name).locator(selector).first().fill(text);
  },

  async size({ width, height, name }) {
    await page(name).setViewportSize({ width, height });
  },

  /** What an expression is in the page. */
  async value({ expression, name }) {
    return page(name).evaluate(expression);
  },

  /** What axe-core finds wrong, a line each. */
  async axe({ name }) {
    await page(name).evaluate(await readFile(AXE, 'utf8'));
    const found = await page(name).evaluate(() =>
      window.axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'] }),
    );
    return found.violations.flatMap(({ id, nodes }) =>
      nodes.map(node => `${id}: ${node.html.slice(0, 120)} ${node.any[0]?.message ?? ''}`),
    );
  },

  async screenshot({ path, whole = false, selector, name }) {
    const target = selector ? page(name).locator(selector) : page(name);
    await target.screenshot({ path, ...(selector ? {} : { fullPage: whole }) });
  },

  async close() {
    await browser?.close();
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  try {
    process.stdout.write(`${JSON.stringify({ id, result: (await methods[method](params)) ?? null })}\n`);
  } catch (error) {
    process.stdout.write(`${JSON.stringify({ id, error: String(error.message ?? error).split('\n')[0] })}\n`);
  }
  if (method === 'close') process.exit(0);
}
