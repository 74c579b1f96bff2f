// How ticks are added to what was asked, and how rows are put on one axis.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./sources.mjs";

const { Figures, align, cellMs, errorsOf, binFromNs } = await load("figures.ts");

const tickRow = (more) => ({
  stage: 1, stage_name: "main", job: 1, job_name: "main", kind: "GET", ops_per_sec: 10, bytes_per_sec: 100, in_flight: 4, latency_ns: { p50: 1, p90: 2, p99: 3, p99_9: 4, max: 5 }, errors: {}, bins: [],
  ops_count: 10, ops_failed_count: 0, bytes_count: 100, ...more,
});
const tick = (seq, rows) => ({ seq, at_ms: seq * 1000, progress: null, rows, hosts: [], agents: [] });
const empty = () => new Figures({ seq: 0, interval_ms: 1000, began_at_ms: 0, rows: [], hosts: [], agents: [] });

test("ticks are taken in once, whatever is sent again", () => {
  const figures = empty();
  assert.equal(figures.add(tick(1, [tickRow({})])), true);
  assert.equal(figures.add(tick(2, [tickRow({ ops_per_sec: 20, errors: { timeout: 3 } })])), true);
  assert.equal(figures.add(tick(2, [tickRow({})])), false);
  assert.equal(figures.add(tick(3, [tickRow({})])), true);
  const [row] = figures.shown(1);
  assert.deepEqual(row.at_ms, [1000, 2000, 3000]);
  assert.deepEqual(row.ops_per_sec, [10, 20, 10]);
  // A class that comes later has zeros before and after.
  assert.deepEqual(row.errors, { timeout: [0, 3, 0] });
});

test("the whole of a stage is apart from its kinds", () => {
  const figures = empty();
  figures.add(tick(1, [tickRow({ job: null, kind: null, bins: [[3, 7]] }), tickRow({}), tickRow({ kind: "PUT" })]));
  assert.deepEqual(figures.shown(1).map((row) => row.kind), ["GET", "PUT"]);
  assert.deepEqual(figures.shown(null).map((row) => row.kind), [null]);
  assert.deepEqual(figures.total(1).bins, [[[3, 7]]]);
});

test("a pause is a gap in the line", () => {
  const lines = align([{ atMs: [1000, 2000, 9000], line: { name: "a", color: "", values: [1, 2, 3] } }, { atMs: [2000], line: { name: "b", color: "", values: [5] } }], 1000);
  assert.deepEqual(lines.atSec, [1, 2, 3, 9]);
  assert.deepEqual(lines.lines.map((line) => line.values), [[1, 2, null, 3], [null, 5, null, null]]);
});

test("errors are per second, whatever the length of a cell", () => {
  const row = (errors) => ({ at_ms: [10_000, 20_000], errors });
  const lines = errorsOf([row({ timeout: [20, 0] }), row({ timeout: [10, 0], corrupt: [0, 1] })], 10_000);
  assert.deepEqual(lines.lines.map((line) => [line.name, line.values]), [["corrupt", [0, 0.1]], ["timeout", [3, 0]]]);
});

test("cells that ticks have added are shorter than those that were merged", () => {
  const atMs = [36_000, 72_000, 73_000, 74_000, 200_000];
  assert.deepEqual(atMs.map((_, cell) => cellMs(atMs, cell, 36_000)), [36_000, 36_000, 1000, 1000, 36_000]);
  assert.equal(cellMs([5000], 0, 1000), 1000);
  const lines = errorsOf([{ at_ms: atMs.slice(0, 3), errors: { timeout: [36, 72, 5] } }], 36_000);
  assert.deepEqual(lines.lines[0].values, [1, 2, 5]);
});

test("a rest of time at the end of a stage is left out", () => {
  const row = (at_ms) => ({ ...tickRow({}), at_ms, ops_per_sec: [1, 2, 0], bytes_per_sec: [1, 2, 0], in_flight: [1, 1, 0], latency_ns: { p50: [1, 2, null], p90: [1, 2, null], p99: [1, 2, null], p99_9: [1, 2, null], max: [1, 2, null] }, errors: { timeout: [1, 2, 0] }, bins: [] });
  const shown = (at_ms) => new Figures({ seq: 3, interval_ms: 1000, began_at_ms: 0, rows: [row(at_ms)], hosts: [], agents: [] }).shown(1)[0];
  assert.deepEqual(shown([1000, 2000, 2030]).ops_per_sec, [1, 2]);
  assert.deepEqual(shown([1000, 2000, 2030]).errors, { timeout: [1, 2] });
  assert.deepEqual(shown([1000, 2000, 2800]).ops_per_sec, [1, 2, 0]);
});

test("the latency scale has eight bins to a factor of ten", () => {
  assert.equal(binFromNs(0), 0);
  assert.equal(binFromNs(1), 1000);
  assert.equal(Math.round(binFromNs(9)), 10_000);
  assert.equal(Math.round(binFromNs(41)), 100_000_000);
});
