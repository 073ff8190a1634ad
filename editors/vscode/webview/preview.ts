import type { FromPreview, ToPreview } from '../src/preview_messages';
import { followKeys } from './keys';
import { Ticks } from './ticks';
import { View } from './view';

/** What is kept while the panel is hidden: which edit it had, and what was ticked. */
interface Kept {
  id: number;
  chosen: number[];
}

declare function acquireVsCodeApi(): {
  postMessage(message: FromPreview): void;
  getState(): Kept | undefined;
  setState(kept: Kept): void;
};

const host = acquireVsCodeApi();
const post = (message: FromPreview) => host.postMessage(message);
let view: View | undefined;

window.addEventListener('message', ({ data }: MessageEvent<ToPreview>) => {
  if (data.type === 'stale') {
    view?.warn(data.message);
    return;
  }
  const { edit } = data;
  const kept = host.getState();
  const ticks = new Ticks(edit, kept?.id === edit.id ? kept.chosen : undefined);
  view = new View(edit, ticks, post, () => host.setState({ id: edit.id, chosen: ticks.chosen }));
});
window.addEventListener('focus', () => view?.focus());
followKeys({
  move: by => view?.move(by),
  open: () => view?.open(),
  apply: () => view?.apply(),
  cancel: () => post({ type: 'cancel' }),
  tickWide: () => view?.tickWide(),
});
post({ type: 'ready' });
