// Drives VS Code in a headless Chromium: one JSON request a line on stdin, {id, method, params}; one answer a line on
// stdout, {id, result} or {id, error}. It knows nothing of Midspan; the tests do.
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const VIEW = { width: 1100, height: 720 };
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

let browser;
let page;

const methods = {
  async launch({ chromium: executablePath }) {
    browser = await chromium.launch({ executablePath, args: FLAGS });
  },

  /** A fresh profile each time: nothing of an earlier window is kept. */
  async open({ url }) {
    await page?.context().close();
    const context = await browser.newContext({ viewport: VIEW, deviceScaleFactor: 2 });
    page = await context.newPage();
    await page.goto(url);
  },

  async type({ text, delay }) {
    await page.keyboard.type(text, { delay });
  },

  async press({ key }) {
    await page.keyboard.press(key);
  },

  async click({ selector }) {
    await page.locator(selector).first().click();
  },

  async doubleClick({ selector }) {
    await page.locator(selector).first().dblclick();
  },

  /** The texts of the elements that match and are shown. */
  async texts({ selector }) {
    return page.evaluate(readTexts, selector);
  },

  /** The texts that decorations add after what is in the editor. */
  async decorations() {
    return page.evaluate(() => {
      const spans = [...document.querySelectorAll('.view-line span')];
      const texts = spans.map(span => getComputedStyle(span, '::after').content);
      return texts.filter(text => text !== 'none' && text !== 'normal').map(text => text.slice(1, -1));
    });
  },

  /** The texts of the elements in webviews that match and are shown. */
  async webviewTexts({ selector }) {
    return (await Promise.all(webviews().map(frame => shownTexts(frame, selector)))).flat();
  },

  async webviewClick({ selector }) {
    for (const frame of webviews()) {
      if ((await shownTexts(frame, selector)).length) {
        return frame.locator(selector).first().click();
      }
    }
    throw new Error('no webview shows it');
  },

  async attribute({ selector, name }) {
    return page.evaluate(({ selector, name }) => document.querySelector(selector)?.getAttribute(name), { selector, name });
  },

  async screenshot({ path }) {
    await page.screenshot({ path });
  },

  /** When a key was pressed and ghost text drawn and shown for it, as Unix times in ms; shown is null if none came. */
  async keyToGhost({ key, selector, timeoutMs }) {
    // Keys and scripts take different ways into the page, so the key has to wait until the script is there.
    const watching = await page.evaluateHandle(watchForGhost, { selector, timeoutMs });
    await page.keyboard.type(key);
    return watching.evaluate(({ seen }) => seen);
  },

  async close() {
    await browser?.close();
  },
};

/** Runs in a page. */
function readTexts(selector) {
  return [...document.querySelectorAll(selector)].filter(one => one.checkVisibility()).map(one => one.textContent);
}

function webviews() {
  return page.frames().filter(frame => frame !== page.mainFrame());
}

function shownTexts(frame, selector) {
  return frame.evaluate(readTexts, selector).catch(() => []); // A frame may go meanwhile.
}

/** Runs in the page. What was on the screen before the key does not count unless it is drawn again. */
function watchForGhost({ selector, timeoutMs }) {
  const seen = new Promise(resolve => {
    const before = new Set(document.querySelectorAll(selector));
    let pressed = null;
    let drawn = null;
    const answer = shown => {
      observer.disconnect();
      clearTimeout(giveUp);
      resolve({ pressed, drawn, shown });
    };
    const observer = new MutationObserver(() => {
      const fresh = [...document.querySelectorAll(selector)].some(one => !before.has(one) && one.textContent);
      if (pressed !== null && fresh && drawn === null) {
        drawn = performance.timeOrigin + performance.now();
        // The second frame begins when the first, which has the ghost text in it, is on the screen.
        requestAnimationFrame(() => requestAnimationFrame(now => answer(performance.timeOrigin + now)));
      }
    });
    const giveUp = setTimeout(() => answer(null), timeoutMs);
    const listening = { capture: true, once: true };
    addEventListener('keydown', event => { pressed = performance.timeOrigin + event.timeStamp; }, listening);
    observer.observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  // In an object, because a bare promise would be waited for.
  return { seen };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  try {
    const result = await methods[method](params ?? {});
    process.stdout.write(`${JSON.stringify({ id, result: result ?? null })}\n`);
  } catch (error) {
    process.stdout.write(`${JSON.stringify({ id, error: String(error.message ?? error) })}\n`);
  }
  if (method === 'close') {
    break;
  }
}
process.exit();
