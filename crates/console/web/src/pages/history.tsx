// All runs, by page, with search; several can be chosen for the matrix, a comparison, another run.
import { useEffect, useState } from "preact/hooks";
import { Run } from "../api";
import { bytes, count, instant, plural } from "../format";
import { go, setQuery, useAddress, useAsked } from "../hooks";
import { Check, Empty, Loaded, Page, Select, SortHead, State, Table, TextField, useConfirm } from "../ui";
import { cancelAll, durationOf, hasEnded, resubmitAll, runHref } from "./parts";

const LIMIT = 50;

export function HistoryPage() {
  const { query } = useAddress();
  const state = query.get("state") ?? "";
  const kind = query.get("kind") ?? "";
  const sort = query.get("sort") ?? "-submitted";
  const search = query.get("search") ?? "";
  const [typed, setTyped] = useState(search);
  const [cursors, setCursors] = useState<string[]>([]);
  const [chosen, setChosen] = useState<Map<string, Run>>(new Map());
  const [dialog, confirm] = useConfirm();
  const filter = new URLSearchParams({ search, state, kind, sort });
  // Another filter begins at the first page.
  useEffect(() => setCursors([]), [filter.toString()]);
  useEffect(() => {
    const timer = setTimeout(() => { if (typed !== search) setQuery({ search: typed }); }, 250);
    return () => clearTimeout(timer);
  }, [typed]);
  const cursor = cursors[cursors.length - 1] ?? "";
  const asked = useAsked<{ runs: Run[]; next: string | null; total_count: number }>(`/runs?${filter}&limit=${LIMIT}&cursor=${encodeURIComponent(cursor)}`, cursor === "" ? 5000 : 0, true);
  const choose = (runs: Run[], on: boolean) => {
    const next = new Map(chosen);
    for (const run of runs) {
      if (on) next.set(run.id, run);
      else next.delete(run.id);
    }
    setChosen(next);
  };
  const ids = [...chosen.keys()];
  const going = [...chosen.values()].filter((run) => !hasEnded(run.state)).map((run) => run.id);
  const list = ids.map(encodeURIComponent).join(",");
  const head = (name: string, by: string, of = "") => <SortHead class={of} name={name} by={by} sort={sort} onSort={(sort) => setQuery({ sort })} />;
  return (
    <Page title="History" intro="All runs that this controller knows, with those that go on.">
      {dialog}
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <TextField label="Search" type="search" value={typed} onChange={setTyped} hint="in id, name, user and operations" />
        <Select label="State" value={state} onChange={(state) => setQuery({ state })}
          options={[["", "any"], "running", "queued", "finished", "failed", "terminated", "cancelled"]} />
        <Select label="Kind" value={kind} onChange={(kind) => setQuery({ kind })} options={[["", "any"], ["cosbench", "COSBench"], ["plimsoll", "plimsoll"], ["fio", "fio"], ["other", "other"]]} />
      </form>
      <div class="actions" role="group" aria-label="What to do with the chosen runs" data-test="chosen">
        <span role="status">{ids.length === 0 ? "Choose runs to set them side by side" : `${count(ids.length)} chosen`}</span>
        <button type="button" disabled={ids.length === 0} onClick={() => go(`#/matrix?runs=${list}`)}>Matrix</button>
        <button type="button" disabled={ids.length < 2} onClick={() => go(`#/compare?runs=${list}`)}>Compare</button>
        <button type="button" disabled={ids.length === 0} onClick={() => resubmitAll(ids).then(() => { setChosen(new Map()); asked.reload(); })}>Submit again</button>
        {going.length > 0 ? <button type="button" class="danger" onClick={() => confirm(`Cancel ${plural(going.length, "run")}?`, "Cancel them", () => void cancelAll(going).then(asked.reload))}>Cancel</button> : null}
        {ids.length > 0 ? <button type="button" onClick={() => setChosen(new Map())}>Choose none</button> : null}
      </div>
      <Loaded asked={asked}>
        {({ runs, next, total_count }) => runs.length === 0 ? (
          <Empty>{search || state || kind ? "No run matches." : <>No runs yet. <a href="#/submit">Submit a workload</a></>}</Empty>
        ) : (
          <>
            <Table label="Runs" test="history">
              <thead>
                <tr>
                  <th scope="col" class="pick"><Check isHidden label="Choose all on this page" checked={runs.every((run) => chosen.has(run.id))} onChange={(on) => choose(runs, on)} /></th>
                  <th scope="col" class="text">Run</th>{head("Name", "name", "text")}{head("State", "state", "text")}<th scope="col" class="text">Kind</th>{head("Submitted", "submitted")}{head("Took", "duration")}
                  <th scope="col" class="text">Operations</th><th scope="col">Count</th><th scope="col">Failed</th><th scope="col">Bytes</th><th scope="col" class="text">User</th>
                </tr>
              </thead>
              <tbody>
                {runs.map((run) => (
                  <tr key={run.id} class={chosen.has(run.id) ? "chosen" : ""}>
                    <td class="pick"><Check isHidden label={`Choose ${run.id}`} checked={chosen.has(run.id)} onChange={(on) => choose([run], on)} /></td>
                    <th scope="row" class="text"><a href={runHref(run.id)}>{run.id}</a></th>
                    <td class="text name"><a href={runHref(run.id)}>{run.name}</a></td>
                    <td class="text"><State state={run.state} /></td>
                    <td class="text">{run.kind}</td>
                    <td>{instant(run.submitted_at_ms)}</td>
                    <td>{durationOf(run)}</td>
                    <td class="text">{run.ops.join(", ") || "–"}</td>
                    <td>{count(run.ops_count)}</td>
                    <td class={run.ops_failed_count ? "bad" : ""}>{count(run.ops_failed_count)}</td>
                    <td>{bytes(run.bytes_count)}</td>
                    <td class="text">{run.user ?? "–"}</td>
                  </tr>
                ))}
              </tbody>
            </Table>
            <nav class="actions" aria-label="Pages of the history">
              <button type="button" disabled={cursors.length === 0} onClick={() => setCursors(cursors.slice(0, -1))}>Previous page</button>
              <button type="button" disabled={next === null} onClick={() => next !== null && setCursors([...cursors, next])}>Next page</button>
              <span class="caption" role="status">{count(cursors.length * LIMIT + 1)} to {count(cursors.length * LIMIT + runs.length)} of {plural(total_count, "run")}</span>
            </nav>
          </>
        )}
      </Loaded>
    </Page>
  );
}
