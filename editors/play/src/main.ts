// The page: the text goes out at each key, and what comes back is drawn.
import { ask, type EngineStatus, type Origin, type Place, Problem, type Trace } from './api.ts';
import { Canvas } from './canvas.ts';
import { counted, make, say, the } from './dom.ts';
import { openEditor, openText } from './editor.ts';
import { Engine } from './engine.ts';
import { showGhost } from './ghost.ts';
import { Heat } from './heat.ts';
import { setHole } from './marks.ts';
import { CURSOR, NAME, TEXT } from './sample.ts';
import { Sudoku } from './sudoku.ts';
import { showVerdict } from './verdict.ts';
import { PENDING, Ways } from './ways.ts';

const REST_MS = 140;
const STATUS_MS = 2000;
const MOST_FILE = 1024 * 1024;
const KINDS: Record<string, string> = {
  'rest of line': 'the rest of a line',
  statement: 'a statement',
  body: 'an empty body',
  string: 'in a string',
  comment: 'in a comment',
};

const page = crypto.randomUUID();
const field = the<HTMLInputElement>('file');
const engine = new Engine();
let path = NAME;
let edits = 0;
let resting = 0;
let files = new Set<string>();
let gone = false;

const view = openEditor(the('editor'), {
  changed: textToo => changed(textToo),
  taken: ghost => void ask('accepted', { tag: ghost.tag }).catch(() => undefined),
});
const canvas = new Canvas(origin => void openOrigin(origin));
const ways = new Ways((trace, why) => (trace ? show(trace, false) : wait(why)));

const heat = new Heat(view, place, complain);
const sudoku = new Sudoku(complain);

function place(): Place {
  return { page, path, text: view.state.doc.toString(), at: view.state.selection.main.head, edit: edits };
}

function show(trace: Trace, plays: boolean): void {
  canvas.show(trace, plays);
  showVerdict(trace.verdict);
}

function wait(why: string): void {
  canvas.wait(why);
  the('gate').classList.add('pending');
}

function complain(error: unknown): void {
  const problem = error instanceof Problem ? error : new Problem('The page failed on this; reload it.');
  if (!(error instanceof Problem)) console.error(error);
  gone = problem.lost;
  say(the('problem'), problem.message);
}

function fine(): void {
  gone = false;
  say(the('problem'), '');
}

function changed(textToo: boolean): void {
  heat.changed(textToo);
  edits += 1;
  document.body.dataset.edit = String(edits);
  ways.wait();
  wait(PENDING);
  const suggested = suggest(edits);
  window.clearTimeout(resting);
  resting = window.setTimeout(() => void follow(edits, suggested), REST_MS);
}

/** Ask for the ghost. The language server drops the requests that a newer key has overtaken. */
async function suggest(edit: number): Promise<void> {
  if (!view.state.selection.main.empty) return;
  const begun = performance.now();
  try {
    const ghost = await ask<{ text: string; tag: unknown }>('suggest', place());
    if (edit !== edits) return;
    engine.took(performance.now() - begun);
    showGhost(view, ghost.text ? ghost : null);
    if (ghost.text) fine();
  } catch (error) {
    if (edit === edits) complain(error);
  }
}

/**
 * The cursor rests: fill the hole in all ways, with every step. The suggestion, which is asked for first, reads the
 * context, so that no way has to do it for the others.
 */
async function follow(edit: number, suggested: Promise<void>): Promise<void> {
  const here = place();
  await suggested;
  if (edit !== edits) return;
  let [first, failure]: [Trace | null, unknown] = [null, null];
  for (const rule of ways.order()) {
    try {
      const trace = await ask<Trace>('trace', { ...here, rule });
      if (edit !== edits) return;
      ways.put(rule, trace);
      if (rule === ways.chosen) show(trace, true);
      if (!first) showCut(trace);
      first ??= trace;
    } catch (error) {
      if (edit !== edits) return;
      failure ??= error;
      const why = error instanceof Problem ? error.message : 'failed';
      ways.fail(rule, why);
      if (rule === ways.chosen) wait('no answer');
      if (error instanceof Problem && error.lost) break;
    }
  }
  if (first) fine();
  else complain(failure);
  document.body.dataset.settled = String(edit);
}

