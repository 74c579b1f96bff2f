// Stages and their jobs as bars of time.
import { RunDetail, Stage, now } from "../api";
import { clock, count, duration, elapsed, plural } from "../format";
import { useTicking } from "../hooks";
import { State } from "../ui";
import { hasEnded } from "./parts";

export function StageBars(props: { run: RunDetail; chosen: number | null; onChoose: (stage: number | null) => void }) {
  const { run } = props;
  useTicking(1000, !hasEnded(run.state));
  const began = run.began_at_ms ?? run.submitted_at_ms;
  const planned = run.stages.reduce((sum, of) => sum + (of.began_at_ms === null ? (of.planned_ns ?? 0) / 1e6 : 0), 0);
  const running = run.stages.find((of) => of.began_at_ms !== null && of.ended_at_ms === null);
  const expected = running ? (running.began_at_ms ?? 0) + (running.planned_ns ?? 0) / 1e6 : 0;
  const last = hasEnded(run.state) ? run.ended_at_ms ?? now() : Math.max(now(), expected) + planned;
  const span = Math.max(1000, last - began);
  let next = Math.max(now(), expected);
  const percent = (ms: number) => `${Math.min(100, Math.max(0, ((ms - began) / span) * 100)).toFixed(2)}%`;
  const width = (from: number, to: number) => `max(3px, ${Math.min(100, Math.max(0, ((to - from) / span) * 100)).toFixed(2)}%)`;
  return (
    <div class="bars">
      {run.stages.map((stage) => {
        const from = stage.began_at_ms ?? next;
        const to = stage.ended_at_ms ?? (stage.began_at_ms === null ? next + (stage.planned_ns ?? 0) / 1e6 : now());
        if (stage.began_at_ms === null) next = to;
        const isChosen = props.chosen === stage.number;
        return (
          <div key={stage.number} class={`stage ${isChosen ? "chosen" : ""}`}>
            <button type="button" class="stage-name" aria-pressed={isChosen} onClick={() => props.onChoose(stage.number)}>
              <b>{stage.number}. {stage.name}</b> <State state={stage.state} />
            </button>
            <div class="track">
              {stage.began_at_ms === null && hasEnded(run.state) ? <span class="caption">never began</span> : (
                <span class={`span ${stage.state} ${stage.prepares ? "prepares" : ""}`} style={{ left: percent(from), width: width(from, to) }} title={words(stage)} />
              )}
            </div>
            <span class="took">{stage.began_at_ms === null ? (stage.planned_ns ? `${duration(stage.planned_ns)} planned` : "–") : elapsed(to - from)}</span>
            {isChosen || stage.jobs.length > 1 ? stage.jobs.map((job) => (
              <div key={job.number} class="job">
                <span class="job-name">{job.name} · {plural(job.workers_count, "worker")}</span>
                <div class="track">
                  {job.began_at_ms === null ? null : (
                    <span class={`span thin ${job.state}`} style={{ left: percent(job.began_at_ms), width: width(job.began_at_ms, job.ended_at_ms ?? now()) }} />
                  )}
                </div>
                <span class="took">{job.ops_count === null ? "–" : `${count(job.ops_count)} ops`}</span>
                <span class="caption work">{job.work}{job.agents.length > 0 ? ` · on ${job.agents.join(", ")}` : ""}{job.ops_failed_count ? <b class="bad">{` · ${count(job.ops_failed_count)} failed`}</b> : null}{job.error ? <b class="bad">{` · ${job.error}`}</b> : null}</span>
              </div>
            )) : null}
            {stage.error ? <p class="box failure">{stage.error}</p> : null}
          </div>
        );
      })}
      <div class="stage scale" aria-hidden="true"><span /><div class="track-ends"><span>{clock(began)}</span><span>{clock(began + span / 2)}</span><span>{clock(last)}</span></div><span /></div>
    </div>
  );
}

function words(stage: Stage): string {
  const times = stage.began_at_ms === null ? "not begun" : `began ${clock(stage.began_at_ms)}${stage.ended_at_ms === null ? "" : `, ended ${clock(stage.ended_at_ms)}`}`;
  return `${stage.name}: ${stage.state}, ${times}`;
}
