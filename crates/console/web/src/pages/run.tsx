// The page of one run: live while it goes on, and afterwards.
import { Fragment } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, LogLine, Matrix, RunDetail, Series, Stage, api, now, runPath } from "../api";
import { Figures } from "../figures";
import { bytes, duration, elapsed, instant } from "../format";
import { Asked, go, setQuery, useAddress, useAsked, useTicking } from "../hooks";
import { Live } from "../live";
import { Empty, ErrorBox, Lines, Loaded, Page, Progress, Section, Select, State, Table, useConfirm } from "../ui";
import { COLUMNS, Download, cancelAll, hasEnded, resubmitAll } from "./parts";
import { Corrections } from "./checked";
import { StageBars } from "./stages";
import { AgentRows, HostRows, Tiles, TimeCharts } from "./run-figures";

const LOG_MAX = 1000;
const POINTS = 600;

interface Watched {
  run: RunDetail | null; figures: Figures | null; log: LogLine[]; error: ApiError | null;
  /** Null: live, or nothing to wait for. */
  retryAt: number | null; round: number;
}

/** Asks for a run and what it came to so far, and keeps on listening while it goes on. */
function useRun(id: string): Watched & { reload: () => void } {
  const [watched, setWatched] = useState<Watched>({ run: null, figures: null, log: [], error: null, retryAt: null, round: 0 });
  const [round, setRound] = useState(0);
  const reload = () => setRound((n) => n + 1);
  useEffect(() => {
    const stop = new AbortController();
    let live: Live | null = null;
    let again: ReturnType<typeof setTimeout> | undefined;
    const change = (of: Partial<Watched>) => {
      if (!stop.signal.aborted) setWatched((old) => ({ ...old, ...of, round: old.round + 1 }));
    };
    const ask = async () => {
      const signal = stop.signal;
      let run: RunDetail;
      try {
        run = await api<RunDetail>(runPath(id), { signal });
        change({ run, error: null });
        const [series, log] = await Promise.all([
          api<Series>(`${runPath(id)}/series?points=${POINTS}`, { signal }),
          api<{ log: LogLine[] }>(`${runPath(id)}/log?limit=500`, { signal }),
        ]);
        let figures = new Figures(series);
        change({ figures, log: log.log, retryAt: null });
        if (hasEnded(run.state) || signal.aborted) return;
        const refresh = async (): Promise<number | null> => {
          const series = await api<Series>(`${runPath(id)}/series?points=${POINTS}`, { signal }).catch(() => null);
          if (series === null) return null;
          figures = new Figures(series);
          change({ figures });
          return series.seq;
        };
        live = new Live(id, series.seq, {
          onRun: (run) => setWatched((old) => ({ ...old, run: { ...old.run, ...run }, round: old.round + 1 })),
          onTick: (tick) => {
            if (!figures.add(tick)) return;
            setWatched((old) => ({ ...old, run: old.run ? { ...old.run, progress: tick.progress } : null, round: old.round + 1 }));
            if (figures.isLong) void refresh();
          },
          onLog: (line) => setWatched((old) => (old.log.some((of) => of.seq === line.seq) ? old : { ...old, log: [...old.log, line].slice(-LOG_MAX) })),
          onReset: refresh,
          onEnd: reload,
          onConnection: (retryMs) => change({ retryAt: retryMs === null ? null : Date.now() + retryMs }),
        });
      } catch (error) {
        if (!(error instanceof ApiError) || error.code === "left") return;
        change({ error });
        if (error.isLost || error.status >= 500) again = setTimeout(ask, 3000);
      }
    };
    void ask();
    return () => {
      stop.abort();
      clearTimeout(again);
      live?.close();
    };
  }, [id, round]);
  return { ...watched, reload };
}