function showCut({ hole, context_tokens, cached_tokens }: Trace): void {
  view.dispatch({ effects: setHole.of(hole) });
  const lines = hole.extent === 'line' ? 'one line' : 'several lines';
  const unread = hole.hidden[1] > hole.hidden[0] ? '; what only closes brackets after it is hidden from the model' : '';
  const read = `${context_tokens} tokens of context, ${cached_tokens} of them known already`;
  say(the('cut'), `The hole is ${KINDS[hole.context] ?? hole.context}, ${lines}${unread}. ${read}.`);
}

async function openFile(name: string, line = 0): Promise<void> {
  try {
    const { text } = await ask<{ text: string }>('read', { path: name });
    put(name, text, line);
    fine();
  } catch (error) {
    complain(error);
    field.value = path;
  }
}

function put(name: string, text: string, line: number): void {
  path = name;
  field.value = name;
  const lines = text.split('\n');
  const start = lines.slice(0, Math.max(0, line - 1)).join('\n').length + (line > 1 ? 1 : 0);
  openText(view, name, text, line ? start + (lines[line - 1]?.length ?? 0) : 0);
  view.focus();
}

async function openOrigin(origin: Origin): Promise<void> {
  if (origin.path !== path) return openFile(origin.path, origin.line);
  const line = view.state.doc.line(Math.min(origin.line, view.state.doc.lines));
  view.dispatch({ selection: { anchor: line.from, head: line.to }, scrollIntoView: true });
  view.focus();
}

async function watchEngine(): Promise<void> {
  if (!document.hidden) {
    try {
      const status = await ask<EngineStatus>('engine');
      const { state, message } = status;
      document.body.dataset.engine = state;
      say(the('model'), status.engine ? `${status.engine.model.name} is ready` : message);
      engine.show(status);
      if (gone || state === 'error') state === 'error' ? say(the('problem'), message) : fine();
      else if (the('problem').dataset.engine === 'error') fine();
      the('problem').dataset.engine = state;
    } catch (error) {
      complain(error);
    }
  }
  window.setTimeout(() => void watchEngine(), STATUS_MS);
}

async function begin(): Promise<void> {
  const { folder } = await ask<{ folder: string | null }>('hello');
  if (!folder) {
    field.parentElement?.remove();
    return;
  }
  field.placeholder = `a file of ${folder}`;
  const { paths, more } = await ask<{ paths: string[]; more: boolean }>('files');
  files = new Set(paths);
  the('files').replaceChildren(...paths.map(name => make('option', { value: name })));
  field.title = counted(paths.length, 'file', 'files') + (more ? ', and more that are not listed' : '');
}

field.addEventListener('change', () => {
  const name = field.value.trim();
  if (files.has(name)) void openFile(name);
  else if (name && name !== path) complain(new Problem(`${name} is no file of the folder; choose one of the list`));
});
the('theme').addEventListener('click', () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  canvas.drawRoll();
});
view.dom.addEventListener(
  'paste',
  event => {
    const text = event.clipboardData?.getData('text/plain') ?? '';
    if (text.length + view.state.doc.length <= MOST_FILE) return;
    event.preventDefault();
    event.stopPropagation();
    complain(new Problem('That is more than 1 MB, which the page does not take; paste a part of it.'));
  },
  true,
);
addEventListener('pagehide', () => void ask('leave', { page }, true).catch(() => undefined));

const sudokuFirst = new URLSearchParams(location.search).has('sudoku');
document.body.classList.toggle('sudoku-first', sudokuFirst);
openText(view, NAME, TEXT, CURSOR);
if (!sudokuFirst) view.focus();
begin().catch(complain);
sudoku.begin(sudokuFirst).catch(complain);
void watchEngine();
