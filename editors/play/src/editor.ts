// The text on the left: CodeMirror, with ghost text and the hole drawn over it.
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { javascript } from '@codemirror/lang-javascript';
import { python } from '@codemirror/lang-python';
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from '@codemirror/language';
import { Compartment, EditorState, type Extension } from '@codemirror/state';
import { drawSelection, EditorView, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { type Ghost, ghosts } from './ghost.ts';
import { heatMap } from './heat.ts';
import { holeField } from './marks.ts';

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
        EditorView.lineWrapping,
        indentOnInput(),
        bracketMatching(),
        indentUnit.of('    '),
        syntaxHighlighting(colours),
        holeField,
        ghosts(heard.taken),
        heatMap,
        language.of([]),
        // Tab without a ghost leaves the editor, as the keyboard alone must be able to.
        keymap.of([...defaultKeymap, ...historyKeymap]),
        EditorView.contentAttributes.of({ 'aria-label': 'Text', spellcheck: 'false', tabindex: '0' }),
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
