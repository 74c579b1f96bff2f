// What a check says of a workload: its stages and jobs, and the lowered text.
import { Checked, Correction } from "../api";
import { duration } from "../format";
import { Lines, Table } from "../ui";

export function Corrections({ corrections }: { corrections: Correction[] }) {
  if (corrections.length === 0) return null;
  return (
    <details open={corrections.length <= 5}>
      <summary>What means something else here than in COSBench ({corrections.length})</summary>
      <Table label="Corrected meanings">
        <thead><tr><th scope="col">What</th><th scope="col" class="text">There</th><th scope="col" class="text">Here</th></tr></thead>
        <tbody>{corrections.map((of, index) => <tr key={index}><th scope="row">{of.what}</th><td class="text wrap">{of.theirs}</td><td class="text wrap">{of.ours}</td></tr>)}</tbody>
      </Table>
    </details>
  );
}

export function CheckedView({ checked }: { checked: Checked }) {
  return (
    <>
      <Lines class="warning" lines={checked.needs_leave.map((bucket) => `Writing in ${bucket} needs leave: add it to the controller's list of buckets that may be touched.`)} />
      {checked.touches.length > 0 ? <p class="caption">Writes in or deletes from: {checked.touches.join(", ")}</p> : null}
      {checked.stages.length > 0 ? (
        <Table label="Stages of the workload">
          <thead><tr><th scope="col">Stage</th><th scope="col" class="text">Job</th><th scope="col">Workers</th><th scope="col" class="text">Work</th><th scope="col">Planned</th><th scope="col">Wait after it</th></tr></thead>
          <tbody>
            {checked.stages.map((stage) => (stage.jobs.length > 0 ? stage.jobs : [{ name: "–", workers_count: 0, work: "–" }]).map((job, index) => (
              <tr key={`${stage.number}/${index}`}>
                <th scope="row">{index === 0 ? `${stage.number}. ${stage.name}` : ""}</th><td class="text">{job.name}</td><td>{job.workers_count || "–"}</td><td class="text wrap">{job.work}</td>
                <td>{index === 0 ? duration(stage.planned_ns) : ""}</td><td>{index === 0 ? duration(stage.delay_ns) : ""}</td>
              </tr>
            )))}
          </tbody>
        </Table>
      ) : null}
      <Corrections corrections={checked.corrections ?? []} />
      {checked.lowered ? <details><summary>In plimsoll's language</summary><pre tabIndex={0}>{checked.lowered}</pre></details> : null}
    </>
  );
}
