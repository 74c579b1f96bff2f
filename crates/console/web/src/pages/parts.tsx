// What several pages show of a run.
import { MatrixRow, Run, fileUrl, now, post, runPath } from "../api";
import { byteRate, bytes, count, duration, elapsed, instant, opRate, percent } from "../format";
import { State, Table, tell } from "../ui";

export const runHref = (id: string): string => `#/runs/${encodeURIComponent(id)}`;

export function durationOf(run: Run): string {
  if (run.began_at_ms === null) return "–";
  return elapsed((run.ended_at_ms ?? now()) - run.began_at_ms);
}

export const hasEnded = (state: string): boolean => state !== "queued" && state !== "running";

/** Cancels runs one after the other; says how many could not be. */
export async function cancelAll(ids: string[]): Promise<void> {
  let failed = 0;
  let why = "";
  for (const id of ids) {
    try {
      await post(`${runPath(id)}/cancel`);
    } catch (error) {
      failed += 1;
      why = error instanceof Error ? error.message : String(error);
    }
  }
  const done = ids.length - failed;
  tell(failed === 0 ? `Cancelled ${ids.length === 1 ? ids[0] : `${done} runs`}` : `Cancelled ${done} of ${ids.length} runs: ${why}`, failed > 0);
}

export async function resubmitAll(ids: string[]): Promise<string[]> {
  const made: string[] = [];
  let failed: string | null = null;
  for (const id of ids) {
    try {
      made.push((await post<{ id: string }>(`${runPath(id)}/resubmit`)).id);
    } catch (error) {
      failed = `${id}: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
  tell(failed ?? `Submitted again as ${made.join(", ")}`, failed !== null);
  return made;
}

/** The short table of runs that ended, on the overview. */
export function RunTable({ runs, label }: { runs: Run[]; label: string }) {
  return (
    <Table label={label}>
      <thead><tr><th scope="col">Run</th><th scope="col" class="text">Name</th><th scope="col" class="text">State</th><th scope="col" class="text">Operations</th><th scope="col">Began</th><th scope="col">Took</th><th scope="col">Failed</th></tr></thead>
      <tbody>
        {runs.map((run) => (
          <tr key={run.id}>
            <th scope="row"><a href={runHref(run.id)}>{run.id}</a></th>
            <td class="text name"><a href={runHref(run.id)}>{run.name}</a></td>
            <td class="text"><State state={run.state} /></td>
            <td class="text">{run.ops.join(", ") || "–"}</td>
            <td>{instant(run.began_at_ms)}</td>
            <td>{durationOf(run)}</td>
            <td class={run.ops_failed_count ? "bad" : ""}>{count(run.ops_failed_count)}</td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

export interface Column { id: string; name: string; group: "counts" | "times" | "rates" | "other"; text: (row: MatrixRow) => string; value: (row: MatrixRow) => number | null; title?: string }

const latency = (key: string, name: string): Column => ({
  id: key, name, group: "times", text: (row) => duration(row.latency_ns[key]), value: (row) => row.latency_ns[key] ?? null,
});

/** The metrics of the matrix, under our names; COSBench's stand in the titles. */
export const COLUMNS: Column[] = [
  { id: "ops", name: "Operations", group: "counts", title: "Op-Count", text: (row) => count(row.ops_count), value: (row) => row.ops_count },
  { id: "bytes", name: "Bytes", group: "counts", title: "Byte-Count", text: (row) => bytes(row.bytes_count), value: (row) => row.bytes_count },
  { id: "res", name: "Mean latency", group: "times", title: "Avg-ResTime", text: (row) => duration(row.res_ns_mean), value: (row) => row.res_ns_mean },
  { id: "proc", name: "Mean to first byte", group: "times", title: "Avg-ProcTime", text: (row) => duration(row.proc_ns_mean), value: (row) => row.proc_ns_mean },
  latency("p50", "p50"), latency("p60", "p60"), latency("p80", "p80"), latency("p90", "p90"), latency("p95", "p95"), latency("p99", "p99"), latency("p99_9", "p99.9"), latency("p100", "Longest"),
  { id: "rate", name: "Op rate", group: "rates", title: "Throughput (op/s)", text: (row) => opRate(row.ops_per_sec), value: (row) => row.ops_per_sec },
  { id: "throughput", name: "Throughput", group: "rates", title: "Bandwidth", text: (row) => byteRate(row.bytes_per_sec), value: (row) => row.bytes_per_sec },
  { id: "success", name: "Success", group: "rates", title: "Succ-Ratio", text: (row) => percent(row.success_ratio), value: (row) => row.success_ratio },
  { id: "failed", name: "Failed", group: "counts", text: (row) => count(row.ops_failed_count), value: (row) => row.ops_failed_count },
  { id: "workers", name: "Workers", group: "other", title: "Worker-Count", text: (row) => count(row.workers_count), value: (row) => row.workers_count },
];

export function Download(props: { path: string; children: string; primary?: boolean }) {
  return <a class={`button ${props.primary ? "primary" : ""}`} href={fileUrl(props.path)} download>{props.children}</a>;
}
