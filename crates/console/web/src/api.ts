// The API as TypeScript sees it, and the one way to ask it. Units stand in the fields' names.

export interface Session {
  user: string | null; sign_in: "form" | "none"; csrf_token: string | null; expires_at_ms: number | null;
  version: string | null; name: string | null; url: string | null; time_ms: number;
  concurrency: number | null; upload_bytes_max: number; features: { fleet: boolean; triggers: boolean };
}
export type RunState = "queued" | "running" | "finished" | "failed" | "terminated" | "cancelled";
export interface Run {
  id: string; name: string; kind: string; state: RunState; user: string | null;
  submitted_at_ms: number; began_at_ms: number | null; ended_at_ms: number | null; order: number | null;
  stages_count: number; stage: { number: number; name: string; state: string } | null; progress: number | null;
  ops: string[]; ops_count: number | null; ops_failed_count: number | null; bytes_count: number | null;
  has_record: boolean; error: string | null; archive_error?: string | null;
}
export interface Agent {
  name: string; address: string | null; state: "ready" | "busy" | "away"; clock_offset_ms: number | null;
  cpu_percent: number | null; cores_count: number | null; version: string | null; seen_at_ms: number | null; run: string | null;
}
export interface StateAt { state: string; at_ms: number }
export interface Job {
  number: number; name: string; state: string; workers_count: number; agents: string[]; work: string;
  began_at_ms: number | null; ended_at_ms: number | null;
  ops_count: number | null; ops_failed_count: number | null; bytes_count: number | null; error: string | null;
}
export interface Stage {
  number: number; id: string; name: string; state: string; prepares: boolean; delay_ns: number | null;
  began_at_ms: number | null; ended_at_ms: number | null; planned_ns: number | null; states: StateAt[];
  error: string | null; jobs: Job[];
}
export interface Correction { what: string; theirs: string; ours: string }
export interface RunDetail extends Run {
  description: string | null; states: StateAt[]; stages: Stage[]; notes: string[]; warnings: string[];
  corrections?: Correction[]; touches: string[]; targets: string[];
  files?: { name: string; size_bytes: number; about: string | null }[]; has_workload: boolean; agents: string[];
  resubmitted_from?: string | null;
}
export interface Problem { severity: "error" | "warning" | "note"; message: string; line: number | null; column: number | null }
export interface Overview { time_ms: number; agents: Agent[]; active: Run[]; recent: Run[]; counts: Record<string, number> }
export interface LogLine { seq: number; at_ms: number; level: "info" | "warning" | "error"; agent: string | null; text: string }

export const PERCENTILES = ["p50", "p90", "p99", "p99_9", "max"] as const;
export type Percentile = (typeof PERCENTILES)[number];
export type Bins = [bin: number, count: number][];
export interface RowKey { stage: number; stage_name: string; job: number | null; job_name: string | null; kind: string | null }
export interface SeriesRow extends RowKey {
  at_ms: number[]; ops_per_sec: (number | null)[]; bytes_per_sec: (number | null)[]; in_flight: (number | null)[];
  latency_ns: Record<Percentile, (number | null)[]>; errors: Record<string, number[]>; bins: Bins[];
}
export interface TickRow extends RowKey {
  ops_per_sec: number | null; bytes_per_sec: number | null; in_flight: number | null;
  latency_ns: Record<Percentile, number | null>; errors: Record<string, number>; bins: Bins;
  ops_count: number; ops_failed_count: number; bytes_count: number;
}
export interface HostFigures {
  stage: number; host: string; ops_count: number; ops_failed_count: number; ops_per_sec: number | null; bytes_per_sec: number | null;
  latency_ns: { p50: number | null; p99: number | null; max: number | null };
}
export interface AgentFigures {
  stage: number; agent: string; ops_count: number; ops_failed_count: number; ops_per_sec: number | null; bytes_per_sec: number | null;
  state?: string; workers_count?: number; latency_ns?: { p50: number | null; p99: number | null; max: number | null };
  in_flight?: number | null; clock_offset_ms?: number | null; cpu_percent?: number | null;
}
export interface Series {
  seq: number; interval_ms: number; began_at_ms: number | null; rows: SeriesRow[]; hosts: HostFigures[]; agents: AgentFigures[];
}
export interface Tick { seq: number; at_ms: number; progress: number | null; rows: TickRow[]; hosts: HostFigures[]; agents: AgentFigures[] }
export interface TimelineRow {
  at_ms: number; stage: number; stage_id: string; job_name: string; kind: string; ops_count: number; bytes_count: number;
  res_ns_mean: number | null; proc_ns_mean: number | null; ops_per_sec: number | null; bytes_per_sec: number | null; success_ratio: number | null;
}
export interface MatrixRow {
  run: string; run_name: string; run_state: string; stage: number; stage_id: string; job: number; job_name: string; kind: string; op_name: string;
  workers_count: number | null; ops_count: number; ops_failed_count: number; bytes_count: number; res_ns_mean: number | null; proc_ns_mean: number | null;
  latency_ns: Record<string, number | null>; ops_per_sec: number | null; bytes_per_sec: number | null; success_ratio: number | null; config: string | null;
}
export interface Matrix { rows: MatrixRow[]; kinds: string[]; missing: { run: string; why: string }[] }
export interface Side { values: number[]; mean: number | null; std_dev: number | null }
export interface CompareMetric {
  metric: string; unit: string; better: "higher" | "lower"; before: Side; after: Side; change: number | null; change_percent: number | null;
  verdict: string; change_percent_interval: unknown; detectable_percent: number | null;
}
export interface Compare {
  before: string[]; after: string[]; margin_percent: number; parameters: { name: string; before: string[]; after: string[] }[];
  kinds: { of: string | null; kind: string; occurred: string; ops_count_before: number | null; ops_count_after: number | null; metrics: CompareMetric[] }[];
}
export interface Checked {
  ok: boolean; kind: string; name: string | null; problems: Problem[]; lowered: string | null; touches: string[]; needs_leave: string[];
  corrections?: Correction[];
  stages: { number: number; name: string; planned_ns: number | null; delay_ns: number | null; jobs: { name: string; workers_count: number; work: string }[] }[];
}

