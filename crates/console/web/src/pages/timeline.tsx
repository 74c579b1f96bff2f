// The course of a run as one table, and as CSV.
import { useEffect, useState } from "preact/hooks";
import { RunDetail, TimelineRow, runPath } from "../api";
import { byteRate, bytes, count, duration, instant, opRate, percent, plural } from "../format";
import { setQuery, useAddress, useAsked } from "../hooks";
import { Empty, Loaded, Page, Select, Table } from "../ui";
import { Download, hasEnded, runHref } from "./parts";

const LIMIT = 200;

export function TimelinePage({ id }: { id: string }) {
  const { query } = useAddress();
  const stage = query.get("stage") ?? "";
  const [cursors, setCursors] = useState<string[]>([]);
  useEffect(() => setCursors([]), [stage]);
  const run = useAsked<RunDetail>(runPath(id));
  const cursor = cursors[cursors.length - 1] ?? "";
  const isLive = run.data !== null && !hasEnded(run.data.state);
  const filter = stage === "" ? "" : `&stage=${encodeURIComponent(stage)}`;
  const asked = useAsked<{ rows: TimelineRow[]; next: string | null; total_count: number }>(`${runPath(id)}/timeline?limit=${LIMIT}${filter}&cursor=${encodeURIComponent(cursor)}`, isLive ? 5000 : 0, true);
  const csv = `${runPath(id)}/timeline.csv${stage === "" ? "" : `?stage=${encodeURIComponent(stage)}`}`;
  return (
    <Page title={`Timeline of ${run.data?.name ?? id}`} intro={<><a href={runHref(id)}>Back to run {id}</a></>} actions={<Download path={csv}>Download as CSV</Download>}>
      <div class="filters">
        <Select label="Stage" value={stage} onChange={(stage) => setQuery({ stage })}
          options={[["", "all stages"], ...(run.data?.stages ?? []).map((of): [string, string] => [String(of.number), `${of.number}. ${of.name}`])]} />
      </div>
      <Loaded asked={asked}>
        {({ rows, next, total_count }) => rows.length === 0 ? <Empty>Nothing was sampled{stage === "" ? "" : " in this stage"} yet.</Empty> : (
          <>
            <Table label="Timeline" test="timeline">
              <thead><tr><th scope="col">Time</th><th scope="col" class="text">Stage</th><th scope="col" class="text">Job</th><th scope="col" class="text">Operation</th><th scope="col">Operations</th><th scope="col">Bytes</th><th scope="col">Mean latency</th><th scope="col">Mean to first byte</th><th scope="col">Op rate</th><th scope="col">Throughput</th><th scope="col">Success</th></tr></thead>
              <tbody>
                {rows.map((row, index) => (
                  <tr key={index}>
                    <th scope="row">{instant(row.at_ms)}</th><td class="text">{row.stage_id}</td><td class="text">{row.job_name}</td><td class="text">{row.kind}</td>
                    <td>{count(row.ops_count)}</td><td>{bytes(row.bytes_count)}</td><td>{duration(row.res_ns_mean)}</td><td>{duration(row.proc_ns_mean)}</td>
                    <td>{opRate(row.ops_per_sec)}</td><td>{byteRate(row.bytes_per_sec)}</td><td class={row.success_ratio !== null && row.success_ratio < 1 ? "bad" : ""}>{percent(row.success_ratio)}</td>
                  </tr>
                ))}
              </tbody>
            </Table>
            <nav class="actions" aria-label="Pages of the timeline">
              <button type="button" disabled={cursors.length === 0} onClick={() => setCursors(cursors.slice(0, -1))}>Previous page</button>
              <button type="button" disabled={next === null} onClick={() => next !== null && setCursors([...cursors, next])}>Next page</button>
              <span class="caption" role="status">{count(cursors.length * LIMIT + 1)} to {count(cursors.length * LIMIT + rows.length)} of {plural(total_count, "row")}</span>
            </nav>
          </>
        )}
      </Loaded>
    </Page>
  );
}
