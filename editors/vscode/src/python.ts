import { join } from 'node:path';
import { type Disposable, type Event, extensions, type Uri, workspace } from 'vscode';
import { outputOf } from './process';

const PYTHON_EXTENSION = 'ms-python.python';

/** The part of the Python extension's API that we use. The extension may be missing. */
interface PythonApi {
  environments: {
    getActiveEnvironmentPath(resource?: Uri): { path: string };
    resolveEnvironment(environment: { path: string }): Promise<{ executable: { uri?: Uri } } | undefined>;
    onDidChangeActiveEnvironmentPath: Event<unknown>;
  };
}

/** Returns the interpreter selected in the Python extension; undefined without that extension. */
export async function selectedPython(): Promise<string | undefined> {
  const environments = (await pythonApi())?.environments;
  const folder = workspace.workspaceFolders?.[0]?.uri;
  const chosen = environments?.getActiveEnvironmentPath(folder);
  return chosen && (await environments?.resolveEnvironment(chosen))?.executable.uri?.fsPath;
}

/** Calls `changed` each time another interpreter is selected. */
export async function onSelectedPython(changed: () => void): Promise<Disposable | undefined> {
  return (await pythonApi())?.environments.onDidChangeActiveEnvironmentPath(changed);
}

/** The interpreter of the environment in `folder`. It may not exist. */
export function pythonIn(folder: string): string {
  const place = process.platform === 'win32' ? ['Scripts', 'python.exe'] : ['bin', 'python'];
  return join(folder, ...place);
}

/** Returns the version of Midspan in this interpreter; undefined if it is not installed there. */
export function midspanVersion(python: string): Promise<string | undefined> {
  // -P: Python must not import a folder `engine` or `lsp_server` of the user's project instead of ours.
  return outputOf(python, ['-P', '-c', 'import importlib.metadata as m; print(m.version("midspan"))']);
}

/** Returns a Python that can run Midspan: the selected one, or one on the PATH. */
export async function newEnoughPython(): Promise<string | undefined> {
  const named = process.platform === 'win32' ? ['py', 'python'] : ['python3', 'python'];
  for (const python of [await selectedPython(), ...named]) {
    if (python && (await outputOf(python, ['-c', 'import sys; print(sys.version_info >= (3, 11))'])) === 'True') {
      return python;
    }
  }
  return undefined;
}

async function pythonApi(): Promise<PythonApi | undefined> {
  const extension = extensions.getExtension<PythonApi>(PYTHON_EXTENSION);
  try {
    return await extension?.activate();
  } catch {
    return undefined; // The Python extension itself tells its users what is wrong.
  }
}
