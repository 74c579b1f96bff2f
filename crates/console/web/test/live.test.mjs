// The live view: taken up where it was left, closed while its tab is hidden, asked anew after a long absence.
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { load } from "./sources.mjs";

const sources = [];
globalThis.EventSource = class extends EventTarget {
  constructor(url) {
    super();
    Object.assign(this, { url, isClosed: false });
    sources.push(this);
  }
  close() { this.isClosed = true; }
  tell(name, data) { this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) })); }
};
let now = 0;
mock.method(performance, "now", () => now);
globalThis.document = Object.assign(new EventTarget(), { visibilityState: "visible" });
globalThis.fetch = async () => { throw new TypeError("nobody answers"); };
const { Live } = await load("live.ts");

/** Lets what waits for promises go on. */
const settle = async () => { for (let turn = 0; turn < 8; turn += 1) await Promise.resolve(); };
const see = async (state) => {
  document.visibilityState = state;
  document.dispatchEvent(new Event("visibilitychange"));
  await settle();
};
const pass = async (ms) => {
  now += ms;
  mock.timers.tick(ms);
  await settle();
};
const open = () => sources.filter((of) => !of.isClosed);

let told;
let live;
beforeEach(async () => {
  sources.length = 0;
  mock.timers.enable({ apis: ["setTimeout"] });
  told = { ticks: [], connections: [], resets: 0, ended: false };
  live = new Live("w 7", 5, {
    onRun: () => undefined, onLog: () => undefined, onTick: (tick) => told.ticks.push(tick.seq), onEnd: () => { told.ended = true; },
    onReset: async () => { told.resets += 1; return 100; }, onConnection: (retryMs) => told.connections.push(retryMs),
  });
  await settle();
});
afterEach(() => {
  live.close();
  document.visibilityState = "visible";
  mock.timers.reset();
});

test("it begins behind what is known and goes on where it broke off", async () => {
  assert.equal(open()[0].url, "/api/v1/runs/w%207/events?after=5");
  open()[0].dispatchEvent(new Event("open"));
  open()[0].tell("tick", { seq: 6 });
  open()[0].dispatchEvent(new Event("error"));
  assert.deepEqual(told.connections, [null, 1000]);
  assert.equal(open().length, 0);
  await pass(1000);
  assert.equal(open()[0].url, "/api/v1/runs/w%207/events?after=6");
  assert.deepEqual(told.ticks, [6]);
});

test("it waits longer each time nobody answers, and never for ever", async () => {
  for (const wait of [1000, 2000, 4000, 8000, 15_000, 15_000]) {
    open()[0].dispatchEvent(new Event("error"));
    assert.equal(told.connections.at(-1), wait);
    await pass(wait);
    assert.equal(open().length, 1, `a new try after ${wait} ms`);
  }
  open()[0].dispatchEvent(new Event("open"));
  open()[0].dispatchEvent(new Event("error"));
  assert.equal(told.connections.at(-1), 1000);
});

test("a hidden tab holds no connection", async () => {
  await see("hidden");
  assert.equal(open().length, 0);
  await pass(5000);
  await see("visible");
  assert.equal(open().length, 1);
  assert.equal(told.resets, 0);
});

test("after a long absence all is asked for anew, once", async () => {
  await see("hidden");
  await pass(300_000);
  await see("visible");
  assert.equal(told.resets, 1);
  assert.equal(open()[0].url, "/api/v1/runs/w%207/events?after=100");
});

test("a stream that says nothing is quietly taken anew", async () => {
  open()[0].dispatchEvent(new Event("open"));
  await pass(30_000);
  assert.equal(open().length, 1);
  assert.equal(sources.length, 2);
  assert.deepEqual(told.connections, [null], "nobody is told of a loss");
});

test("what the server keeps no more is asked for anew", async () => {
  open()[0].tell("reset", {});
  await settle();
  assert.equal(told.resets, 1);
  assert.equal(live.seq, 100);
});

test("the end closes it for good", async () => {
  open()[0].tell("end", { state: "finished" });
  assert.equal(told.ended, true);
  await see("hidden");
  await see("visible");
  await pass(60_000);
  assert.equal(open().length, 0);
});

test("what is no JSON is passed over", () => {
  open()[0].dispatchEvent(new MessageEvent("tick", { data: "{" }));
  open()[0].tell("tick", { seq: 7 });
  assert.deepEqual(told.ticks, [7]);
});
