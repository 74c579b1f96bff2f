// What goes on: the queue, the agents, what ended last.
import { useState } from "preact/hooks";
import { Overview, Run, post, runPath, session } from "../api";
import { count, instant } from "../format";
import { useAsked, useStore } from "../hooks";
import { Check, Empty, Loaded, Page, Progress, Section, State, Table, attempt, useConfirm } from "../ui";
import { AgentTable } from "./agents";
import { RunTable, cancelAll, durationOf, runHref } from "./parts";

export function OverviewPage() {
  const asked = useAsked<Overview>("/overview", 3000);
  const who = useStore(session);
  return (
    <Page title="Overview" intro={who?.name ? `${who.name}${who.url ? ` · ${who.url}` : ""} · runs ${who.concurrency} at a time` : undefined}
      actions={<a class="button primary" href="#/submit">Submit a workload</a>}>
      <Loaded asked={asked}>
        {(data) => (
          <>
            <dl class="tiles">
              {["running", "queued", "finished", "failed", "terminated", "cancelled"].map((state) => (
                <div key={state} class={state === "failed" || state === "terminated" ? (data.counts[state] ? "bad" : "") : ""}>
                  <dt>{state}</dt>
                  <dd>{state === "running" || state === "queued" ? count(data.counts[state] ?? 0) : <a href={`#/history?state=${state}`}>{count(data.counts[state] ?? 0)}</a>}</dd>
                </div>
              ))}
            </dl>
            <Queue active={data.active} reload={asked.reload} />
            <Section id="agents" title="Agents"><AgentTable agents={data.agents} /></Section>
            <Section id="recent" title="Ended last" aside={<a href="#/history">All runs</a>}>
              {data.recent.length === 0 ? <Empty>No run has ended yet.</Empty> : <RunTable runs={data.recent} label="Runs that ended last" />}
            </Section>
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** Runs that go on or wait, in the order in which they will be carried out. */
function Queue({ active, reload }: { active: Run[]; reload: () => void }) {
  const [chosen, setChosen] = useState<string[]>([]);
  const [place, setPlace] = useState("");
  const [dialog, confirm] = useConfirm();
  const queued = active.filter((run) => run.state === "queued");
  const there = chosen.filter((id) => active.some((run) => run.id === id));
  const isQueued = (id: string) => queued.some((run) => run.id === id);
  const movable = there.filter(isQueued);
  const move = (id: string, body: object) => post(`${runPath(id)}/move`, body);
  const moveOne = (id: string, body: object, where: string) =>
    attempt(async () => {
      await move(id, body);
      reload();
      return `Moved ${id} ${where}`;
    });
  const moveChosen = () =>
    attempt(async () => {
      const [how, to] = place.split(" ", 2);
      const ordered = queued.map((run) => run.id).filter((id) => movable.includes(id) && id !== to);
      // Each right before the place keeps their order; after it, the last one goes first.
      if (how === "first" || how === "after") ordered.reverse();
      for (const id of ordered) await move(id, how === "first" || how === "last" ? { to: how } : { [how ?? ""]: to });
      reload();
      setChosen([]);
      return `Moved ${ordered.join(", ")}`;
    });
  const cancel = (ids: string[]) =>
    confirm(`Cancel ${ids.length === 1 ? `run ${ids[0]}` : `${ids.length} runs`}? What was measured so far is kept.`, ids.length === 1 ? "Cancel the run" : "Cancel the runs", () => {
      void cancelAll(ids).then(() => { setChosen([]); reload(); });
    });
  return (
    <Section id="queue" title="Running and queued" aside={active.length > 1 ? <button type="button" onClick={() => cancel(active.map((run) => run.id))}>Cancel all</button> : null}>
      {dialog}
      {active.length === 0 ? <Empty>Nothing runs and nothing waits. <a href="#/submit">Submit a workload</a> or <a href="#/make">make one</a>.</Empty> : (
        <>
          <Table label="Running and queued runs" test="queue">
            <thead><tr><th scope="col" class="pick"><span class="sr">Choose</span></th><th scope="col" class="text">Run</th><th scope="col" class="text">Name</th><th scope="col" class="text">State</th><th scope="col" class="text">Stage</th><th scope="col">Submitted</th><th scope="col">Runs for</th><th scope="col">Order</th><th scope="col"><span class="sr">Actions</span></th></tr></thead>
            <tbody>
              {active.map((run) => {
                const index = queued.findIndex((of) => of.id === run.id);
                const before = queued[index - 1];
                const after = queued[index + 1];
                return (
                  <tr key={run.id}>
                    <td class="pick"><Check isHidden label={`Choose ${run.id}`} checked={there.includes(run.id)} onChange={(on) => setChosen(on ? [...there, run.id] : there.filter((id) => id !== run.id))} /></td>
                    <th scope="row" class="text"><a href={runHref(run.id)}>{run.id}</a></th>
                    <td class="text name"><a href={runHref(run.id)}>{run.name}</a></td>
                    <td class="text"><State state={run.state} /></td>
                    <td class="text">{run.stage ? `${run.stage.name} (${run.stage.number} of ${run.stages_count})` : "–"} <Progress value={run.progress} label={`Progress of ${run.id}`} /></td>
                    <td>{instant(run.submitted_at_ms)}</td>
                    <td>{durationOf(run)}</td>
                    <td class="order">
                      {index < 0 ? "–" : (
                        <>
                          {run.order ?? index + 1}{" "}
                          <button type="button" aria-label={`Move ${run.id} up`} disabled={!before} onClick={() => before && moveOne(run.id, { before: before.id }, "up")}>↑</button>
                          <button type="button" aria-label={`Move ${run.id} down`} disabled={!after} onClick={() => after && moveOne(run.id, { after: after.id }, "down")}>↓</button>
                        </>
                      )}
                    </td>
                    <td><button type="button" aria-label={`Cancel ${run.id}`} onClick={() => cancel([run.id])}>Cancel</button></td>
                  </tr>
                );
              })}
            </tbody>
          </Table>
          {there.length > 0 ? (
            <div class="actions" role="group" aria-label="What to do with the chosen runs">
              <span>{there.length} chosen</span>
              {movable.length > 0 ? (
                <>
                  <select aria-label="Where to move the chosen runs" value={place} onChange={(event) => setPlace(event.currentTarget.value)}>
                    <option value="">Move to…</option>
                    <option value="first">the front of the queue</option>
                    <option value="last">the end of the queue</option>
                    {queued.filter((run) => !movable.includes(run.id)).flatMap((run) => [
                      <option key={`b${run.id}`} value={`before ${run.id}`}>before {run.id} {run.name}</option>,
                      <option key={`a${run.id}`} value={`after ${run.id}`}>after {run.id} {run.name}</option>,
                    ])}
                  </select>
                  <button type="button" disabled={place === ""} onClick={moveChosen}>Move</button>
                </>
              ) : null}
              <button type="button" class="danger" onClick={() => cancel(there)}>Cancel them</button>
            </div>
          ) : null}
        </>
      )}
    </Section>
  );
}
