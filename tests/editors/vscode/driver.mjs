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

  async resize({ width, height }) {
    await page.setViewportSize({ width, height });
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

  /** Begins to note what is on the screen, frame by frame. */
  async watch(selectors) {
    await page.evaluate(watchScreen, selectors);
  },

  /** Presses keys one after the other, each a character or a key's name; returns when the first was pressed. */
  async pressAll({ keys }) {
    await page.evaluate(() => { window.midspanPressed = undefined; });
    for (const key of keys) {
      await (key.length > 1 ? page.keyboard.press(key) : page.keyboard.type(key));
    }
    return page.evaluate(() => window.midspanPressed);
  },

  /** What was on the screen since the last call, the first as it was then: [{at, ghost, menu, entry}], at in Unix ms. */
  async screens() {
    return page.evaluate(() => {
      const { screens } = window.midspanSeen;
      window.midspanSeen.screens = screens.slice(-1);
      return screens;
    });
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

/** Runs in the page. Notes the time of a key, and each frame whose ghost text or menu differs from the one before. */
function watchScreen({ inline, lines, menu, entry }) {
  const texts = selector => [...document.querySelectorAll(selector)].map(one => one.textContent);
  const screen = () => ({
    ghost: [texts(inline).join(''), ...texts(lines)].join('\n'),
    menu: texts(menu).length > 0,
    entry: texts(entry)[0] ?? '',
  });
  window.midspanSeen = { screens: [] };
  const { timeOrigin } = performance;
  addEventListener('keydown', event => { window.midspanPressed ??= timeOrigin + event.timeStamp; }, { capture: true });
  const note = now => {
    const { screens } = window.midspanSeen;
    const [last, current] = [screens.at(-1), screen()];
    if (last?.ghost !== current.ghost || last?.menu !== current.menu || last?.entry !== current.entry) {
      screens.push({ at: timeOrigin + now, ...current });
    }
    // A task after this frame sees what the frame has drawn; the time is that of the next one.
    requestAnimationFrame(note);
  };
  requestAnimationFrame(note);
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
