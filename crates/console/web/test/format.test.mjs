// Figures must read as in the report; the cases are those of crates/report/src/format.rs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./sources.mjs";

const format = await load("format.ts");

function check(of, cases) {
  for (const [value, text] of cases) assert.equal(of(value), text, String(value));
}

test("counts have thousands separators", () => check(format.count, [[0, "0"], [999, "999"], [1000, "1,000"], [123456, "123,456"], [1234567890, "1,234,567,890"], [null, "–"]]));

test("numbers have three digits also where they round up", () =>
  check(format.number, [[0, "0"], [0.001234, "0.00123"], [0.5874, "0.587"], [0.9996, "1.00"], [9.994, "9.99"], [9.996, "10.0"], [99.94, "99.9"], [99.96, "100"], [1665.2, "1,665"], [-6.2, "−6.20"]]));

test("times take the unit that fits", () =>
  check(format.duration, [[0, "0 s"], [999, "999 ns"], [1000, "1.00 µs"], [999_499, "999 µs"], [999_500, "1.00 ms"], [33_040_000, "33.0 ms"], [999_500_000, "1.00 s"], [59e9, "59.0 s"], [999e9, "999 s"], [1.25e12, "20.8 min"], [9e13, "25.0 h"], [null, "–"]]));

test("sizes are binary and rates say so", () => {
  check(format.bytes, [[0, "0 B"], [999, "999 B"], [1000, "0.977 KiB"], [2 ** 20, "1.00 MiB"], [10 * 2 ** 20, "10.0 MiB"], [1023 * 2 ** 20, "0.999 GiB"], [2 ** 64, "16.0 EiB"]]);
  check(format.byteRate, [[27262976, "26.0 MiB/s"], [null, "–"]]);
  check(format.opRate, [[58.66, "58.7 ops/s"]]);
  check(format.percent, [[0.0005, "0.0500 %"], [1, "100 %"]]);
});

test("stretches of time read as on a clock", () => check(format.elapsed, [[0, "0 s"], [-5, "0 s"], [65, "65.0 ms"], [1500, "1.50 s"], [12_400, "12 s"], [245_000, "4 min 05 s"], [7_380_000, "2 h 03 min"], [null, "–"]]));

test("offsets have a sign", () => check(format.offset, [[-0.21, "−210 µs"], [71.4, "+71.4 ms"], [0, "0 s"]]));

test("no two ticks of a time axis have one label", () => {
  const day = 86_400;
  for (const step of format.clockAxis.incrs.filter((step) => step < day)) {
    const [first, second] = format.clockAxis.values(null, [1.7e9, 1.7e9 + step]);
    assert.notEqual(first, second, `${step} s`);
  }
  assert.ok(format.clockAxis.incrs.every((step) => step % 1 === 0 && step > 0));
});
