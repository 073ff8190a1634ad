// The few things that the page needs of the DOM.

type Child = Node | string;

/** Make an element. `fields` are attributes; class names are given as `class`. */
export function make<K extends keyof HTMLElementTagNameMap>(
  name: K,
  fields: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(fields)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Return an element of index.html. */
export function the<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no #${id}`);
  return found as T;
}

/** Write a text, and touch nothing if it is there already: a screen reader would read it again. */
export function say(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** A token's text as a tile shows it: no character is invisible. */
export function visible(text: string): string {
  if (text === '') return 'end';
  return text.replaceAll('\n', '↵').replaceAll('\t', '⇥').replace(/^ +| +$/g, spaces => '·'.repeat(spaces.length));
}

export function percent(share: number): string {
  if (share > 0 && share < 0.005) return 'under 1 %';
  return `${Math.round(100 * share)} %`;
}

export function milliseconds(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

/** Return `word` with its number: `1 pass`, `3 passes`. */
export function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}
