import { type Memento, window } from 'vscode';
import { isDue, type OfferAnswer } from './offer_answer';
import type { ModelOffer } from './wire';

const INSTALL = 'Install';
const LATER = 'Later';
const NEVER = 'Never';
const KEY = 'midspan.largerModel';

/** Asks the user once about a larger model that this machine carries, and remembers the answer. */
export class Offers {
  private asked = false;

  constructor(
    private readonly kept: Memento,
    private readonly install: () => Thenable<unknown>,
  ) {}

  /** Asks, unless that was done in this window, the user wants no such question, or said Later a short time ago. */
  async consider({ model, text }: ModelOffer): Promise<void> {
    if (this.asked || !isDue(this.kept.get<OfferAnswer>(KEY), model, Date.now())) {
      return;
    }
    this.asked = true;
    const question = `Midspan: ${text}. Until it answers, the model in use goes on.`;
    const said = await window.showInformationMessage(question, INSTALL, LATER, NEVER);
    const answer = said === INSTALL ? 'install' : said === NEVER ? 'never' : 'later';
    await this.kept.update(KEY, { answer, model, at: Date.now() } satisfies OfferAnswer);
    if (answer === 'install') {
      await this.install();
    }
  }
}
