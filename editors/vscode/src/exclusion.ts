/** The values of a list in the settings, by where they are set, as VS Code tells them. */
export interface SetLists {
  defaultValue?: unknown;
  globalValue?: unknown;
  workspaceValue?: unknown;
  workspaceFolderValue?: unknown;
}

/**
 * Returns the patterns to exclude: the user's own, or else the default ones, and those of the workspace.
 *
 * VS Code itself would let a workspace's list take the place of the user's. A repository could then have secrets read.
 */
export function allExcluded(set: SetLists): unknown {
  const own = set.globalValue ?? set.defaultValue;
  if (!Array.isArray(own)) {
    return own; // The server says what is wrong with it.
  }
  const added = [set.workspaceValue, set.workspaceFolderValue].filter(Array.isArray);
  return [...new Set([...own, ...added.flat()])];
}
