// The text on the left: CodeMirror, with ghost text, the hole and the heat map drawn over it.
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { javascript } from '@codemirror/lang-javascript';
import { python } from '@codemirror/lang-python';
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from '@codemirror/language';
import { Compartment, EditorState, type Extension } from '@codemirror/state';
import { drawSelection, EditorView, hoverTooltip, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { make, percent, visible } from './dom.ts';
import { type Ghost, ghosts } from './ghost.ts';
import { heatField, holeField } from './marks.ts';

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: 'var(--code-keyword)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--code-string)' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: 'var(--code-number)' },
  { tag: tags.comment, color: 'var(--soft)', fontStyle: 'italic' },
  { tag: [tags.definition(tags.variableName), tags.function(tags.variableName), tags.className], color: 'var(--code-name)' },
]);

const language = new Compartment();

function languageOf(path: string): Extension {
  if (/\.pyi?$/.test(path)) return python();
  if (/\.[cm]?[jt]sx?$/.test(path)) return javascript({ typescript: /\.[cm]?tsx?$/.test(path), jsx: /x$/.test(path) });
  return [];
}

/** Says of a token of the heat map how likely it is, and the three likeliest ones. */
const heatTip = hoverTooltip((view, at) => {
  const token = view.state.field(heatField).tokens.find(each => each.from <= at && at < each.to);
  if (!token) return null;
  return {
    pos: token.from,
    end: token.to,
    above: true,
    create: () => {
      const rows = token.likeliest.map(guess =>
        make('li', {}, make('code', {}, visible(guess.text)), ` ${percent(guess.probability)}`),
      );
      const head = make('p', {}, make('code', {}, visible(view.state.sliceDoc(token.from, token.to))));
      head.append(` ${percent(token.probability)}`);
      return { dom: make('div', { class: 'tip' }, head, make('ol', {}, ...rows)) };
    },
  };
});

export interface Heard {
  changed(textToo: boolean): void;
  taken(ghost: Ghost): void;
}

export function openEditor(parent: HTMLElement, heard: Heard): EditorView {
  return new EditorView({
    parent,
    state: EditorState.create({
      extensions: [
        lineNumbers(),
        history(),
        drawSelection(),
        indentOnInput(),
        bracketMatching(),
        indentUnit.of('    '),
        syntaxHighlighting(colours),
        holeField,
        heatField,
        heatTip,
        ghosts(heard.taken),
        language.of([]),
        // Tab without a ghost leaves the editor, as the keyboard alone must be able to.
        keymap.of([...defaultKeymap, ...historyKeymap]),
        EditorView.contentAttributes.of({ 'aria-label': 'Text', spellcheck: 'false' }),
        EditorView.updateListener.of(update => {
          if (update.docChanged || update.selectionSet) heard.changed(update.docChanged);
        }),
      ],
    }),
  });
}

/** Put another text into the editor, with the cursor at `at`. Its undo history begins here. */
export function openText(view: EditorView, path: string, text: string, at: number): void {
  view.dispatch({
    changes: { from: 0, to: view.state.doc.length, insert: text },
    selection: { anchor: Math.min(at, text.length) },
    effects: language.reconfigure(languageOf(path)),
    scrollIntoView: true,
  });
}
