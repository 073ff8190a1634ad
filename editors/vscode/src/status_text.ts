import type { Broken, Report, Status } from './wire';

/** What a status item shows. */
export interface Shown {
  text: string;
  tooltip: string;
  severity: 'none' | 'error';
}

/** Where the user types: the language of the active editor, whether suggestions come unasked, and why none is shown. */
export interface Here {
  language: { id: string; on: boolean } | undefined;
  automatic: boolean;
  silence?: string | undefined;
}

/** Returns how to show a status. Suggestions may be off for the language of the active editor. */
export function shown(status: Status | Broken, { language, automatic, silence }: Here): Shown {
  const { state, message } = status;
  if (state === 'error') {
    const { brief, click } = 'brief' in status ? status : { brief: 'no suggestions', click: 'Click for what to do.' };
    return { text: `$(error) Midspan: ${brief}`, tooltip: `${message}\n\n${click}`, severity: 'error' };
  }
  if (language && !language.on && state !== 'starting') {
    const tooltip = state === 'off' ? message : `Suggestions are off for ${language.id}.`;
    return { text: '$(circle-slash) Midspan', tooltip, severity: 'none' };
  }
  if (state === 'starting') {
    return { text: '$(loading~spin) Midspan', tooltip: message, severity: 'none' };
  }
  if (state === 'off' && snoozed(status) !== undefined) {
    return { text: '$(bell-slash) Midspan', tooltip: `${message}\n\nClick to end the snooze.`, severity: 'none' };
  }
  if (state === 'off') {
    return { text: '$(circle-slash) Midspan', tooltip: message, severity: 'none' };
  }
  const name = status.model ?? 'Midspan';
  const median = status.medianMs ? ` ${Math.round(status.medianMs)} ms` : '';
  // A ring, not a spinner: a fill is so short that a spinner would only flicker. An engine that is not needed yet has one too.
  const icon =
    state === 'busy' || state === 'idle' ? '$(circle-outline)' : automatic ? '$(circle-filled)' : '$(eye-closed)';
  const why = silence ? `\n\nNo suggestion: ${silence}.` : '';
  const asked = automatic ? '' : '\n\nSuggestions come only when you ask for one.';
  return {
    text: `${icon} ${name}${median}`,
    tooltip: `${message}${why}${asked}${median && `\n\nMedian:${median}.`}${status.memory ? `\n\n${status.memory}` : ''}`,
    severity: 'none',
  };
}

/** Returns when a snooze ends, in seconds since the epoch; undefined if there is none. */
export function snoozed({ snoozedUntil }: Status): number | undefined {
  return snoozedUntil ?? undefined;
}

/** Returns a time, given in seconds since the epoch, as the clock on the wall shows it: 14:05. */
export function clock(seconds: number): string {
  const time = new Date(seconds * 1000);
  return [time.getHours(), time.getMinutes()].map(part => String(part).padStart(2, '0')).join(':');
}

/** Returns the counts of this session as one line. */
export function readable(report: Report): string {
  const model = report.engine ? `${report.engine.model.name} on ${report.engine.model.device}` : report.model;
  const counts = `${report.asked} asked, ${report.reused} typed along, ${report.shown} shown, ${report.accepted} accepted, ${report.dismissed} dismissed`;
  const median = report.medianMs ? `; median ${Math.round(report.medianMs)} ms` : '';
  const memory = report.memory ? `; ${report.memory}` : '';
  return `${model}, ${report.state}: ${counts}${median}${memory}.`;
}
