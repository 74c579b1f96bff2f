// A server that answers the console's API with made-up data, for work on the pages and their tests.
// `node mock/server.mjs --port 19088`; sign in as ann with the password ann, or --no-sign-in.
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { PAST, SPARSE, agents, agentsOf, hostsOf, matrixRows, pastRun, rowsAt, stagesOf } from "./data.mjs";

const ASSETS = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "assets");
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8" };
const LIVE_SECONDS = 600;

class Refused extends Error {
  constructor(status, code, message, problems = []) {
    super(message);
    Object.assign(this, { status, code, problems });
  }
}

export function startMock({ port = 0, signIn = true } = {}) {
  const startedAt = Date.now();
  const sessions = new Map();
  const faults = { slowMs: 0, refuseEvents: false, down: false, empty: false };
  const streams = new Set();
  let nextId = PAST + 6;
  const running = (id, name, secondsAgo) => ({
    id, name, kind: "cosbench", state: "running", user: "ann", submitted_at_ms: startedAt - secondsAgo * 1000 - 4000, began_at_ms: startedAt - secondsAgo * 1000, ended_at_ms: null, order: null, stages_count: 5,
    stage: null, progress: null, ops: ["GET", "PUT", "DELETE"], ops_count: 0, ops_failed_count: 12, bytes_count: 0, has_record: true, error: null,
  });
  const queued = (id, name) => ({ ...running(id, name, 0), state: "queued", submitted_at_ms: Date.now() - 30_000, began_at_ms: null, ops: [], has_record: false, ops_count: null, ops_failed_count: null, bytes_count: null });
  let active = [running(`w${PAST + 1}`, 'live <script>alert("live")</script>', 240), ...["nightly-read", "ufs-read", "<b>bold</b>", "archive"].map((name, index) => queued(`w${PAST + 2 + index}`, name))];
  let ended = [];

  const order = () => active.filter((run) => run.state === "queued").forEach((run, index) => { run.order = index + 1; });
  order();
  const refresh = (run) => {
    if (run.state !== "running") return run;
    const stages = stagesOf(run, Date.now(), LIVE_SECONDS);
    const stage = stages.find((of) => of.state === "running") ?? stages[4];
    const passed = (Date.now() - run.began_at_ms) / 1000;
    return { ...run, stage: { number: stage.number, name: stage.name, state: stage.state }, progress: Math.min(1, passed / (LIVE_SECONDS + 57)), ops_count: Math.round(passed * 11500), bytes_count: Math.round(passed * 11500 * 65536) };
  };
  const find = (id) => {
    const run = active.find((of) => of.id === id) ?? ended.find((of) => of.id === id);
    if (run) return refresh(run);
    const number = /^w(\d+)$/.test(id) ? Number(id.slice(1)) : 0;
    if (number < 1 || number > PAST) throw new Refused(404, "not_found", `there is no run ${id}`);
    return pastRun(number, startedAt);
  };
  const seconds = (run) => (run.ended_at_ms !== null && run.id !== `w${PAST + 1}` ? 300 : LIVE_SECONDS);
  const stages = (run) => (run.state === "terminated" && run.began_at_ms === null ? [] : stagesOf(run, Date.now(), seconds(run)));
  const detail = (run) => ({
    ...run, description: "80 % reads and 20 % writes of 64 KB <em>objects</em>", states: [{ state: "queued", at_ms: run.submitted_at_ms }, ...(run.began_at_ms ? [{ state: "running", at_ms: run.began_at_ms }] : []), ...(run.ended_at_ms ? [{ state: run.state, at_ms: run.ended_at_ms }] : [])],
    stages: stages(run), notes: run.kind === "cosbench" ? ["attribute foo of work main is not known and has no effect"] : [], warnings: run.ops_failed_count > 100 ? ["25 % of the operations of s3-main failed"] : [],
    corrections: run.kind === "cosbench" ? [{ what: "totalOps", theirs: "the remainder of totalOps / workers is dropped", ours: "it is shared out: exactly totalOps operations are done" }, { what: "delete", theirs: "a failed delete counts as a success", ours: "it counts as failed" }] : [],
    touches: ["s3testqwer1", "s3testqwer2"], targets: ["s3 http://10.0.0.5:9000"], has_workload: true, agents: ["driver1", "driver2", "driver3"],
    files: run.has_record ? [{ name: `${run.id}-${run.name.replaceAll("/", "_")}.csv`, size_bytes: 1834, about: "final figures (COSBench)" }, { name: "s3-main.csv", size_bytes: 48_201, about: "timeline of s3-main (COSBench)" }, { name: "workload-config.xml", size_bytes: 1210, about: "the workload, without secrets" }, { name: "ops/part-0000.parquet", size_bytes: 48_201_444, about: "every operation" }] : [],
  });
  const seqOf = (run, atMs) => Math.max(0, Math.floor((atMs - run.began_at_ms) / 1000));
  const series = (run, points) => {
    const rows = new Map();
    const hosts = [];
    const perAgent = [];
    if (run.began_at_ms === null) return { seq: 0, interval_ms: 1000, began_at_ms: null, rows: [], hosts: [], agents: [] };
    const until = run.ended_at_ms ?? run.began_at_ms + seqOf(run, Date.now()) * 1000;
    const interval = Math.max(1, Math.ceil((until - run.began_at_ms) / 1000 / points)) * 1000;
    for (const stage of stages(run)) {
      if (stage.began_at_ms === null) continue;
      let last = [];
      const to = Math.min(stage.ended_at_ms ?? until, until);
      for (let at = stage.began_at_ms + interval; at <= to; at += interval) {
        last = rowsAt(stage, at, Number(run.id.slice(1)));
        for (const row of last) {
          const key = `${row.stage}/${row.job}/${row.kind}`;
          if (!rows.has(key)) rows.set(key, { stage: row.stage, stage_name: row.stage_name, job: row.job, job_name: row.job_name, kind: row.kind, at_ms: [], ops_per_sec: [], bytes_per_sec: [], in_flight: [], latency_ns: { p50: [], p90: [], p99: [], p99_9: [], max: [] }, errors: {}, bins: [] });
          const of = rows.get(key);
          of.at_ms.push(at);
          for (const name of ["ops_per_sec", "bytes_per_sec", "in_flight", "bins"]) of[name].push(row[name]);
          for (const name of Object.keys(of.latency_ns)) of.latency_ns[name].push(row.latency_ns[name]);
          for (const name of new Set([...Object.keys(of.errors), ...Object.keys(row.errors)])) {
            of.errors[name] ??= new Array(of.at_ms.length - 1).fill(0);
            of.errors[name].push(row.errors[name] ?? 0);
          }
        }
      }
      hosts.push(...hostsOf(stage, last));
      perAgent.push(...agentsOf(stage, last, Date.now()));
    }
    return { seq: seqOf(run, until), interval_ms: interval, began_at_ms: run.began_at_ms, rows: [...rows.values()], hosts, agents: perAgent };
  };
  // A server that counts kinds apart but no jobs, and knows neither hosts nor what is in flight.
  const sparseDetail = (of) => ({ ...of, files: [], stages: of.stages.map((stage) => ({ ...stage, jobs: stage.jobs.map((job) => (stage.jobs.length === 1 ? job : { ...job, agents: [], ops_count: null, ops_failed_count: null, bytes_count: null })) })) });
  const sparseSeries = (of) => ({ ...of, hosts: [], agents: of.agents.map(({ stage, agent, ops_count, ops_failed_count, ops_per_sec, bytes_per_sec }) => ({ stage, agent, state: "done", ops_count, ops_failed_count, ops_per_sec, bytes_per_sec })), rows: of.rows.map((row) => ({ ...row, job: null, job_name: null, in_flight: row.in_flight.map(() => null) })) });
  const log = (run) => stages(run).flatMap((stage) => [
    ...(stage.began_at_ms ? [{ at_ms: stage.began_at_ms, level: "info", agent: null, text: `stage ${stage.id} began` }] : []),
    ...(stage.number === 3 && stage.began_at_ms ? [{ at_ms: stage.began_at_ms + 400, level: "warning", agent: "driver2", text: 'answer <svg onload="alert(1)"> of 10.0.0.7:9000 was cut off' }] : []),
    ...(stage.ended_at_ms ? [{ at_ms: stage.ended_at_ms, level: stage.state === "completed" ? "info" : "error", agent: null, text: `stage ${stage.id} ${stage.state}` }] : []),
  ]).map((line, index) => ({ seq: index + 1, ...line }));

  const check = (text) => {
    const problems = [];
    const lines = text.split("\n");
    const at = (needle) => { const line = lines.findIndex((of) => of.includes(needle)); return line < 0 ? { line: null, column: null } : { line: line + 1, column: lines[line].indexOf(needle) + 1 }; };
    const kind = /<workload/.test(text) ? "cosbench" : /^\[/m.test(text) && !/schema:/.test(text) ? "fio" : "plimsoll";
    const name = /<workload[^>]*name="([^"]*)"/.exec(text)?.[1] ?? /^name: (.*)$/m.exec(text)?.[1] ?? null;
    if (kind === "cosbench" && !/<\/workload>/.test(text)) problems.push({ severity: "error", message: "cannot parse the xml configuration from <stream>, due to an element that is not closed: workload", line: lines.length, column: 1 });
    const sum = [...text.matchAll(/ratio="(\d+)"/g)].reduce((total, of) => total + Number(of[1]), 0);
    if (kind === "cosbench" && sum % 100 !== 0) problems.push({ severity: "error", message: `op ratio should sum to 100: they sum to ${sum}`, ...at("<operation") });
    if (text.includes("hashcheck=")) problems.push({ severity: "warning", message: "key hashcheck is not known; COSBench reads hashCheck", ...at("hashcheck=") });
    if (kind === "plimsoll" && !text.includes("schema:")) problems.push({ severity: "error", message: "the first line must name the language: schema: plimsoll.workload/2", line: 1, column: 1 });
    if (text.includes("KiB") && kind === "cosbench") problems.push({ severity: "warning", message: "KiB: COSBench takes this for bytes; here it is 1024 bytes", ...at("KiB") });
    const ok = !problems.some((of) => of.severity === "error");
    return {
      ok, kind, name, problems, lowered: ok ? `schema: plimsoll.workload/2\nname: ${name ?? "workload"}\nstages:\n- {name: main, duration: 30s, jobs: [{workers: 8, work: {objects: [{get: o, weight: 80}, {put: o, weight: 20}]}}]}\n` : null, touches: ok ? ["bench1", "bench2"] : [], needs_leave: text.includes("needsleave") ? ["bench2"] : [],
      stages: ok ? [{ number: 1, name: "prepare", planned_ns: null, delay_ns: 5e9, jobs: [{ name: "prepare", workers_count: 8, work: "PUT each member" }] }, { number: 2, name: "main", planned_ns: 3e10, delay_ns: null, jobs: [{ name: "main", workers_count: 8, work: "GET 80 %, PUT 20 %" }] }] : [],
    };
  };

  const timeline = (run, stageNumber) => stages(run).filter((stage) => stage.began_at_ms !== null && (!stageNumber || stage.number === stageNumber)).flatMap((stage) => {
    const rows = [];
    for (let at = stage.began_at_ms + 5000; at <= (stage.ended_at_ms ?? Date.now()); at += 5000) {
      for (const row of rowsAt(stage, at, 1)) if (row.kind !== null) rows.push({ at_ms: at, stage: stage.number, stage_id: stage.id, job_name: row.job_name, kind: row.kind, ops_count: Math.round(row.ops_per_sec * 5), bytes_count: Math.round(row.bytes_per_sec * 5), res_ns_mean: row.latency_ns.p50 * 1.2, proc_ns_mean: row.kind === "GET" ? row.latency_ns.p50 * 0.6 : null, ops_per_sec: row.ops_per_sec, bytes_per_sec: row.bytes_per_sec, success_ratio: Object.keys(row.errors).length ? 0.9985 : 1 });
    }
    return rows;
  });
  const page = (rows, query) => {
    const from = Number(query.get("cursor") || 0);
    const limit = Math.min(200, Number(query.get("limit") || 50));
    return { part: rows.slice(from, from + limit), next: from + limit < rows.length ? String(from + limit) : null, total_count: rows.length };
  };
  const past = Array.from({ length: PAST }, (_, index) => pastRun(PAST - index, startedAt));
  const listed = (query) => {
    let rows = faults.empty ? [] : [...active.map(refresh), ...ended, ...past];
    const search = (query.get("search") ?? "").toLowerCase();
    const states = (query.get("state") ?? "").split(",").filter(Boolean);
    const kind = query.get("kind");
    rows = rows.filter((run) => (!search || `${run.id} ${run.name} ${run.user} ${run.ops.join(" ")}`.toLowerCase().includes(search)) && (states.length === 0 || states.includes(run.state)) && (!kind || run.kind === kind));
    const sort = query.get("sort") ?? "-submitted";
    const value = { submitted: (run) => run.submitted_at_ms, duration: (run) => (run.ended_at_ms ?? 0) - (run.began_at_ms ?? 0), name: (run) => run.name, state: (run) => run.state }[sort.replace("-", "")] ?? ((run) => run.submitted_at_ms);
    const sign = sort.startsWith("-") ? -1 : 1;
    rows.sort((a, b) => (value(a) < value(b) ? -sign : value(a) > value(b) ? sign : 0));
    const { part, next, total_count } = page(rows, query);
    return { runs: part, next, total_count };
  };
  const ids = (text) => (text ?? "").split(",").filter(Boolean);
  const compare = (query) => {
    const [before, after] = [ids(query.get("before")), ids(query.get("after"))];
    for (const id of [...before, ...after]) find(id);
    if (before.length === 0 || after.length === 0) throw new Refused(422, "invalid", "a comparison needs runs on both sides");
    const metric = (metric, unit, better, value, percent, verdict) => {
      const side = (factor, runs) => ({ values: runs.map((_, index) => value * factor * (1 + index / 100)), mean: value * factor, std_dev: runs.length > 1 ? value * 0.02 : null });
      return { metric, unit, better, before: side(1, before), after: side(1 + percent / 100, after), change: (value * percent) / 100, change_percent: percent, verdict: before.length < 3 || after.length < 3 ? (before.length === 1 && after.length === 1 ? "one-run" : "too-few-runs") : verdict, change_percent_interval: null, detectable_percent: 3.1 };
    };
    const kind = (of, name) => ({ of, kind: name, occurred: "both", ops_count_before: 2_310_500, ops_count_after: 2_512_900, metrics: [metric("rate", "ops_per_sec", "higher", 9214, 8.7, "better"), metric("throughput", "bytes_per_sec", "higher", 6.03e8, 8.7, "better"), metric("p50", "ns", "lower", 2.1e6, -6.2, "same"), metric("ttfb-p50", "ns", "lower", 1.4e6, -5.1, "same"), metric("p99", "ns", "lower", 9.8e6, 14.1, "worse"), metric("errors", "fraction", "lower", 0.0003, 0.4, "unclear")] });
    return { schema: "plimsoll.compare/1", before, after, margin_percent: 5, parameters: [{ name: "workers", before: ["64"], after: ["128"] }, { name: "<i>storage</i>", before: ["s3"], after: ["s3"] }], kinds: [kind("s3-main, readers", "GET"), kind("s3-main, readers", "PUT"), kind(null, "total")], gates: [], exit_code: null };
  };
  const matrix = (query) => {
    const ops = query.get("ops") ? ids(query.get("ops")) : null;
    const missing = [];
    const rows = ids(query.get("runs")).flatMap((id) => {
      let run;
      try { run = find(id); } catch (error) { missing.push({ run: id, why: error.message }); return []; }
      if (!run.has_record) { missing.push({ run: id, why: "it has no record" }); return []; }
      return matrixRows(run, stages(run));
    });
    return { rows: rows.filter((row) => !ops || ops.includes(row.kind)), kinds: [...new Set(rows.map((row) => row.kind))], missing };
  };
  const end = (id, state) => {
    const run = active.find((of) => of.id === id);
    if (!run) throw new Refused(409, "conflict", `run ${id} has ended already`);
    const done = { ...refresh(run), state, ended_at_ms: Date.now(), stage: null, progress: null, order: null };
    active = active.filter((of) => of.id !== id);
    ended.unshift(done);
    order();
    for (const stream of streams) if (stream.id === id) stream.finish(done);
    return done;
  };
  const submit = (name, kind, to) => {
    const run = { ...queued(`w${nextId++}`, name ?? "workload"), kind, submitted_at_ms: Date.now() };
    const firstQueued = active.findIndex((of) => of.state === "queued");
    if (to === "first" && firstQueued >= 0) active.splice(firstQueued, 0, run);
    else active.push(run);
    order();
    return run.id;
  };
  const move = (id, where) => {
    const run = active.find((of) => of.id === id && of.state === "queued");
    if (!run) throw new Refused(409, "conflict", `run ${id} does not wait in the queue`);
    const others = active.filter((of) => of !== run);
    const first = others.findIndex((of) => of.state === "queued");
    let index = where.to === "first" ? (first < 0 ? others.length : first) : where.to === "last" ? others.length : others.findIndex((of) => of.id === (where.before ?? where.after) && of.state === "queued");
    if (index < 0) throw new Refused(409, "conflict", `run ${where.before ?? where.after} does not wait in the queue`);
    if (where.after) index += 1;
    others.splice(index, 0, run);
    active = others;
    order();
    return { active: active.map(refresh) };
  };

  function events(id, after, response) {
    const run = find(id);
    response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    const send = (event, data, seq) => response.write(`event: ${event}\n${seq === undefined ? "" : `id: ${seq}\n`}data: ${JSON.stringify(data)}\n\n`);
    const { files, corrections, ...short } = detail(run);
    send("run", short);
    if (run.state !== "running") {
      if (run.state !== "queued") { send("end", { state: run.state }); response.end(); }
      return;
    }
    let seq = after;
    const tick = () => {
      const now = find(id);
      for (const last = seqOf(now, Date.now()); seq < last; ) {
        seq += 1;
        const at = now.began_at_ms + seq * 1000;
        const stage = stages(now).find((of) => of.began_at_ms !== null && of.began_at_ms < at && (of.ended_at_ms === null || of.ended_at_ms >= at));
        const rows = stage ? rowsAt(stage, at, Number(id.slice(1))) : [];
        send("tick", { seq, at_ms: at, progress: now.progress, rows, hosts: stage ? hostsOf(stage, rows) : [], agents: stage ? agentsOf(stage, rows, at) : [] }, seq);
        if (seq % 15 === 0) send("log", { seq: 1000 + seq, at_ms: at, level: "info", agent: "driver1", text: `${seq} s: all is well <b>here</b>` }, seq);
      }
    };
    const timer = setInterval(tick, 250);
    const stream = { id, response, finish: (done) => { clearInterval(timer); const { files, corrections, ...short } = detail(done); send("run", short); send("end", { state: done.state }); response.end(); } };
    streams.add(stream);
    response.on("close", () => { clearInterval(timer); streams.delete(stream); });
  }

  async function body(request) {
    let text = "";
    for await (const chunk of request) text += chunk;
    try { return JSON.parse(text || "{}"); } catch { throw new Refused(400, "invalid", "the body is not JSON"); }
  }
  const sessionOf = (request) => {
    const token = /plimsoll_session=([0-9a-f]+)/.exec(request.headers.cookie ?? "")?.[1];
    return signIn ? sessions.get(token) ?? null : { user: "anonymous", csrf: "none", token };
  };
  const sessionAnswer = (who) => ({
    user: who?.user ?? null, sign_in: signIn ? "form" : "none", csrf_token: who?.csrf ?? null, expires_at_ms: who ? Date.now() + 3.6e6 : null, version: "0.1.0", name: "lab controller <b>1</b>", url: "http://bench1:19088/console/", time_ms: Date.now(), concurrency: 1, upload_bytes_max: 104857600, features: { fleet: true, triggers: false },
  });

  async function answer(request, response, url) {
    const path = url.pathname.replace("/api/v1", "");
    const method = request.method ?? "GET";
    const query = url.searchParams;
    const send = (value, status = 200, headers = {}) => {
      response.writeHead(status, { "Content-Type": "application/json", "Cache-Control": "no-store", ...headers });
      response.end(value === null ? "" : JSON.stringify(value));
    };
    const download = (name, text) => {
      response.writeHead(200, { "Content-Type": "application/octet-stream", "Content-Disposition": `attachment; filename*=UTF-8''${encodeURIComponent(name)}` });
      response.end(text);
    };
    const who = sessionOf(request);
    if (path === "/session") {
      if (method === "GET") return send(sessionAnswer(who));
      if (method === "DELETE") { sessions.delete(who?.token); return send(null, 204); }
      const { user, password } = await body(request);
      if (!user || user !== password) throw new Refused(401, "signed_out", "wrong user name or password");
      const token = randomBytes(16).toString("hex");
      const made = { user, csrf: randomBytes(16).toString("hex"), token };
      sessions.set(token, made);
      return send(sessionAnswer(made), 200, { "Set-Cookie": `plimsoll_session=${token}; HttpOnly; SameSite=Strict; Path=/` });
    }
    if (!who) throw new Refused(401, "signed_out", "sign in first");
    if (method !== "GET" && request.headers["x-plimsoll-csrf"] !== who.csrf) throw new Refused(403, "csrf", "the token of the session is missing or wrong");
    const live = active.find((run) => run.state === "running");
    if (path === "/overview") {
      const recent = faults.empty ? [] : [...ended, ...past].slice(0, 10);
      return send({ time_ms: Date.now(), agents: faults.empty ? [] : agents(Date.now(), live?.id ?? null), active: faults.empty ? [] : active.map(refresh), recent, counts: faults.empty ? {} : { queued: active.filter((run) => run.state === "queued").length, running: live ? 1 : 0, finished: 9421, failed: 243, terminated: 151, cancelled: 185 + ended.length } });
    }
    if (path === "/agents") return send({ agents: faults.empty ? [] : agents(Date.now(), live?.id ?? null) });
    if (path === "/runs" && method === "GET") return send(listed(query));
    if (path === "/runs" && method === "POST") {
      const { text = "", name, to } = await body(request);
      const checked = check(text);
      if (!checked.ok) throw new Refused(422, "invalid", "the workload has errors", checked.problems);
      if (checked.needs_leave.length) throw new Refused(422, "invalid", "writing in bench2 needs leave: add it to touch in the controller's configuration");
      return send({ id: submit(name ?? checked.name, checked.kind, to), problems: checked.problems }, 201);
    }
    if (path === "/check" && method === "POST") return send(check((await body(request)).text ?? ""));
    if (path === "/matrix") return send(matrix(query));
    if (path === "/matrix.csv") return download("matrix.csv", "Run,Op-Name\n");
    if (path === "/compare") return send(compare(query));
    const of = /^\/runs\/([^/]+)(?:\/(.*))?$/.exec(path);
    if (of) {
      const id = decodeURIComponent(of[1]);
      const run = find(id);
      switch (`${method} ${of[2] ?? ""}`) {
        case "GET ": return send(run.id === `w${SPARSE}` ? sparseDetail(detail(run)) : detail(run));
        case "GET series": { const of = series(run, Number(query.get("points") || 600)); return send(run.id === `w${SPARSE}` ? sparseSeries(of) : of); }
        case "GET log": return send({ log: log(run), last: 100 });
        case "GET timeline": { const { part, next, total_count } = page(timeline(run, Number(query.get("stage") || 0)), query); return send({ rows: part, next, total_count }); }
        case "GET timeline.csv": return download("s3-main.csv", "Timestamp,Op-Count\n");
        case "GET everything.tar": return download(`${id}.tar`, "");
        case "GET workload": return send({ text: `<?xml version="1.0" encoding="UTF-8"?>\n<workload name="${id}">\n  <storage type="s3" config="accesskey=*REDACTED*;secretkey=*REDACTED*"/>\n</workload>\n`, file_name: "main.xml", lowered: `schema: plimsoll.workload/2\nname: ${id}\n` });
        case "GET report.html": response.writeHead(200, { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox" }); return response.end("<!DOCTYPE html><title>report</title><p>report (mock)");
        case "GET events":
          if (faults.refuseEvents) throw new Refused(503, "busy", "no more live views");
          return events(id, Number(request.headers["last-event-id"] ?? query.get("after") ?? 0), response);
        case "POST cancel": return send(end(id, "cancelled"));
        case "POST resubmit": return send({ id: submit(run.name, run.kind, "last") }, 201);
        case "POST move": return send(move(id, await body(request)));
      }
      if (method === "GET" && of[2]?.startsWith("files/")) return download(decodeURIComponent(of[2].slice(6)), "made up\n");
    }
    throw new Refused(404, "not_found", `there is nothing at ${path}`);
  }

  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://mock");
    response.setHeader("Content-Security-Policy", POLICY);
    response.setHeader("X-Content-Type-Options", "nosniff");
    if (faults.down) return void request.socket.destroy();
    try {
      if (url.pathname.startsWith("/api/v1/")) {
        if (faults.slowMs && !url.pathname.endsWith("/events")) await new Promise((done) => setTimeout(done, faults.slowMs));
        return await answer(request, response, url);
      }
      if (url.pathname === "/" || url.pathname === "/console") { response.writeHead(302, { Location: "/console/" }); return void response.end(); }
      const name = url.pathname.replace("/console/", "") || "index.html";
      const contents = /^[a-z0-9.-]+$/.test(name) ? await readFile(join(ASSETS, name)).catch(() => null) : null;
      if (contents === null) throw new Refused(404, "not_found", "there is no such page");
      response.writeHead(200, { "Content-Type": TYPES[extname(name)] ?? "application/octet-stream", "Cache-Control": "no-cache" });
      response.end(contents);
    } catch (error) {
      if (!(error instanceof Refused)) console.error(error);
      if (response.headersSent) return void response.end();
      response.writeHead(error.status ?? 500, { "Content-Type": "application/json" });
      response.end(JSON.stringify({ error: { code: error.code ?? "internal", message: error.message, problems: error.problems ?? [] } }));
    }
  });
  const dropStreams = () => { for (const stream of streams) stream.response.destroy(); };
  return new Promise((done) => server.listen(port, "127.0.0.1", () => done({
    url: `http://127.0.0.1:${server.address().port}`, faults, dropStreams, expireSessions: () => sessions.clear(),
    close: () => { dropStreams(); server.closeAllConnections(); server.close(); },
  })));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const place = process.argv.indexOf("--port");
  const mock = await startMock({ port: place < 0 ? 0 : Number(process.argv[place + 1]), signIn: !process.argv.includes("--no-sign-in") });
  console.log(`${mock.url}/console/ (sign in as ann with the password ann)`);
}
