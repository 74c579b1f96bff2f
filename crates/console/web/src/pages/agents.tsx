// The agents: machines that put load on a target.
import { Agent, now, session } from "../api";
import { elapsed, number, offset } from "../format";
import { useAsked, useStore } from "../hooks";
import { Empty, Loaded, Page, State, Table } from "../ui";
import { runHref } from "./parts";

export function AgentsPage() {
  const asked = useAsked<{ agents: Agent[] }>("/agents", 3000);
  const who = useStore(session);
  return (
    <Page title="Agents" intro={who?.features.fleet ? "Machines that put load on targets. COSBench calls them drivers." : "No fleet is configured: runs are carried out by the controller itself."}>
      <Loaded asked={asked}>{({ agents }) => <AgentTable agents={agents} />}</Loaded>
    </Page>
  );
}

/** Clocks that differ by more than this are pointed out. */
const OFFSET_MS_MAX = 50;

export function AgentTable({ agents }: { agents: Agent[] }) {
  if (agents.length === 0) return <Empty>No agent has joined. Start one with <code>plimsoll agent --join TOKEN</code> on a machine that is to put load on a target.</Empty>;
  return (
    <Table label="Agents" test="agents">
      <thead><tr><th scope="col">Agent</th><th scope="col" class="text">Address</th><th scope="col" class="text">State</th><th scope="col" class="text">Run</th><th scope="col">Clock offset</th><th scope="col">CPU</th><th scope="col">Cores</th><th scope="col" class="text">Version</th><th scope="col">Last heard of</th></tr></thead>
      <tbody>
        {agents.map((agent) => (
          <tr key={agent.name}>
            <th scope="row">{agent.name}</th>
            <td class="text">{agent.address ?? "this machine"}</td>
            <td class="text"><State state={agent.state} /></td>
            <td class="text">{agent.run ? <a href={runHref(agent.run)}>{agent.run}</a> : "–"}</td>
            <td class={Math.abs(agent.clock_offset_ms ?? 0) > OFFSET_MS_MAX ? "bad" : ""}>{offset(agent.clock_offset_ms)}</td>
            <td class={(agent.cpu_percent ?? 0) > 90 ? "bad" : ""}>{agent.cpu_percent === null ? "–" : `${number(agent.cpu_percent)} %`}</td>
            <td>{agent.cores_count ?? "–"}</td>
            <td class="text">{agent.version ?? "–"}</td>
            <td>{agent.seen_at_ms === null ? "–" : `${elapsed(Math.max(0, now() - agent.seen_at_ms))} ago`}</td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
