import { dirname, join } from 'node:path';
import { ConfigurationTarget, type LogOutputChannel, ProgressLocation, window, workspace } from 'vscode';
import { downloadSize, type ModelSheet, modelChoices, pullProgress } from './model_sheet';
import { findProgram, outputOf, run } from './process';
import type { Server } from './server';

const LISTING_MS = 60_000;
const DOWNLOAD = 'Download';
const ACCEPT = 'Accept the Licence and Download';

/**
 * Lets the user choose a model that is here or fits this machine, and downloads it if need be: the one place where the
 * extension has something fetched from the network, and only after the user said so. Throws a one-line Error.
 */
export async function chooseModel(server: Server, log: LogOutputChannel): Promise<void> {
  const line = commandLine(server);
  const settings = workspace.getConfiguration('midspan');
  const listing = outputOf(line.command, [...line.args, 'models', 'list', '--json'], LISTING_MS);
  const choices = listing.then(output => {
    if (output === undefined) {
      throw new Error(
        `\`${[line.command, ...line.args].join(' ')} models list --json\` failed; see what it says in a terminal`,
      );
    }
    return modelChoices(JSON.parse(output) as ModelSheet[], settings.get<string>('model', 'default'));
  });
  const options = { title: 'Choose a Model', placeHolder: 'models that are here, or that fit the free memory' };
  const chosen = await window.showQuickPick(choices, { ...options, matchOnDescription: true });
  if (!chosen || (!chosen.sheet.here && !(await pulled(chosen.sheet, line, log)))) {
    return;
  }
  await settings.update('model', chosen.sheet.name, ConfigurationTarget.Global);
  window.setStatusBarMessage(`Midspan: ${chosen.sheet.name} is the model from now on`, 5000);
}

/** Downloads a model with progress if the user says so. Returns whether it is here then. */
async function pulled(sheet: ModelSheet, line: Line, log: LogOutputChannel): Promise<boolean> {
  const { catalog, name } = sheet;
  const yes = catalog?.free ? DOWNLOAD : ACCEPT;
  const detail = `About ${downloadSize(sheet)} from the hub. Licence: ${catalog?.licence ?? 'not known'}. Models other than the embedded one need torch, which comes with Midspan's extra "models".`;
  if ((await window.showInformationMessage(`Download ${name}?`, { modal: true, detail }, yes)) !== yes) {
    return false;
  }
  const accepting = catalog?.free ? [] : ['--accept-licence'];
  const options = { location: ProgressLocation.Notification, title: `Midspan: ${name}`, cancellable: true };
  await window.withProgress(options, async (progress, token) => {
    let reached = 0;
    let said = '';
    const tell = (output: string) => {
      const known = pullProgress(output);
      if (!known) {
        log.info(output);
        said = output;
        return;
      }
      progress.report({ message: known.message, increment: Math.max(known.percent - reached, 0) });
      reached = Math.max(reached, known.percent);
    };
    try {
      await run(line.command, [...line.args, 'models', 'pull', name, '--json', ...accepting], tell, token);
    } catch (error) {
      // What the program itself said last is the reason.
      throw token.isCancellationRequested || !said ? error : new Error(said.replace(/^midspan: /, ''));
    }
  });
  return true;
}

interface Line {
  command: string;
  args: string[];
}

/** Returns how to run `midspan` where the server comes from. Throws a one-line Error if it is not there. */
function commandLine({ command, args }: Server): Line {
  if (args.includes('lsp_server')) {
    return { command, args: args.map(argument => (argument === 'lsp_server' ? 'engine.cli' : argument)) };
  }
  const program = findProgram(join(dirname(command), 'midspan'));
  if (!program) {
    throw new Error(`there is no midspan beside ${command}; run \`midspan models list\` in a terminal`);
  }
  return { command: program, args: [] };
}
