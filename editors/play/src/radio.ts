// A radio group of buttons, by their keys: one is checked, and the arrows choose the next one, round in a circle.
type Options<Key> = ReadonlyMap<Key, { root: HTMLButtonElement }>;

export function check<Key>(options: Options<Key>, chosen: Key): void {
  for (const [key, { root }] of options) {
    root.setAttribute('aria-checked', String(key === chosen));
    root.tabIndex = key === chosen ? 0 : -1;
  }
}

export function arrow<Key>(event: KeyboardEvent, options: Options<Key>, from: Key, choose: (key: Key) => void): void {
  const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  const keys = [...options.keys()];
  const next = keys[(keys.indexOf(from) + by + keys.length) % keys.length];
  if (next === undefined) return;
  choose(next);
  options.get(next)?.root.focus();
}
