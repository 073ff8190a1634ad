/** When a user is asked about a larger model. */

const AGAIN_MS = 7 * 24 * 60 * 60 * 1000;

/** What the user said last about a larger model, of which model, and when, in milliseconds since the epoch. */
export interface OfferAnswer {
  answer: 'install' | 'later' | 'never';
  model: string;
  at: number;
}

/** Returns whether to ask: not after Never, about a model that was installed, or within a week after Later. */
export function isDue(last: OfferAnswer | undefined, model: string, now: number): boolean {
  if (!last) {
    return true;
  }
  if (last.answer === 'later') {
    return now - last.at >= AGAIN_MS;
  }
  return last.answer === 'install' && last.model !== model;
}
