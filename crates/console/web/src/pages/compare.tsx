// Runs before against runs after, by the same engine as `plimsoll compare`.
import { Compare, CompareMetric } from "../api";
import { byteRate, count, duration, number, opRate, percent } from "../format";
import { setQuery, useAddress, useAsked } from "../hooks";
import { Empty, Loaded, Page, Section, Table } from "../ui";
import { runHref } from "./parts";

const split = (text: string | null): string[] => (text ?? "").split(",").filter((id) => id !== "");

export function ComparePage() {
  const { query } = useAddress();
  const runs = split(query.get("runs"));
  // Without a choice: the oldest is before, the others are after.
  const oldest = [...runs].sort((a, b) => a.localeCompare(b, "en", { numeric: true }))[0];
  const before = (query.get("before") === null ? runs.filter((id) => id === oldest) : split(query.get("before"))).filter((id) => runs.includes(id));
  const after = (query.get("after") === null ? runs.filter((id) => id !== oldest) : split(query.get("after"))).filter((id) => runs.includes(id));
  const isReady = before.length > 0 && after.length > 0;
  const list = (ids: string[]) => ids.map(encodeURIComponent).join(",");
  const asked = useAsked<Compare>(isReady ? `/compare?before=${list(before)}&after=${list(after)}` : null);
  if (runs.length < 2) {
    return <Page title="Compare"><Empty>Fewer than two runs are chosen. <a href="#/history">Choose some in the history</a>.</Empty></Page>;
  }
  const put = (id: string, side: string) => {
    const without = (ids: string[]) => ids.filter((of) => of !== id);
    setQuery({
      before: (side === "before" ? [...without(before), id] : without(before)).join(",") || "none",
      after: (side === "after" ? [...without(after), id] : without(after)).join(",") || "none",
    });
  };
  return (
    <Page title="Compare" intro="What changed from the runs before to the runs after. With three or more runs a side there are verdicts." actions={<a class="button" href={`#/matrix?runs=${list(runs)}`}>Matrix</a>}>
      <div class="sides">
        {runs.map((id) => (
          <fieldset key={id} class="checks">
            <legend><a href={runHref(id)}>{id}</a></legend>
            {["before", "after", "left out"].map((side) => (
              <label key={side} class="check"><input type="radio" name={`side-${id}`} checked={side === (before.includes(id) ? "before" : after.includes(id) ? "after" : "left out")} onChange={() => put(id, side)} /><span>{side}</span></label>
            ))}
          </fieldset>
        ))}
        <button type="button" onClick={() => setQuery({ before: after.join(",") || "none", after: before.join(",") || "none" })}>Swap the sides</button>
      </div>
      {!isReady ? <Empty>At least one run must be before and one after.</Empty> : (
        <Loaded asked={asked}>
          {(compare) => (
            <>
              {compare.parameters.length > 0 ? (
                <Section id="parameters" title="What differs in how they were run">
                  <Table label="Parameters that differ">
                    <thead><tr><th scope="col">Parameter</th><th scope="col" class="text">Before</th><th scope="col" class="text">After</th></tr></thead>
                    <tbody>{compare.parameters.map((of) => <tr key={of.name}><th scope="row">{of.name}</th><td class="text wrap">{of.before.join(", ") || "–"}</td><td class="text wrap">{of.after.join(", ") || "–"}</td></tr>)}</tbody>
                  </Table>
                </Section>
              ) : null}
              {compare.kinds.length === 0 ? <Empty>The runs have no figures in common.</Empty> : compare.kinds.map((kind, index) => (
                <Section key={index} id={`kind-${index}`} title={`${kind.of ? `${kind.of}: ` : ""}${kind.kind}${kind.occurred === "both" ? "" : ` (only ${kind.occurred})`}`}
                  aside={<span class="caption">{count(kind.ops_count_before)} operations before, {count(kind.ops_count_after)} after</span>}>
                  <Metrics label={`Comparison of ${kind.of ?? ""} ${kind.kind}`} metrics={kind.metrics.filter((of) => MAIN.has(of.metric))} />
                  {kind.metrics.every((of) => MAIN.has(of.metric)) ? null : (
                    <details>
                      <summary>Further figures ({kind.metrics.filter((of) => !MAIN.has(of.metric)).length})</summary>
                      <Metrics label={`Further figures of ${kind.of ?? ""} ${kind.kind}`} metrics={kind.metrics.filter((of) => !MAIN.has(of.metric))} />
                    </details>
                  )}
                </Section>
              ))}
              <p class="caption">Better or worse: the change is not by chance (95 %). Same: it lies within {number(compare.margin_percent)} %. Unclear: more runs are needed to tell.</p>
            </>
          )}
        </Loaded>
      )}
    </Page>
  );
}

/** What is shown at once. */
const MAIN = new Set(["rate", "throughput", "mean", "p50", "p90", "p99", "p99.9", "max", "errors"]);

function Metrics(props: { label: string; metrics: CompareMetric[] }) {
  return (
    <Table label={props.label} test="compare">
      <thead><tr><th scope="col">Figure</th><th scope="col">Before</th><th scope="col">After</th><th scope="col">Change</th><th scope="col" class="text">Verdict</th></tr></thead>
      <tbody>{props.metrics.map((metric) => <Row key={metric.metric} metric={metric} />)}</tbody>
    </Table>
  );
}

const VERDICTS: Record<string, string> = { better: "good", worse: "bad", same: "dim", unclear: "warn" };
const WORDS: Record<string, string> = { "one-run": "one run a side: no verdict", "too-few-runs": "too few runs for a verdict", unknown: "unknown" };

function Row({ metric }: { metric: CompareMetric }) {
  const text = (value: number | null): string => {
    if (value === null) return "–";
    switch (metric.unit) {
      case "ops_per_sec": return opRate(value);
      case "objects_per_sec": return `${number(value)} obj/s`;
      case "bytes_per_sec": return byteRate(value);
      case "ns": return duration(value);
      case "fraction": return percent(value);
      default: return number(value);
    }
  };
  const side = (of: CompareMetric["before"]) => `${text(of.mean)}${of.std_dev === null || of.values.length < 2 ? "" : ` ± ${text(of.std_dev)}`}`;
  const change = metric.change_percent;
  return (
    <tr>
      <th scope="row">{metric.metric}</th><td>{side(metric.before)}</td><td>{side(metric.after)}</td>
      <td>{change === null ? "–" : `${change > 0 ? "+" : ""}${number(change)} %`}</td>
      <td class="text"><span class={`state ${VERDICTS[metric.verdict] ?? "dim"}`}>{WORDS[metric.verdict] ?? metric.verdict}</span></td>
    </tr>
  );
}
