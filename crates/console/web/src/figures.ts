// The figures of a run over time, as they came with `series` and go on with each tick.
import { AgentFigures, HostFigures, PERCENTILES, RowKey, Series, SeriesRow, Tick } from "./api";

/** A line of a chart. */
export interface Line { name: string; color: string; values: (number | null)[]; dash?: boolean }
/** Lines on one time axis, in seconds of Unix time as uPlot takes them. */
export interface Lines { atSec: number[]; lines: Line[] }

const keyOf = (row: RowKey): string => `${row.stage}/${row.job ?? ""}/${row.kind ?? ""}`;

/** More cells than this are asked for again in longer ones. */
const CELLS_MAX = 1800;

export class Figures {
  seq = 0;
  intervalMs = 1000;
  rows: SeriesRow[] = [];
  hosts: HostFigures[] = [];
  agents: AgentFigures[] = [];
  private byKey = new Map<string, SeriesRow>();

  constructor(series: Series) {
    this.seq = series.seq;
    this.intervalMs = series.interval_ms;
    this.rows = series.rows.map((row) => withoutStub(row, series.interval_ms));
    this.hosts = series.hosts;
    this.agents = series.agents;
    for (const row of this.rows) this.byKey.set(keyOf(row), row);
  }

  /** Takes in a tick; false where it is known already. */
  add(tick: Tick): boolean {
    if (tick.seq <= this.seq) return false;
    this.seq = tick.seq;
    for (const of of tick.rows) {
      let row = this.byKey.get(keyOf(of));
      if (!row) {
        row = {
          stage: of.stage, stage_name: of.stage_name, job: of.job, job_name: of.job_name, kind: of.kind, at_ms: [], ops_per_sec: [], bytes_per_sec: [],
          in_flight: [], latency_ns: { p50: [], p90: [], p99: [], p99_9: [], max: [] }, errors: {}, bins: [],
        };
        this.byKey.set(keyOf(of), row);
        this.rows.push(row);
      }
      const cells = row.at_ms.length;
      row.at_ms.push(tick.at_ms);
      row.ops_per_sec.push(of.ops_per_sec);
      row.bytes_per_sec.push(of.bytes_per_sec);
      row.in_flight.push(of.in_flight);
      for (const name of PERCENTILES) row.latency_ns[name].push(of.latency_ns[name]);
      for (const name of new Set([...Object.keys(row.errors), ...Object.keys(of.errors)])) {
        const counts = (row.errors[name] ??= new Array<number>(cells).fill(0));
        counts.push(of.errors[name] ?? 0);
      }
      if (of.kind === null && of.job === null) row.bins.push(of.bins);
    }
    const stages = new Set(tick.rows.map((row) => row.stage));
    this.hosts = [...this.hosts.filter((of) => !stages.has(of.stage)), ...tick.hosts];
    this.agents = [...this.agents.filter((of) => !stages.has(of.stage)), ...tick.agents];
    return true;
  }

  /** Whether the cells should be asked for again, in longer ones. */
  get isLong(): boolean {
    return this.rows.some((row) => row.at_ms.length > CELLS_MAX);
  }

  /** Rows of a stage, or the whole of each stage where none is named. */
  shown(stage: number | null): SeriesRow[] {
    if (stage === null) return this.rows.filter((row) => row.kind === null && row.job === null);
    return this.rows.filter((row) => row.stage === stage && row.kind !== null);
  }

  total(stage: number): SeriesRow | null {
    return this.byKey.get(`${stage}//`) ?? null;
  }
}

/** The colour of a kind, as in the report; of something else by its place. */
const KINDS = ["PUT", "GET", "DELETE", "LIST", "STAT", "APPEND", "POST", "PUTPART", "RETENTION"];
export function colorOfKind(kind: string): string {
  const index = KINDS.indexOf(kind);
  return index < 0 ? colorOfOther(kind.length) : `--s${index}`;
}
export function colorOfOther(index: number): string {
  return `--s${21 + (index % 8)}`;
}

/** Puts values on one axis; a time at which a line has none is a gap. */
export function align(of: { atMs: number[]; line: Line }[], intervalMs: number): Lines {
  const every = new Set<number>();
  for (const { atMs } of of) for (const at of atMs) every.add(at);
  const at = [...every].sort((a, b) => a - b);
  // A pause is drawn as one: a point without values behind the last before it.
  const withGaps: number[] = [];
  for (const [index, ms] of at.entries()) {
    const before = at[index - 1];
    if (before !== undefined && ms - before > 3.5 * intervalMs) withGaps.push(before + intervalMs);
    withGaps.push(ms);
  }
  const place = new Map(withGaps.map((ms, index) => [ms, index]));
  const lines = of.map(({ atMs, line }) => {
    const values = new Array<number | null>(withGaps.length).fill(null);
    for (const [index, ms] of atMs.entries()) values[place.get(ms) ?? 0] = line.values[index] ?? null;
    return { ...line, values };
  });
  return { atSec: withGaps.map((ms) => ms / 1000), lines };
}

/** How long a cell is: up to `intervalMs`, and less where ticks have come since, or at a stage's end. */
export function cellMs(atMs: number[], cell: number, intervalMs: number): number {
  const at = atMs[cell] ?? 0;
  const before = atMs[cell - 1];
  const after = atMs[cell + 1];
  const length = before !== undefined ? at - before : after !== undefined ? after - at : intervalMs;
  return Math.max(1, Math.min(intervalMs, length));
}

/** A row without the rest of a stage's time that filled no cell: what it did per second says nothing. */
function withoutStub(row: SeriesRow, intervalMs: number): SeriesRow {
  const last = row.at_ms.length - 1;
  if (last < 1 || cellMs(row.at_ms, last, intervalMs) * 5 >= intervalMs) return row;
  const cut = <T,>(values: T[]): T[] => values.slice(0, last);
  const latency = Object.fromEntries(PERCENTILES.map((name) => [name, cut(row.latency_ns[name])])) as SeriesRow["latency_ns"];
  const errors = Object.fromEntries(Object.entries(row.errors).map(([name, counts]) => [name, cut(counts)]));
  return {
    ...row, at_ms: cut(row.at_ms), ops_per_sec: cut(row.ops_per_sec), bytes_per_sec: cut(row.bytes_per_sec), in_flight: cut(row.in_flight), latency_ns: latency, errors, bins: cut(row.bins),
  };
}

/** The sum of each class of errors over rows. */
export function errorsOf(rows: SeriesRow[], intervalMs: number): Lines {
  const classes = [...new Set(rows.flatMap((row) => Object.keys(row.errors)))].sort();
  return align(classes.map((name, index) => {
    const sums = new Map<number, number>();
    for (const row of rows) {
      for (const [cell, at] of row.at_ms.entries()) sums.set(at, (sums.get(at) ?? 0) + ((row.errors[name]?.[cell] ?? 0) * 1000) / cellMs(row.at_ms, cell, intervalMs));
    }
    const atMs = [...sums.keys()].sort((a, b) => a - b);
    return { atMs, line: { name, color: name === "corrupt" ? "--bad" : colorOfOther(index), values: atMs.map((at) => sums.get(at) ?? 0) } };
  }), intervalMs);
}

/** Where a bin of the latency scale begins, in ns: bin 0 below 1 µs, then eight to a factor of ten. */
export function binFromNs(bin: number): number {
  return bin <= 0 ? 0 : 1000 * 10 ** ((bin - 1) / 8);
}
export const BIN_LAST = 63;
