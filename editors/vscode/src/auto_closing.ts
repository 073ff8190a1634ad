import type { InlineCompletionItem, InlineCompletionList } from 'vscode';

const CLOSING = new Map([
  ['(', ')'],
  ['[', ']'],
  ['{', '}'],
]);
const QUOTES = '"\'`';
const TOKENS = /\\.|[()[\]{}"'`]/gs;

/**
 * Adds to each item the same with what the editor may close in it by itself, for a user who types along it.
 *
 * VS Code keeps an item on the screen only while it has in it what stands after the cursor. The start of a line may end
 * inside brackets: `call(first` goes as soon as VS Code makes `call()` of the typed `call(`, until the next answer. With
 * `call(first)` in the list too, that is shown then. Before, the first item of the list is.
 */
export function withAutoClosed(
  answer: InlineCompletionItem[] | InlineCompletionList | null | undefined,
): InlineCompletionItem[] | InlineCompletionList | null | undefined {
  if (!answer) {
    return answer;
  }
  const items = Array.isArray(answer) ? answer : answer.items;
  const closed = items.flatMap(item => {
    const { insertText } = item;
    return typeof insertText === 'string'
      ? autoClosed(insertText).map(closing => ({ ...item, insertText: insertText + closing }))
      : [];
  });
  return Array.isArray(answer) ? [...items, ...closed] : { ...answer, items: [...items, ...closed] };
}

/** Returns what an editor has closed by itself after the 1st, 2nd, ... of the brackets and quotes that `text` leaves open. */
export function autoClosed(text: string): string[] {
  const open: string[] = [];
  for (const [token] of text.matchAll(TOKENS)) {
    const last = open.at(-1);
    if (token === last) {
      open.pop();
    } else if (last && QUOTES.includes(last)) {
      // In a string a bracket is a character.
    } else if (QUOTES.includes(token)) {
      open.push(token);
    } else if (CLOSING.has(token)) {
      open.push(CLOSING.get(token) ?? '');
    }
  }
  return open.map((_, index) =>
    open
      .slice(0, index + 1)
      .reverse()
      .join(''),
  );
}
