// Figures as text, each with its unit, as the report of the command line writes them.

export const UNKNOWN = "–";

/** `1,234,567` */
export function count(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return UNKNOWN;
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

/** `1 worker`, `1,200 workers` */
export function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** Three significant digits, whole from 100 on: `0.0123`, `45.6`, `12,345`. */
export function number(value: number): string {
  if (value < 0) return `−${number(-value)}`;
  if (value >= 99.95) return count(value);
  if (value < 1e-6) return "0";
  const exponent = Number(value.toExponential(2).split("e")[1]);
  return value.toFixed(Math.max(0, 2 - exponent));
}

export function opRate(perSec: number | null | undefined): string {
  return perSec == null ? UNKNOWN : `${number(perSec)} ops/s`;
}

export function byteRate(perSec: number | null | undefined): string {
  return perSec == null ? UNKNOWN : `${number(perSec / 1048576)} MiB/s`;
}

/** `24.4 GiB`, `512 B` */
export function bytes(value: number | null | undefined): string {
  if (value == null) return UNKNOWN;
  if (value < 1000) return `${Math.round(value)} B`;
  let scaled = value / 1024;
  let unit = "KiB";
  for (const next of ["MiB", "GiB", "TiB", "PiB", "EiB"]) {
    if (scaled < 999.5) break;
    scaled /= 1024;
    unit = next;
  }
  return `${number(scaled)} ${unit}`;
}

/** `850 ns`, `33.0 ms`, `1.25 s`, `20.8 min` */
export function duration(ns: number | null | undefined): string {
  if (ns == null) return UNKNOWN;
  if (ns <= 0) return "0 s";
  if (ns < 1000) return `${Math.round(ns)} ns`;
  const units: [number, string][] = [[1e3, "µs"], [1e6, "ms"], [1e9, "s"], [60e9, "min"]];
  const [size, unit] = units.find(([size]) => ns / size < 999.5) ?? [3600e9, "h"];
  return `${number(ns / size)} ${unit}`;
}

/** How long something took, as a clock would say it: `65.0 ms`, `12 s`, `4 min 05 s`, `2 h 03 min`. */
export function elapsed(ms: number | null | undefined): string {
  if (ms == null) return UNKNOWN;
  const seconds = Math.max(0, Math.round(ms / 1000));
  const two = (value: number) => value.toString().padStart(2, "0");
  if (seconds < 60) return ms < 9950 ? duration(ms * 1e6) : `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  return `${count(Math.floor(seconds / 3600))} h ${two(Math.floor((seconds % 3600) / 60))} min`;
}

export function percent(ratio: number | null | undefined): string {
  return ratio == null ? UNKNOWN : `${number(ratio * 100)} %`;
}

/** `2026-11-24 11:46:07` in the reader's time zone */
export function instant(ms: number | null | undefined): string {
  return ms == null ? UNKNOWN : `${date(ms)} ${clock(ms)}`;
}

export function date(ms: number): string {
  const at = new Date(ms);
  const two = (value: number) => value.toString().padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

export function clock(ms: number): string {
  const at = new Date(ms);
  const two = (value: number) => value.toString().padStart(2, "0");
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** An axis of instants in seconds: ticks closer together than labels tell would repeat them. */
export const clockAxis = {
  incrs: [1, 2, 5, 10, 15, 30, ...[1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 1440, 10080].map((minutes) => minutes * 60)],
  values: (_: unknown, at: number[]) => at.map((of) => clock(of * 1000)),
};

/** A clock's offset: `+0.21 ms`. */
export function offset(ms: number | null | undefined): string {
  if (ms == null) return UNKNOWN;
  const text = duration(Math.abs(ms) * 1e6);
  return ms < 0 ? `−${text}` : ms > 0 ? `+${text}` : text;
}

/** The unit that fits the largest of some times, for an axis. */
export function timeUnit(nsMax: number): [number, string] {
  const units: [number, string][] = [[1e3, "µs"], [1e6, "ms"], [1e9, "s"], [60e9, "min"]];
  return units.find(([size]) => nsMax / size < 999.5) ?? [3600e9, "h"];
}

/** `name (stage 3)`: what a row of figures is about, in few words. */
export function rowName(row: { job: number | null; job_name: string | null; kind: string | null }, jobsCount = 2): string {
  if (row.kind === null) return row.job === null ? "all" : row.job_name ?? `job ${row.job}`;
  if (row.job === null) return row.kind;
  return jobsCount > 1 ? `${row.job_name ?? `job ${row.job}`} · ${row.kind}` : row.kind;
}
