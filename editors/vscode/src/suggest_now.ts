import { commands, window } from 'vscode';

/** Asks for suggestions at the cursor. The palette takes the focus, so it goes back first. */
export async function suggestNow(): Promise<void> {
  if (!window.activeTextEditor) {
    throw new Error('open a file first: the suggestion is for its cursor');
  }
  await commands.executeCommand('workbench.action.focusActiveEditorGroup');
  // While the completion menu is open, only what begins with its selected entry would be shown.
  await commands.executeCommand('hideSuggestWidget');
  await commands.executeCommand('editor.action.inlineSuggest.trigger');
}