export function RunPage({ id }: { id: string }) {
  const { run, figures, log, error, retryAt, round, reload } = useRun(id);
  const [dialog, confirm] = useConfirm();
  if (run === null) {
    return <Page title={`Run ${id}`}>{error ? <ErrorBox error={error} retry={reload} /> : <p class="empty" role="status">Loading…</p>}</Page>;
  }
  const isLive = !hasEnded(run.state);
  const path = runPath(id);
  return (
    <Page title={run.name || id}
      intro={<><State state={run.state} /> {id} · {run.kind} · submitted {instant(run.submitted_at_ms)}{run.user ? ` by ${run.user}` : ""}<Took run={run} /></>}
      actions={
        <>
          {isLive ? <button type="button" class="danger" onClick={() => confirm(`Cancel run ${id}? What was measured so far is kept.`, "Cancel the run", () => void cancelAll([id]).then(reload))}>Cancel</button> : null}
          <button type="button" onClick={() => resubmitAll([id]).then(([made]) => { if (made) go(`#/runs/${made}`); })}>Submit again</button>
          {run.has_workload ? <a class="button" href={`#/submit?from=${encodeURIComponent(id)}`}>Change and submit</a> : null}
          <a class="button" href={`#/runs/${encodeURIComponent(id)}/timeline`}>Timeline</a>
          {run.has_record && !isLive ? <a class="button" href={`/api/v1${path}/report.html`} target="_blank" rel="noopener">Report</a> : null}
          <Download path={`${path}/everything.tar`}>Download everything</Download>
        </>
      }>
      {dialog}
      <ErrorBox error={error} retry={reload} />
      <Reconnecting retryAt={isLive ? retryAt : null} />
      {run.description ? <p>{run.description}</p> : null}
      <Lines class="failure" lines={run.error ? [run.error] : []} />
      <Lines class="warning" lines={[...(run.archive_error ? [`the archive could not be written: ${run.archive_error}`] : []), ...run.warnings]} />
      {run.state === "queued" ? <p class="box note">Waits in the queue{run.order ? ` at place ${run.order}` : ""}. The page comes to life when the run begins.</p> : null}
      {run.state === "running" ? <Progress value={run.progress} label="Progress of the run" /> : null}
      <Body run={run} figures={figures} log={log} round={round} isLive={isLive} />
    </Page>
  );
}

function Took({ run }: { run: RunDetail }) {
  useTicking(1000, !hasEnded(run.state));
  if (run.began_at_ms === null) return null;
  const ended = run.ended_at_ms ?? now();
  return <>{` · ${run.ended_at_ms === null ? "runs for" : "took"} ${elapsed(ended - run.began_at_ms)}`}</>;
}

function Reconnecting({ retryAt }: { retryAt: number | null }) {
  useTicking(1000, retryAt !== null);
  return (
    <div role="status" data-test="live">
      {retryAt === null ? null : <p class="box warning">The live view is interrupted; {Date.now() < retryAt ? `trying again in ${Math.ceil((retryAt - Date.now()) / 1000)} s` : "trying again"}. The run itself goes on.</p>}
    </div>
  );
}

/** The stage that is shown when none is chosen: the present one, or the longest that measures. */
function mainStage(stages: Stage[]): number | null {
  const running = stages.find((of) => of.state === "running" || of.state === "sleeping");
  if (running) return running.number;
  const span = (of: Stage) => (of.began_at_ms === null || of.delay_ns !== null && of.jobs.length === 0 ? -1 : (of.ended_at_ms ?? now()) - of.began_at_ms);
  const measured = stages.filter((of) => !of.prepares && span(of) >= 0);
  const candidates = measured.length > 0 ? measured : stages.filter((of) => span(of) >= 0);
  return candidates.reduce<Stage | null>((best, of) => (best === null || span(of) > span(best) ? of : best), null)?.number ?? null;
}

/** What ended stages and jobs that failed; what ended the run itself stands at its head already. */
function failures(run: RunDetail): string[] {
  return run.stages.flatMap((stage) => {
    const of = stage.jobs.filter((job) => job.error !== null && stage.jobs.length > 1).map((job) => `${stage.id}, ${job.name}: ${job.error}`);
    const own = stage.error !== null && stage.error !== run.error && of.length === 0 ? [`${stage.id}: ${stage.error}`] : [];
    return [...own, ...of];
  });
}

