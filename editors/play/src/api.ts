// What the page asks of `midspan play`, by fetch and nothing else.

export type Rule = 'verify' | 'left-to-right' | 'threshold';

export interface Cell {
  at: number;
  state: 'written' | 'verified' | 'refused' | 'draft' | 'mask';
  text: string;
  probability: number | null;
  shares: number[];
}

export interface Pass {
  step: number;
  ms: number;
  cells: Cell[];
}

export interface Origin {
  start: number;
  text: string;
  path: string;
  line: number;
  count: number;
  total: number;
  alone: number;
}

export interface Verdict {
  written: string;
  shaped: string;
  shown: string;
  is_start: boolean;
  confidence: number;
  needed: number;
  worth: number;
}

export interface Trace {
  text: string;
  tokens: string[];
  steps: number;
  rule: string;
  model: string;
  finish: string;
  context_tokens: number;
  cached_tokens: number;
  ms: { queue: number; encode: number; denoise: number; total: number };
  origins: Origin[];
  passes: Pass[];
  verdict: Verdict;
  hole: { read: [number, number]; hidden: [number, number]; extent: 'line' | 'lines'; context: string };
}

export interface HeatToken {
  text: string;
  probability: number;
  likeliest: { text: string; probability: number }[];
}

export interface Solved {
  text: string;
  right: boolean;
  passes: Pass[];
  ms: number;
}

export interface EngineStatus {
  state: 'idle' | 'starting' | 'ready' | 'busy' | 'off' | 'error';
  message: string;
  memory: string | null;
  workspaces: { name: string; memory: string }[];
  engine: {
    model: { name: string; parameters: number; device: string; dtype: string; server: string; licence: string };
    active: number;
    waiting: number;
    fills: number;
    cancelled: number;
    passes: number;
    median_ms: number;
    cache_hit_rate: number;
    cache_bytes: number;
    threads: number;
    pid: number;
    uptime_s: number;
    clients: number;
  } | null;
}

export interface Place {
  page: string;
  path: string;
  text: string;
  at: number;
  edit: number;
}

/** One line for the page. `lost` says that nothing works until the user does something. */
export class Problem extends Error {
  constructor(
    message: string,
    readonly lost = false,
  ) {
    super(message);
  }
}

const KEPT = 'midspan-play-token';

/** Take the token out of the address: a bookmark or a picture of the window shall not have it. A reload still has it. */
function takeToken(): string {
  const given = location.hash.slice(1);
  if (given) {
    sessionStorage.setItem(KEPT, given);
    history.replaceState(null, '', location.pathname + location.search);
  }
  return given || sessionStorage.getItem(KEPT) || '';
}

const token = takeToken();

export async function ask<T>(name: string, fields: object = {}, keepalive = false): Promise<T> {
  const request: RequestInit = {
    method: 'POST',
    keepalive,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(fields),
  };
  let response: Response;
  try {
    response = await fetch(`/play/api/${name}`, request);
  } catch {
    throw new Problem('midspan play has ended. Start it again and open its new address; your text is still here.', true);
  }
  if (response.status === 403 && response.headers.get('content-type') === null) {
    throw new Problem('This address has no valid token. Open the one that midspan play printed last.', true);
  }
  const value = await response.json();
  if (!response.ok) throw new Problem(value.problem);
  return value as T;
}