/** What went wrong with a question: the server's words, or why it could not be asked. */
export class ApiError extends Error {
  constructor(readonly status: number, readonly code: string, message: string, readonly problems: Problem[] = []) {
    super(message);
  }
  /** Nobody answered. */
  get isLost(): boolean { return this.status === 0; }
}

/** A value that pages look at and are told of. */
export class Store<T> {
  private listeners = new Set<() => void>();
  constructor(private current: T) {}
  get value(): T { return this.current; }
  set(value: T): void {
    if (Object.is(value, this.current)) return;
    this.current = value;
    for (const listener of [...this.listeners]) listener();
  }
  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** Who is signed in; null before the first answer. */
export const session = new Store<Session | null>(null);
/** Whether a session that was there has ended: the page stays, sign-in is laid over it. */
export const expired = new Store(false);
/** Since when nobody answers, in ms of this clock; null while all is well. */
export const lostSince = new Store<number | null>(null);
/** The controller's clock less ours, in ms. */
export let clockSkewMs = 0;

/** The controller's time by its own clock, which the instants of runs are by. */
export function now(): number {
  return Date.now() + clockSkewMs;
}

const TIMEOUT_MS = 30_000;

interface Asked { method?: string; body?: unknown; signal?: AbortSignal }

/** What is kept to the letter: texts to be edited, and names that are asked for again. */
const VERBATIM = new Set(["text", "lowered", "file_name", "csrf_token", "next", "id"]);

/** Takes what would hide or turn around other text out of names and messages. */
export function harmless(this: unknown, key: string, value: unknown): unknown {
  if (typeof value !== "string" || VERBATIM.has(key)) return value;
  if (key === "name" && typeof this === "object" && this !== null && "size_bytes" in this) return value;
  return value.replace(/[\u0000-\u001f\u007f-\u009f]/g, " ").replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

/** Asks the API; fails with an `ApiError` only. */
export async function api<T>(path: string, asked: Asked = {}): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  const method = asked.method ?? "GET";
  if (method !== "GET") {
    headers["Content-Type"] = "application/json";
    if (session.value?.csrf_token) headers["X-Plimsoll-CSRF"] = session.value.csrf_token;
  }
  const stop = new AbortController();
  const late = setTimeout(() => stop.abort("late"), TIMEOUT_MS);
  const leave = () => stop.abort("left");
  asked.signal?.addEventListener("abort", leave);
  if (asked.signal?.aborted) leave();
  let response: Response;
  let text: string;
  try {
    const body = asked.body === undefined ? undefined : JSON.stringify(asked.body);
    response = await fetch(`/api/v1${path}`, { method, headers, body: body ?? null, signal: stop.signal, credentials: "same-origin" });
    text = await response.text();
  } catch (error) {
    if (stop.signal.reason === "left") throw new ApiError(0, "left", "not asked any more");
    if (lostSince.value === null) lostSince.set(Date.now());
    if (stop.signal.reason === "late") throw new ApiError(0, "late", `no answer from the controller within ${TIMEOUT_MS / 1000} s`);
    throw new ApiError(0, "lost", `no connection to the controller (${error instanceof Error ? error.message : "unknown"})`);
  } finally {
    clearTimeout(late);
    asked.signal?.removeEventListener("abort", leave);
  }
  lostSince.set(null);
  let answer: unknown = null;
  try {
    answer = text === "" ? null : JSON.parse(text, harmless);
  } catch {
    throw new ApiError(response.status || 502, "protocol", `the controller's answer is not JSON (status ${response.status})`);
  }
  if (response.ok) return answer as T;
  const error = (answer as { error?: { code?: string; message?: string; problems?: Problem[] } } | null)?.error;
  if (response.status === 401 && path !== "/session" && session.value?.user) expired.set(true);
  throw new ApiError(response.status, error?.code ?? "internal", error?.message ?? `the controller answered with status ${response.status}`, error?.problems ?? []);
}

export function post<T>(path: string, body: unknown = {}): Promise<T> {
  return api<T>(path, { method: "POST", body });
}

/** Asks who is signed in. */
export async function askSession(): Promise<Session> {
  return keep(await api<Session>("/session"));
}

export async function signIn(user: string, password: string): Promise<Session> {
  return keep(await post<Session>("/session", { user, password }));
}

let isLeaving = false;

export async function signOut(): Promise<void> {
  await api("/session", { method: "DELETE" });
  isLeaving = true;
  try {
    await askSession();
  } finally {
    isLeaving = false;
  }
}

function keep(value: Session): Session {
  clockSkewMs = value.time_ms - Date.now();
  // A session that ended while its page is open: the page stays, under the sign-in.
  if (!value.user && session.value?.user && !isLeaving) {
    expired.set(true);
    return value;
  }
  if (value.user) expired.set(false);
  session.set(value);
  return value;
}

export const runPath = (id: string): string => `/runs/${encodeURIComponent(id)}`;
export const fileUrl = (path: string): string => `/api/v1${path}`;