function Body(props: { run: RunDetail; figures: Figures | null; log: LogLine[]; round: number; isLive: boolean }) {
  const { run, figures, log, round, isLive } = props;
  const { query } = useAddress();
  const asked = query.get("stage");
  const chosen = asked === "all" ? null : asked !== null ? Number(asked) : mainStage(run.stages);
  const stage = run.stages.find((of) => of.number === chosen) ?? null;
  const results = useAsked<Matrix>(`/matrix?runs=${encodeURIComponent(run.id)}`, isLive ? 5000 : 0);
  // Figures are asked for anew when the run has ended, its results with them.
  useEffect(() => { if (results.data !== null) results.reload(); }, [figures]);
  const choose = (number: number | null) => setQuery({ stage: number === null ? "all" : String(number) });
  return (
    <>
      <Section id="stages" title="Stages" aside={
        <Select class="inline" label="Show" value={chosen === null ? "all" : String(chosen)} onChange={(value) => setQuery({ stage: value })}
          options={[["all", "all stages"], ...run.stages.map((of): [string, string] => [String(of.number), `${of.number}. ${of.name}`])]} />
      }>
        {run.stages.length === 0 ? <Empty>The stages are not known yet.</Empty> : <StageBars run={run} chosen={chosen} onChoose={choose} />}
        <Lines class="failure" lines={failures(run)} />
      </Section>
      {figures ? (
        <>
          <Tiles run={run} stage={stage} figures={figures} round={round} results={results.data?.rows ?? []} />
          <TimeCharts stage={stage} figures={figures} round={round} isLive={isLive} />
          <Results id={run.id} asked={results} stage={chosen} isLive={isLive} />
          <HostRows rows={figures.hosts.filter((of) => chosen === null || of.stage === chosen)} stages={run.stages} />
          <AgentRows rows={figures.agents.filter((of) => chosen === null || of.stage === chosen)} stages={run.stages} isLive={isLive} />
        </>
      ) : <p class="empty" role="status">Loading the figures…</p>}
      <Events log={log} />
      <About run={run} />
      <Files run={run} />
    </>
  );
}

/** What each row came to, by the same figures as the matrix. */
function Results(props: { id: string; asked: Asked<Matrix>; stage: number | null; isLive: boolean }) {
  return (
    <Section id="results" title={props.isLive ? "Results so far" : "Results"} aside={<a href={`#/matrix?runs=${encodeURIComponent(props.id)}`}>As a matrix</a>}>
      <Loaded asked={props.asked}>
        {({ rows, missing }) => {
          const shown = rows.filter((row) => props.stage === null || row.stage === props.stage);
          if (shown.length === 0) return <Empty>{missing[0] ? `No figures: ${missing[0].why}.` : "No figures of this stage yet."}</Empty>;
          return (
            <Table label="Results by job and operation" test="results">
              <thead><tr><th scope="col">Job and operation</th>{COLUMNS.map((column) => <th scope="col" key={column.id} title={column.title}>{column.name}</th>)}</tr></thead>
              <tbody>
                {shown.map((row, index) => (
                  <tr key={index}>
                    <th scope="row">{props.stage === null ? `${row.stage_id}: ` : ""}{row.job_name} · {row.kind}{row.op_name.toUpperCase() !== row.kind ? ` (${row.op_name})` : ""}</th>
                    {COLUMNS.map((column) => <td key={column.id} class={column.id === "failed" && row.ops_failed_count > 0 ? "bad" : ""}>{column.text(row)}</td>)}
                  </tr>
                ))}
              </tbody>
            </Table>
          );
        }}
      </Loaded>
    </Section>
  );
}

