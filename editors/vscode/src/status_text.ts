import type { Report, Status } from './wire';

/** What a status item shows. */
export interface Shown {
  text: string;
  tooltip: string;
  severity: 'none' | 'error';
}

/** Returns how to show a status while a file of `language` is edited. Suggestions may be off for that language. */
export function shown(status: Status, language: { id: string; on: boolean } | undefined): Shown {
  const { state, message } = status;
  if (state === 'error') {
    return {
      text: '$(error) Midspan',
      tooltip: `${message}\n\nClick to install or choose a server, or to show the log.`,
      severity: 'error',
    };
  }
  if (language && !language.on && state !== 'starting') {
    const tooltip = state === 'off' ? message : `Suggestions are off for ${language.id}.`;
    return { text: '$(circle-slash) Midspan', tooltip, severity: 'none' };
  }
  if (state === 'starting') {
    return { text: '$(loading~spin) Midspan', tooltip: message, severity: 'none' };
  }
  if (state === 'off') {
    return { text: '$(circle-slash) Midspan', tooltip: message, severity: 'none' };
  }
  const name = status.model ?? 'Midspan';
  const median = status.medianMs ? ` ${Math.round(status.medianMs)} ms` : '';
  // A ring, not a spinner: a fill is so short that a spinner would only flicker.
  const icon = state === 'busy' ? '$(circle-outline)' : '$(circle-filled)';
  return {
    text: `${icon} ${name}${median}`,
    tooltip: `${message}${median && `\n\nMedian:${median}.`}${status.memory ? `\n\n${status.memory}` : ''}`,
    severity: 'none',
  };
}

/** Returns the counts of this session as one line. */
export function readable(report: Report): string {
  const model = report.engine ? `${report.engine.model.name} on ${report.engine.model.device}` : report.model;
  const counts = `${report.asked} asked, ${report.reused} typed along, ${report.shown} shown, ${report.accepted} accepted, ${report.dismissed} dismissed`;
  const median = report.medianMs ? `; median ${Math.round(report.medianMs)} ms` : '';
  const memory = report.memory ? `; ${report.memory}` : '';
  return `${model}, ${report.state}: ${counts}${median}${memory}.`;
}
