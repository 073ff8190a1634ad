/** What `midspan models list --json` says of a model. Sizes are in bytes. */
export interface ModelSheet {
  name: string;
  here: string | null;
  in_use: boolean;
  parameters: number;
  catalog: { family: string; licence: string; free: boolean; size_bytes: number | null; notes: string } | null;
  fits: Record<string, Record<string, string | null>>;
}

/** A model that the user may choose. `label`, `description` and `detail` are as a quick pick has them. */
export interface ModelChoice {
  sheet: ModelSheet;
  label: string;
  description: string;
  detail: string;
}

const FITS = 'fits';

/** Returns the models that are here or fit this machine, those that are here first, then the smallest first. */
export function modelChoices(sheets: ModelSheet[], current: string): ModelChoice[] {
  const fitting = sheets.filter(sheet => sheet.here || fitsIn(sheet).length);
  const order = (sheet: ModelSheet) => [sheet.here ? 0 : 1, sheet.parameters] as const;
  return fitting.sort(comparing(order)).map(sheet => {
    const used = sheet.name === current || (current === 'default' && sheet.in_use);
    const where = used ? 'in use' : sheet.here ? 'here' : `to download: ${downloadSize(sheet)}`;
    const licence = sheet.catalog ? `licence ${sheet.catalog.licence}` : '';
    const fits = fitsIn(sheet).join(', ');
    return {
      sheet,
      label: sheet.name,
      description: `${parametersOf(sheet)}, ${where}`,
      detail: [fits && `fits in ${fits}`, licence].filter(Boolean).join('; '),
    };
  });
}

/** Returns how large the download of a model is, as people say it. */
export function downloadSize({ catalog, parameters }: ModelSheet): string {
  const bytes = catalog?.size_bytes ?? 2 * parameters;
  return bytes >= 1e8 ? `${(bytes / 1e9).toFixed(1)} GB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** Returns what to show of a line of `midspan models pull --json`, and the percentage that is reached. */
export function pullProgress(line: string): { message: string; percent: number } | undefined {
  try {
    const { doing, present, total } = JSON.parse(line) as { doing: string; present: number; total: number };
    const percent = total ? Math.floor((100 * present) / total) : 0;
    return { message: `${percent} %, ${doing}`, percent };
  } catch {
    return undefined; // A line of the Python around it.
  }
}

/** Returns the precisions in which a model fits the memory that is free, of the machine or of a GPU. */
function fitsIn({ fits }: ModelSheet): string[] {
  return Object.entries(fits).flatMap(([memory, verdicts]) => {
    const best = Object.entries(verdicts).find(([, verdict]) => verdict === FITS);
    return best ? [memory === 'memory' ? best[0] : `${best[0]} on ${memory}`] : [];
  });
}

function parametersOf({ parameters }: ModelSheet): string {
  return parameters >= 1e9 ? `${(parameters / 1e9).toFixed(1)} B` : `${Math.round(parameters / 1e6)} M`;
}

function comparing<T>(order: (one: T) => readonly number[]): (one: T, other: T) => number {
  return (one, other) => {
    const [left, right] = [order(one), order(other)];
    const differing = left.findIndex((value, index) => value !== right[index]);
    return differing < 0 ? 0 : (left[differing] ?? 0) - (right[differing] ?? 0);
  };
}
