// Made-up runs for the mock server: the same each time, with names that would do harm as markup.

/** A stream of numbers from 0 to 1 that depends on its seed alone. */
export function random(seed) {
  let state = (seed * 2654435761 + 12345) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export const PAST = 10_000;
export const HOSTILE = [
  `<script>alert("run")</script>`, `"><img src=x onerror=alert(1)>`, `=HYPERLINK("http://evil")`, `a-name-that-has-no-place-to-break-${"x".repeat(90)}`, `\u202Eright to left & <b>bold</b>`,
];
const NAMES = ["s3-sample", "nightly-read", "mixed-80-20", "ufs-read", "archive", "small-objects", "load-serve-delete", "swift-large", "fio-randread", "ci-smoke"];
const KINDS = ["cosbench", "plimsoll", "fio", "cosbench", "cosbench"];
const MIN = 60_000;

export const COORDINATES = { latencyNs: { GET: 2.1e6, PUT: 5.4e6, DELETE: 1.6e6, LIST: 9e6 }, bytes: { GET: 65536, PUT: 65536, DELETE: 0, LIST: 0 }, rate: { GET: 9200, PUT: 2300, DELETE: 700, LIST: 60 } };

export function pastRun(number, nowMs) {
  const next = random(number);
  const draw = next();
  const state = number === PAST ? "finished" : draw < 0.94 ? "finished" : draw < 0.965 ? "failed" : draw < 0.98 ? "terminated" : "cancelled";
  const began = nowMs - (PAST - number + 1) * 37 * MIN;
  const took = Math.round((2 + 20 * next()) * MIN);
  const ops = Math.round(1e5 + 5e6 * next());
  const hostile = number % 97 === 0 || PAST - number < 3 ? HOSTILE[number % HOSTILE.length] : null;
  const name = PAST - number === 3 ? "s3-sample" : hostile ?? `${NAMES[number % NAMES.length]}${next() < 0.3 ? `-${number % 9}` : ""}`;
  return {
    id: `w${number}`, name, kind: PAST - number === 3 ? "cosbench" : KINDS[number % KINDS.length], state, user: ["ann", "bob", "ci"][number % 3],
    submitted_at_ms: began - Math.round(next() * MIN), began_at_ms: began, ended_at_ms: began + took, order: null, stages_count: 5, stage: null, progress: null,
    ops: number % 4 === 0 ? ["GET", "PUT", "DELETE"] : ["GET", "PUT"], ops_count: state === "terminated" ? 0 : ops,
    ops_failed_count: state === "failed" ? Math.round(ops / 4) : number % 11 === 0 ? 3 : 0, bytes_count: state === "terminated" ? 0 : ops * 65536,
    has_record: state !== "terminated", error: state === "terminated" ? "agent driver3 has not answered for 30 s <i>(mock)</i>" : null,
  };
}

export const AGENTS = ["driver1", "driver2", "driver3", "<b>driver4</b>"];

export function agents(nowMs, runId) {
  return AGENTS.map((name, index) => ({
    name, address: `10.0.0.${11 + index}:18088`, state: index === 3 ? "away" : runId ? "busy" : "ready", clock_offset_ms: index === 3 ? 71.4 : [-0.21, 0.043, 1.9][index],
    cpu_percent: index === 3 ? null : runId ? 31 + 9 * index + 4 * Math.sin(nowMs / 4000 + index) : 1.2, cores_count: 32, version: "0.1.0", seen_at_ms: nowMs - (index === 3 ? 95_000 : 600), run: index === 3 ? null : runId,
  }));
}

/** The stages of a run from when it began; `seconds` is the length of its main stage. */
export function stagesOf(run, nowMs, seconds, offsets) {
  const began = run.began_at_ms;
  const isOver = run.ended_at_ms !== null;
  const at = offsets ?? [0, 3, 33, 33 + seconds, 33 + seconds + 20, 33 + seconds + 24];
  const names = ["init", "prepare", "main", "cleanup", "dispose"];
  const hostile = run.name.startsWith("<script>") || run.name.startsWith('"');
  const scale = isOver ? (run.ended_at_ms - began) / 1000 / at[5] : 1;
  const moment = isOver ? run.ended_at_ms : nowMs;
  return names.map((name, index) => {
    const from = began === null ? null : began + at[index] * scale * 1000;
    const to = began === null ? null : began + at[index + 1] * scale * 1000;
    const hasBegun = from !== null && from < moment && run.state !== "queued" && !(run.state === "terminated" && index > 2);
    const hasEnded = hasBegun && (to <= moment || isOver);
    const cut = hasEnded && to > moment;
    const state = !hasBegun ? (isOver ? "aborted" : "waiting") : !hasEnded ? "running" : run.state === "failed" && index === 2 ? "failed" : run.state === "terminated" && index === 2 ? "terminated" : cut ? "cancelled" : "completed";
    const shownName = hostile && index === 2 ? "<img src=x>main" : name;
    const ended = hasEnded ? Math.min(to, moment) : null;
    const job = (number, name, workers, work, share) => ({
      number, name, state, workers_count: workers, agents: index === 2 ? AGENTS.slice(0, 3) : ["driver1"], work, began_at_ms: hasBegun ? from : null, ended_at_ms: ended,
      ops_count: hasBegun ? Math.round((((ended ?? moment) - from) / 1000) * 11500 * share) : null, ops_failed_count: hasBegun ? (state === "failed" ? 41_233 : index === 2 ? 12 : 0) : null,
      bytes_count: hasBegun ? Math.round((((ended ?? moment) - from) / 1000) * 11500 * share * 65536) : null, error: null,
    });
    return {
      number: index + 1, id: `s${index + 1}-${shownName}`, name: shownName, state, prepares: index < 2 || index > 2, delay_ns: index === 1 ? 5e9 : null,
      began_at_ms: hasBegun ? from : null, ended_at_ms: ended, planned_ns: index === 2 ? seconds * 1e9 : null,
      states: hasBegun ? [{ state: "waiting", at_ms: run.submitted_at_ms }, { state: "running", at_ms: from }, ...(hasEnded ? [{ state, at_ms: ended }] : [])] : [{ state, at_ms: run.submitted_at_ms }],
      error: state === "terminated" ? run.error : state === "failed" ? "job readers: 25 % of its operations failed, 20 % are allowed" : null,
      jobs: index === 2
        ? [job(1, "readers", 64, "GET 80 %, PUT 20 % of s3testqwer{1..2}/myobjects{1..50}", 0.9), job(2, hostile ? "<b>deleters</b>" : "deleters", 8, "DELETE 100 %", 0.1)]
        : [job(1, name, index === 1 ? 16 : 1, ["make buckets s3testqwer{1..2}", "PUT each member", "", "DELETE each member", "remove buckets s3testqwer{1..2}"][index], index === 0 || index === 4 ? 0 : 0.4)],
    };
  });
}

/** What each stage does, by job and kind. */
function works(index, stage) {
  if (index === 2) return [[1, stage.jobs[0].name, "GET", 1], [1, stage.jobs[0].name, "PUT", 1], [2, stage.jobs[1].name, "DELETE", 1]];
  if (index === 1) return [[1, "prepare", "PUT", 2]];
  if (index === 3) return [[1, "cleanup", "DELETE", 8]];
  return [];
}

/** The number of the run of which a server tells no more than it must. */
export const SPARSE = PAST - 4;

/** The rows of a cell that ends at `atMs`, as a tick has them. */
export function rowsAt(stage, atMs, seed) {
  const since = (atMs - stage.began_at_ms) / 1000;
  const next = random(Math.floor(atMs / 1000) + seed * 7919);
  // The store has a hard time now and then.
  const slow = stage.number === 3 && since % 95 > 70 && since % 95 < 78 ? 4.5 : 1 + 0.12 * Math.sin(since / 9);
  const rows = works(stage.number - 1, stage).map(([job, job_name, kind, factor]) => {
    const rate = (COORDINATES.rate[kind] * factor * (0.93 + 0.14 * next())) / slow;
    const p50 = (COORDINATES.latencyNs[kind] * slow * (0.95 + 0.1 * next())) | 0;
    const failing = stage.number === 3 && slow > 4 ? Math.round(30 * next()) : next() < 0.03 ? 1 : 0;
    const errors = failing ? (kind === "PUT" ? { throttled: failing } : kind === "GET" ? { timeout: Math.ceil(failing / 3), corrupt: next() < 0.05 ? 1 : 0 } : { "not-found": failing }) : {};
    for (const name of Object.keys(errors)) if (errors[name] === 0) delete errors[name];
    return {
      stage: stage.number, stage_name: stage.name, job, job_name, kind, ops_per_sec: rate, bytes_per_sec: rate * COORDINATES.bytes[kind], in_flight: job === 1 ? 32 : 8,
      latency_ns: { p50, p90: Math.round(p50 * 2.1), p99: Math.round(p50 * (4.4 + next())), p99_9: Math.round(p50 * (9 + 4 * next())), max: Math.round(p50 * (14 + 22 * next())) }, errors, bins: [],
      ops_count: Math.round(rate * since), ops_failed_count: Math.round(since / 20), bytes_count: Math.round(rate * since * COORDINATES.bytes[kind]),
    };
  });
  if (rows.length === 0) return [];
  const sum = (of) => rows.reduce((total, row) => total + of(row), 0);
  const errors = {};
  for (const row of rows) for (const [name, count] of Object.entries(row.errors)) errors[name] = (errors[name] ?? 0) + count;
  const bins = new Map();
  for (const row of rows) {
    for (let step = -14; step <= 26; step += 1) {
      const center = 1 + 8 * Math.log10(row.latency_ns.p50 / 1000);
      const share = Math.exp(-((step / (step < 0 ? 2.4 : 4.2)) ** 2)) + (step > 8 ? 0.002 : 0);
      const count = Math.round((row.ops_per_sec * share) / 6);
      const bin = Math.max(0, Math.min(63, Math.round(center + step)));
      if (count > 0) bins.set(bin, (bins.get(bin) ?? 0) + count);
    }
  }
  const first = rows[0];
  const total = {
    ...first, job: null, job_name: null, kind: null, ops_per_sec: sum((row) => row.ops_per_sec), bytes_per_sec: sum((row) => row.bytes_per_sec), in_flight: sum((row) => row.in_flight), errors,
    bins: [...bins].sort((a, b) => a[0] - b[0]), ops_count: sum((row) => row.ops_count), ops_failed_count: sum((row) => row.ops_failed_count), bytes_count: sum((row) => row.bytes_count),
  };
  return [total, ...rows];
}

export function hostsOf(stage, rows) {
  const total = rows[0];
  if (!total) return [];
  return ["10.0.0.5:9000", "10.0.0.6:9000", "10.0.0.7:9000", "<u>host</u>:9000"].map((host, index) => {
    const share = [0.31, 0.27, 0.24, 0.18][index];
    return {
      stage: stage.number, host, ops_count: Math.round(total.ops_count * share), ops_failed_count: index === 3 ? total.ops_failed_count : 0, ops_per_sec: total.ops_per_sec * share, bytes_per_sec: total.bytes_per_sec * share,
      latency_ns: { p50: total.latency_ns.p50 * (1 + index / 5), p99: total.latency_ns.p99 * (1 + index / 3), max: total.latency_ns.max },
    };
  });
}

export function agentsOf(stage, rows, nowMs) {
  const total = rows[0];
  if (!total) return [];
  return AGENTS.slice(0, 3).map((agent, index) => {
    const share = [0.35, 0.34, 0.31][index];
    return {
      stage: stage.number, agent, workers_count: 24, ops_count: Math.round(total.ops_count * share), ops_failed_count: index, ops_per_sec: total.ops_per_sec * share, bytes_per_sec: total.bytes_per_sec * share,
      latency_ns: { p50: total.latency_ns.p50, p99: total.latency_ns.p99, max: total.latency_ns.max }, in_flight: 24, clock_offset_ms: [-0.21, 0.043, 1.9][index], cpu_percent: 31 + 9 * index + 4 * Math.sin(nowMs / 4000 + index),
    };
  });
}

export function matrixRows(run, stages) {
  return stages.filter((stage) => stage.began_at_ms !== null && rowsAt(stage, stage.began_at_ms + 1000, 1).length > 0).flatMap((stage) =>
    rowsAt(stage, stage.ended_at_ms ?? Date.now(), Number(run.id.slice(1))).filter((row) => row.kind !== null).map((row) => {
      const scale = (factor) => Math.round(row.latency_ns.p50 * factor);
      return {
        run: run.id, run_name: run.name, run_state: run.state, stage: stage.number, stage_id: stage.id, job: row.job, job_name: row.job_name, kind: row.kind, op_name: { GET: "read", PUT: "write", DELETE: "delete", LIST: "list" }[row.kind],
        workers_count: stage.jobs[row.job - 1].workers_count, ops_count: row.ops_count, ops_failed_count: row.ops_failed_count, bytes_count: row.bytes_count, res_ns_mean: row.latency_ns.p50 * 1.2, proc_ns_mean: row.kind === "GET" ? row.latency_ns.p50 * 0.7 : null,
        latency_ns: { p50: scale(1), p60: scale(1.2), p80: scale(1.6), p90: scale(2.1), p95: scale(2.9), p99: scale(4.6), p99_9: scale(9.8), p100: scale(21) }, ops_per_sec: row.ops_per_sec, bytes_per_sec: row.bytes_per_sec,
        success_ratio: row.ops_count === 0 ? null : 1 - row.ops_failed_count / (row.ops_count + row.ops_failed_count), config: "cprefix=s3testqwer;containers=u(1,2);objects=u(1,50) <script>",
      };
    }));
}
