/** What the keys of the preview do; Space ticks a box by itself. */
export interface Actions {
  move(by: number): void;
  open(): void;
  apply(): void;
  cancel(): void;
  tickWide(): void;
}

const STEPS: Record<string, number> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 };

export function followKeys(actions: Actions): void {
  document.addEventListener('keydown', event => {
    if (action(event, actions)) {
      event.preventDefault();
      event.stopPropagation();
    }
  });
}

/** Does what a key asks for; returns whether it is one of ours. */
function action(event: KeyboardEvent, actions: Actions): boolean {
  const step = STEPS[event.key];
  const onBox = event.target instanceof HTMLInputElement;
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
    actions.apply();
  } else if (event.ctrlKey || event.metaKey || event.altKey) {
    return false;
  } else if (event.key === 'Escape') {
    actions.cancel();
  } else if (step !== undefined) {
    actions.move(step);
  } else if (event.key === 'w') {
    actions.tickWide();
  } else if (event.key === 'Enter' && onBox) {
    actions.open();
  } else {
    return false;
  }
  return true;
}
