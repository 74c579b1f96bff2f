// The figures of a run: what it does now, its course over time, by host, by agent.
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Agent, AgentFigures, HostFigures, Job, MatrixRow, PERCENTILES, RunDetail, SeriesRow, Stage } from "../api";
import { Chart, HeatMap } from "../charts";
import { Figures, align, cellMs, colorOfKind, colorOfOther, errorsOf } from "../figures";
import { UNKNOWN, byteRate, bytes, count, duration, number, offset, opRate, rowName, timeUnit } from "../format";
import { useAsked } from "../hooks";
import { Check, Section, Select, State, Table } from "../ui";

const MIB = 1048576;

/** The figures that matter first: those of this second, or what the stage came to. */
export function Tiles(props: { run: RunDetail; stage: Stage | null; figures: Figures; round: number; results: MatrixRow[] }) {
  const { run, stage, figures } = props;
  const total = stage ? figures.total(stage.number) : null;
  const isNow = stage?.state === "running" && total !== null && total.at_ms.length > 0;
  const jobs = stage ? stage.jobs : run.stages.flatMap((of) => of.jobs);
  const results = props.results.filter((row) => stage === null || row.stage === stage.number);
  // Counters tell up to 16 jobs of a stage apart; otherwise it is the results that know.
  const sum = (ofJob: (job: Job) => number | null, ofRow: (row: MatrixRow) => number): number | null => {
    const known = jobs.map(ofJob);
    if (known.length > 0 && known.every((of) => of !== null)) return known.reduce<number>((sum, of) => sum + (of ?? 0), 0);
    return results.length === 0 ? null : results.reduce((sum, row) => sum + ofRow(row), 0);
  };
  const failed = sum((job) => job.ops_failed_count, (row) => row.ops_failed_count);
  const tiles: [name: string, value: string, isBad: boolean][] = [];
  if (isNow) {
    const last = (values: (number | null)[]) => values[values.length - 1] ?? null;
    const inFlight = last(total.in_flight);
    tiles.push(
      ["op rate now", opRate(last(total.ops_per_sec)), false], ["throughput now", byteRate(last(total.bytes_per_sec)), false],
      ["latency p50 now", duration(last(total.latency_ns.p50)), false], ["latency p99 now", duration(last(total.latency_ns.p99)), false],
    );
    if (inFlight !== null) tiles.push(["in flight", count(inFlight), false]);
  } else {
    // The kinds of one job have one measured span, so that their rates add up; those of several have not.
    const rows = stage && stage.jobs.length === 1 ? results : [];
    if (rows.length > 0) tiles.push(["op rate", opRate(rows.reduce((sum, row) => sum + (row.ops_per_sec ?? 0), 0)), false], ["throughput", byteRate(rows.reduce((sum, row) => sum + (row.bytes_per_sec ?? 0), 0)), false]);
    const [only] = rows;
    if (only && rows.length === 1) tiles.push(["latency p50", duration(only.latency_ns["p50"]), false], ["latency p99", duration(only.latency_ns["p99"]), false]);
    tiles.push(["operations", count(sum((job) => job.ops_count, (row) => row.ops_count)), false], ["bytes", bytes(sum((job) => job.bytes_count, (row) => row.bytes_count)), false]);
  }
  if (!isNow && tiles.every(([, value]) => value === UNKNOWN)) return null;
  tiles.push(["failed", count(failed), (failed ?? 0) > 0]);
  return (
    <dl class="tiles" aria-label={stage ? `Figures of stage ${stage.name}` : "Figures of all stages"} data-test="tiles">
      {tiles.map(([name, value, isBad]) => {
        const [figure, unit = ""] = value.split(" ", 2);
        return <div key={name} class={isBad ? "bad" : ""}><dt>{name}</dt><dd>{figure} <small>{unit}</small></dd></div>;
      })}
    </dl>
  );
}