function Events({ log }: { log: LogLine[] }) {
  const box = useRef<HTMLDivElement>(null);
  const [isFollowing, setFollowing] = useState(true);
  useEffect(() => {
    if (isFollowing && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [log, isFollowing]);
  const shown = useMemo(() => log, [log]);
  return (
    <Section id="events" title="Events">
      {shown.length === 0 ? <Empty>Nothing has happened yet.</Empty> : (
        <div class="log" ref={box} role="log" aria-label="Events" aria-live="off" tabIndex={0}
          onScroll={(event) => setFollowing(event.currentTarget.scrollTop + event.currentTarget.clientHeight > event.currentTarget.scrollHeight - 30)}>
          {shown.map((line) => (
            <div key={line.seq} class={line.level}>
              <time>{instant(line.at_ms)}</time> {line.level === "info" ? "" : `${line.level}: `}{line.agent ? `${line.agent}: ` : ""}{line.text}
            </div>
          ))}
        </div>
      )}
    </Section>
  );
}

function About({ run }: { run: RunDetail }) {
  const [text, setText] = useState<{ text: string; lowered: string | null } | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const show = () => {
    if (text !== null) return;
    api<{ text: string; lowered: string | null }>(`${runPath(run.id)}/workload`).then(setText, (failed: unknown) => setError(failed as ApiError));
  };
  return (
    <Section id="about" title="The run">
      <dl class="facts">
        <dt>targets</dt><dd>{run.targets.join("; ") || "–"}</dd>
        <dt>agents</dt><dd>{run.agents.join(", ") || "this machine"}</dd>
        {run.touches.length > 0 ? <><dt>writes in</dt><dd>{run.touches.join(", ")}</dd></> : null}
        {run.resubmitted_from ? <><dt>again</dt><dd>as <a href={`#/runs/${encodeURIComponent(run.resubmitted_from)}`}>{run.resubmitted_from}</a></dd></> : null}
        {run.states.map((of, index) => <Fragment key={index}><dt>{of.state}</dt><dd>{instant(of.at_ms)}</dd></Fragment>)}
      </dl>
      <Lines class="note" lines={run.notes} />
      <Corrections corrections={run.corrections ?? []} />
      {run.has_workload ? (
        <details onToggle={show}>
          <summary>The workload as it was given, and as it is understood</summary>
          <ErrorBox error={error} />
          {text === null ? null : <><h3>As it was given (without secrets)</h3><pre tabIndex={0}>{text.text}</pre>{text.lowered ? <><h3>As it is understood</h3><pre tabIndex={0}>{text.lowered}</pre></> : null}</>}
        </details>
      ) : null}
      <details>
        <summary>States of stages and jobs</summary>
        <Table label="States of stages and jobs">
          <thead><tr><th scope="col">Stage, job</th><th scope="col" class="text">State</th><th scope="col" class="text">States with times</th><th scope="col">Wait after it</th><th scope="col" class="text">Work</th><th scope="col" class="text">Agents</th></tr></thead>
          <tbody>
            {run.stages.map((stage) => (
              <Fragment key={stage.number}>
                <tr>
                  <th scope="row">{stage.id}</th><td class="text"><State state={stage.state} /></td>
                  <td class="text wrap">{stage.states.map((of) => `${of.state} ${instant(of.at_ms)}`).join("; ")}{stage.error ? ` (${stage.error})` : ""}</td>
                  <td>{duration(stage.delay_ns)}</td><td /><td />
                </tr>
                {stage.jobs.map((job) => (
                  <tr key={`${stage.number}/${job.number}`} class="part">
                    <th scope="row">{job.name}</th><td class="text"><State state={job.state} /></td><td class="text wrap">{job.error ?? "–"}</td><td />
                    <td class="text wrap">{job.work}</td><td class="text wrap">{job.agents.join(", ") || "–"}</td>
                  </tr>
                ))}
              </Fragment>
            ))}
          </tbody>
        </Table>
      </details>
    </Section>
  );
}

function Files({ run }: { run: RunDetail }) {
  const files = run.files ?? [];
  return (
    <Section id="files" title="Files" aside={files.length > 0 ? <Download path={`${runPath(run.id)}/everything.tar`}>Download everything</Download> : undefined}>
      {files.length === 0 ? <Empty>No files yet.</Empty> : (
        <Table label="Files of the run">
          <thead><tr><th scope="col">File</th><th scope="col" class="text">Holds</th><th scope="col">Size</th></tr></thead>
          <tbody>
            {files.map((file) => (
              <tr key={file.name}>
                <th scope="row"><a href={`/api/v1${runPath(run.id)}/files/${encodeURIComponent(file.name)}`} download>{file.name}</a></th>
                <td class="text">{file.about ?? "–"}</td><td>{bytes(file.size_bytes)}</td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
    </Section>
  );
}
