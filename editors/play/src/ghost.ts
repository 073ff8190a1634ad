// Ghost text after the cursor: taken whole, by word or by line, kept while it is typed along.
import { EditorSelection, Prec, StateEffect, StateField, type Transaction } from '@codemirror/state';
import { type Command, Decoration, EditorView, keymap, WidgetType } from '@codemirror/view';

export interface Ghost {
  text: string;
  /** What tells the language server that it was taken. */
  tag: unknown;
}

const setGhost = StateEffect.define<Ghost | null>();

class GhostText extends WidgetType {
  constructor(readonly text: string) {
    super();
  }
  override eq(other: GhostText): boolean {
    return other.text === this.text;
  }
  toDOM(): HTMLElement {
    const element = document.createElement('span');
    element.className = 'ghost';
    element.textContent = this.text;
    return element;
  }
}

/** Return what is left of a ghost after a transaction that typed its start; null after any other change. */
function rest(ghost: Ghost, transaction: Transaction): Ghost | null {
  if (!transaction.docChanged) return transaction.selection ? null : ghost;
  const before = transaction.startState.selection.main.head;
  const after = transaction.state.selection.main.head;
  const typed = transaction.state.sliceDoc(before, Math.max(before, after));
  const grown = transaction.state.doc.length - transaction.startState.doc.length;
  const isAlong = typed !== '' && grown === typed.length && ghost.text.startsWith(typed);
  return isAlong && typed !== ghost.text ? { ...ghost, text: ghost.text.slice(typed.length) } : null;
}

export const ghostField = StateField.define<Ghost | null>({
  create: () => null,
  update(ghost, transaction) {
    for (const effect of transaction.effects) if (effect.is(setGhost)) return effect.value;
    return ghost && rest(ghost, transaction);
  },
  provide: field =>
    EditorView.decorations.compute([field, 'selection'], state => {
      const ghost = state.field(field);
      if (!ghost?.text || !state.selection.main.empty) return Decoration.none;
      const widget = Decoration.widget({ widget: new GhostText(ghost.text), side: 1 });
      return Decoration.set(widget.range(state.selection.main.head));
    }),
});

export function showGhost(view: EditorView, ghost: Ghost | null): void {
  const now = view.state.field(ghostField);
  if (now?.text !== ghost?.text) view.dispatch({ effects: setGhost.of(ghost) });
}

/** Take the part of the ghost that `length` says; the rest stays. */
function take(length: (text: string) => number, taken: (ghost: Ghost) => void): Command {
  return view => {
    const ghost = view.state.field(ghostField);
    if (!ghost?.text) return false;
    const part = ghost.text.slice(0, length(ghost.text));
    const at = view.state.selection.main.head;
    view.dispatch({
      changes: { from: at, insert: part },
      selection: EditorSelection.cursor(at + part.length),
      effects: setGhost.of(part === ghost.text ? null : { ...ghost, text: ghost.text.slice(part.length) }),
      scrollIntoView: true,
      userEvent: 'input.complete',
    });
    if (part === ghost.text) taken(ghost);
    return true;
  };
}

const wordLength = (text: string): number => (/^\s*(\w+|[^\w\s]+)/.exec(text)?.[0] ?? text).length;
const lineLength = (text: string): number => (/^\n*[^\n]*/.exec(text)?.[0] ?? text).length || text.length;

/** `taken` is told of a ghost that was taken to its end. */
export function ghosts(taken: (ghost: Ghost) => void) {
  const word = take(wordLength, taken);
  return [
    ghostField,
    Prec.highest(
      keymap.of([
        { key: 'Tab', run: take(text => text.length, taken) },
        { key: 'Ctrl-ArrowRight', mac: 'Mod-ArrowRight', run: word },
        { key: 'Ctrl-ArrowDown', mac: 'Mod-ArrowDown', run: take(lineLength, taken) },
        {
          key: 'Escape',
          run: view => {
            if (!view.state.field(ghostField)?.text) return false;
            showGhost(view, null);
            return true;
          },
        },
      ]),
    ),
  ];
}