export function TimeCharts(props: { stage: Stage | null; figures: Figures; round: number; isLive: boolean }) {
  const { stage, figures, round } = props;
  const [isLog, setLog] = useState(true);
  const [about, setAbout] = useState("all");
  const shownStage = stage?.number ?? null;
  const rows = useMemo(() => figures.shown(shownStage), [figures, shownStage, round]);
  const jobsCount = new Set(rows.map((row) => row.job)).size;
  const nameOf = (row: SeriesRow) => (shownStage === null ? `${row.stage}. ${row.stage_name}` : rowName(row, jobsCount));
  const interval = figures.intervalMs;
  const lined = (of: (row: SeriesRow) => (number | null)[]) =>
    align(rows.map((row, index) => ({
      atMs: row.at_ms,
      line: { name: nameOf(row), color: row.kind === null || jobsCount > 1 ? colorOfOther(index) : colorOfKind(row.kind), values: of(row) },
    })), interval);
  const rates = useMemo(() => lined((row) => row.ops_per_sec), [rows, round]);
  const throughput = useMemo(() => {
    const moved = lined((row) => row.bytes_per_sec.map((value) => (value === null ? null : value / MIB)));
    return { ...moved, lines: moved.lines.filter((line) => line.values.some((of) => of)) };
  }, [rows, round]);
  const options = shownStage === null ? rows : [figures.total(shownStage), ...rows].filter((row) => row !== null);
  const keyOf = (row: SeriesRow) => `${row.stage}/${row.job ?? ""}/${row.kind ?? ""}`;
  const shown = options.find((row) => keyOf(row) === about) ?? (shownStage === null ? null : options[0] ?? null);
  const latency = useMemo(() => {
    const names = { p50: "p50", p90: "p90", p99: "p99", p99_9: "p99.9", max: "longest" };
    if (shown === null) return align(rows.map((row, index) => ({ atMs: row.at_ms, line: { name: `${nameOf(row)} p99`, color: colorOfOther(index), values: row.latency_ns.p99 } })), interval);
    return align(PERCENTILES.map((name, index) => ({
      atMs: shown.at_ms, line: { name: names[name], color: ["--p50", "--p90", "--p99", "--p999", "--max"][index] ?? "--s8", values: shown.latency_ns[name], dash: name === "max" },
    })), interval);
  }, [shown, rows, round]);
  const totals = useMemo(() => (shownStage === null ? figures.shown(null) : [figures.total(shownStage)].filter((row) => row !== null)), [figures, shownStage, round]);
  const errors = useMemo(() => errorsOf(totals, interval), [totals, round]);
  const cells = useMemo(() => totals.flatMap((row) => row.at_ms.map((atMs, index) => ({ atMs, ms: cellMs(row.at_ms, index, interval), bins: row.bins[index] ?? [] }))).sort((a, b) => a.atMs - b.atMs), [totals, round]);
  const empty = props.isLive ? "No figures yet." : "No figures.";
  const nsAxis = (max: number) => {
    const [size, unit] = timeUnit(max);
    return (value: number) => (isLog ? duration(value).replace(/\.0+ /, " ") : `${trimmed(value / size)} ${unit}`);
  };
  return (
    <Section id="charts" title="Over time" aside={
      <div class="inline-fields">
        <Select class="inline" label="Latency of" value={shown ? keyOf(shown) : "all"} onChange={setAbout}
          options={shownStage === null ? [["all", "all stages, p99"], ...options.map((row): [string, string] => [keyOf(row), nameOf(row)])] : options.map((row) => [keyOf(row), row.kind === null ? "all operations" : rowName(row, jobsCount)])} />
        <Check label="Logarithmic latency" checked={isLog} onChange={setLog} />
      </div>
    }>
      <div class="charts">
        <Chart id="chart-throughput" title="Throughput" caption="Bytes of successful operations, per second, in MiB/s." lines={throughput} text={(value) => byteRate(value * MIB)} axis={() => trimmed} measure="MiB/s" empty={throughput.atSec.length > 0 ? "No bytes are moved." : empty} />
        <Chart id="chart-rate" title="Op rate" caption="Successful operations per second." lines={rates} text={opRate} axis={() => trimmed} measure="operations/s" empty={empty} />
        <Chart id="chart-latency" title="Latency" caption="Of successful operations, from the intended start to the end." lines={latency} text={duration} axis={nsAxis} measure="latency" isLog={isLog} empty={empty} />
        <Chart id="chart-errors" title="Errors by class" caption="Failed operations per second." lines={errors} text={(value) => `${number(value)}/s`} axis={() => trimmed} measure="failed operations/s" empty={totals.some((row) => row.at_ms.length > 0) ? "No operation failed." : empty} />
        <HeatMap cells={cells} />
      </div>
      {interval >= 1500 ? <p class="caption">One point stands for {duration(interval * 1e6)}.</p> : null}
    </Section>
  );
}

/** A figure at an axis: no more digits than it needs. */
function trimmed(value: number): string {
  return value >= 1000 ? count(value) : String(Number(value.toPrecision(4)));
}

export function HostRows({ rows, stages }: { rows: HostFigures[]; stages: Stage[] }) {
  if (rows.length === 0) return null;
  return (
    <Section id="hosts" title="By host">
      <Table label="Figures by host" test="hosts">
        <thead><tr><th scope="col">Host</th><th scope="col" class="text">Stage</th><th scope="col">Operations</th><th scope="col">Failed</th><th scope="col">Op rate</th><th scope="col">Throughput</th><th scope="col">p50</th><th scope="col">p99</th><th scope="col">Longest</th></tr></thead>
        <tbody>
          {rows.map((row) => (
            <tr key={`${row.stage}/${row.host}`}>
              <th scope="row">{row.host}</th><td class="text">{stageName(stages, row.stage)}</td><td>{count(row.ops_count)}</td><td class={row.ops_failed_count ? "bad" : ""}>{count(row.ops_failed_count)}</td>
              <td>{opRate(row.ops_per_sec)}</td><td>{byteRate(row.bytes_per_sec)}</td><td>{duration(row.latency_ns.p50)}</td><td>{duration(row.latency_ns.p99)}</td><td>{duration(row.latency_ns.max)}</td>
            </tr>
          ))}
        </tbody>
      </Table>
    </Section>
  );
}

const stageName = (stages: Stage[], wanted: number): string => stages.find((of) => of.number === wanted)?.name ?? String(wanted);

/** What each agent does; what is known of its machine stands beside while the run goes on. */
export function AgentRows({ rows, stages, isLive }: { rows: AgentFigures[]; stages: Stage[]; isLive: boolean }) {
  const asked = useAsked<{ agents: Agent[] }>(isLive && rows.length > 0 ? "/agents" : null, 5000);
  if (rows.length === 0) return null;
  const joined = rows.map((row) => {
    const machine = asked.data?.agents.find((of) => of.name === row.agent);
    return { ...row, clock_offset_ms: row.clock_offset_ms ?? machine?.clock_offset_ms ?? null, cpu_percent: row.cpu_percent ?? machine?.cpu_percent ?? null };
  });
  type Joined = (typeof joined)[number];
  const columns: { name: string; isText?: boolean; value: (row: Joined) => unknown; text: (row: Joined) => ComponentChildren; isBad?: (row: Joined) => boolean }[] = [
    { name: "Stage", isText: true, value: () => true, text: (row) => stageName(stages, row.stage) },
    { name: "State", isText: true, value: (row) => row.state, text: (row) => <State state={row.state ?? "–"} /> },
    { name: "Workers", value: (row) => row.workers_count, text: (row) => count(row.workers_count) },
    { name: "Operations", value: () => true, text: (row) => count(row.ops_count) },
    { name: "Failed", value: () => true, text: (row) => count(row.ops_failed_count), isBad: (row) => row.ops_failed_count > 0 },
    { name: "Op rate", value: () => true, text: (row) => opRate(row.ops_per_sec) },
    { name: "Throughput", value: () => true, text: (row) => byteRate(row.bytes_per_sec) },
    { name: "p50", value: (row) => row.latency_ns?.p50, text: (row) => duration(row.latency_ns?.p50) },
    { name: "p99", value: (row) => row.latency_ns?.p99, text: (row) => duration(row.latency_ns?.p99) },
    { name: "In flight", value: (row) => row.in_flight, text: (row) => count(row.in_flight) },
    { name: "Clock offset", value: (row) => row.clock_offset_ms, text: (row) => offset(row.clock_offset_ms) },
    { name: "CPU", value: (row) => row.cpu_percent, text: (row) => (row.cpu_percent === null ? "–" : `${number(row.cpu_percent)} %`), isBad: (row) => (row.cpu_percent ?? 0) > 90 },
  ];
  // A column that no row knows is left out.
  const shown = columns.filter((column) => joined.some((row) => column.value(row) != null));
  return (
    <Section id="by-agent" title="By agent">
      <Table label="Figures by agent" test="by-agent">
        <thead><tr><th scope="col">Agent</th>{shown.map((column) => <th key={column.name} scope="col" class={column.isText ? "text" : ""}>{column.name}</th>)}</tr></thead>
        <tbody>
          {joined.map((row) => (
            <tr key={`${row.stage}/${row.agent}`}>
              <th scope="row">{row.agent}</th>
              {shown.map((column) => <td key={column.name} class={`${column.isText ? "text" : ""} ${column.isBad?.(row) ? "bad" : ""}`}>{column.text(row)}</td>)}
            </tr>
          ))}
        </tbody>
      </Table>
    </Section>
  );
}
