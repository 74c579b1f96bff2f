// Many workloads at once: sizes × objects × buckets × workers × ratios.
import { useMemo, useState } from "preact/hooks";
import { ApiError, Checked, post } from "../api";
import { Code } from "../code";
import { Made, MatrixForm, MatrixLine, Ratio, matrixXml, newMatrixForm, newMatrixLine, shownForm } from "../cosbench";
import { elapsed, plural } from "../format";
import { go } from "../hooks";
import { Empty, Lines, Page, Problems, Section, Select, Table, TextField, saveText, tell } from "../ui";
import { AccessFields, MakeTabs, UNITS } from "./make-parts";

export function MakeMatrixPage() {
  const [form, setForm] = useState<MatrixForm>(newMatrixForm);
  const [isTold, setTold] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [shown, setShown] = useState<string | null>(null);
  const [answers, setAnswers] = useState<Map<string, Checked>>(new Map());
  const [failure, setFailure] = useState<string[]>([]);
  const { made, problems } = useMemo(() => matrixXml(form), [form]);
  const change = (of: Partial<MatrixForm>) => {
    setForm({ ...form, ...of });
    setAnswers(new Map());
    setFailure([]);
  };
  const changeLine = (key: number, of: Partial<MatrixLine>) => change({ lines: form.lines.map((line) => (line.key === key ? { ...line, ...of } : line)) });
  const ask = async (what: (one: Made) => Promise<boolean>): Promise<boolean> => {
    setTold(true);
    if (problems.length > 0 || made.length === 0) {
      tell("The form is not complete: see what is said below it", true);
      return false;
    }
    setBusy(true);
    setFailure([]);
    let isDone = true;
    for (const one of made) {
      try {
        if (!(await what(one))) isDone = false;
      } catch (failed) {
        if (!(failed instanceof ApiError)) throw failed;
        setFailure((old) => [...old, `${one.name}: ${failed.message}`]);
        isDone = false;
      }
    }
    setBusy(false);
    return isDone;
  };
  const check = async (one: Made): Promise<boolean> => {
    const answer = await post<Checked>("/check", { text: one.xml, file_name: one.fileName });
    setAnswers((old) => new Map(old).set(one.name, answer));
    return answer.ok;
  };
  const submitAll = async () => {
    const ids: string[] = [];
    // None is submitted before all are sound.
    if (!(await ask(check))) return;
    const isDone = await ask(async (one) => {
      ids.push((await post<{ id: string }>("/runs", { text: one.xml, file_name: one.fileName, name: null, to: "last" })).id);
      return true;
    });
    if (isDone) {
      tell(`Accepted as ${ids.join(", ")}`);
      go("#/");
    }
  };
  return (
    <Page title="Make a matrix of workloads" intro="Each workload measures every combination of its sizes, numbers of objects, buckets, workers and ratios, one stage for each.">
      <MakeTabs page="make-matrix" />
      <form onSubmit={(event) => { event.preventDefault(); void submitAll(); }} data-test="make-matrix">
        <fieldset class="card">
          <legend>Matrix</legend>
          <div class="fields">
            <TextField label="Name" value={form.name} onChange={(name) => change({ name })} hint="3 to 50 letters, digits, dots, dashes, underscores" />
            <TextField label="Run time (s)" type="number" value={form.runtime} onChange={(runtime) => change({ runtime })} />
            <TextField label="Ramp up (s)" type="number" value={form.rampup} onChange={(rampup) => change({ rampup })} />
            <TextField label="Wait between stages (s)" type="number" value={form.delay} onChange={(delay) => change({ delay })} />
            <TextField label="Preparing workers" type="number" value={form.preparers} onChange={(preparers) => change({ preparers })} hint="of prepare and cleanup" />
          </div>
        </fieldset>
        <AccessFields auth={form.auth} storage={form.storage} onChange={change} />
        {form.lines.map((line) => (
          <LineFields key={line.key} line={line} onChange={(of) => changeLine(line.key, of)} onRemove={form.lines.length > 1 ? () => change({ lines: form.lines.filter((of) => of.key !== line.key) }) : null} />
        ))}
        <div class="actions"><button type="button" onClick={() => change({ lines: [...form.lines, newMatrixLine(`workload-${form.lines.length + 1}`)] })}>Add a workload</button></div>
        <Section id="made" title="What it makes">
          {isTold || form.name !== "" ? <Lines class="failure" lines={problems} /> : null}
          <Lines class="failure" lines={failure} />
          {made.length === 0 ? <Empty>Nothing yet.</Empty> : (
            <Table label="Workloads of the matrix" test="made">
              <thead><tr><th scope="col">Workload</th><th scope="col">Main stages</th><th scope="col">Takes at least</th><th scope="col" class="text">Check</th><th scope="col"><span class="sr">Actions</span></th></tr></thead>
              <tbody>
                {made.map((one) => {
                  const answer = answers.get(one.name);
                  return (
                    <tr key={one.name}>
                      <th scope="row">{one.name}</th><td>{one.mainCount}</td><td>{elapsed(one.seconds * 1000)}</td>
                      <td class="text">{answer ? (answer.ok ? "sound" : <span class="bad">has errors</span>) : "not checked"}</td>
                      <td>
                        <button type="button" aria-expanded={shown === one.name} aria-label={`Show ${one.name}`} onClick={() => setShown(shown === one.name ? null : one.name)}>{shown === one.name ? "Hide" : "Show"}</button>{" "}
                        <button type="button" aria-label={`Download ${one.fileName}`} onClick={() => saveText(one.fileName, one.xml, "application/xml")}>Download</button>
                      </td>
                    </tr>
                  );
                })}
              </tbody>
            </Table>
          )}
          {matrixXml(shownForm(form)).made.filter((one) => one.name === shown).map((one) => <Code key={one.name} label={`${one.name} as COSBench XML`} text={one.xml} problems={answers.get(one.name)?.problems ?? []} rows={14} />)}
          {made.map((one) => <Problems key={one.name} label={`What was found in ${one.name}`} problems={answers.get(one.name)?.problems ?? []} />)}
          <div class="actions">
            <button type="button" disabled={isBusy} onClick={() => ask(check)}>Check all</button>
            <button type="button" disabled={made.length === 0} onClick={() => { for (const one of made) saveText(one.fileName, one.xml, "application/xml"); }}>Download all</button>
            <button type="submit" class="primary" disabled={isBusy}>Submit {plural(made.length, "workload")}</button>
            {isBusy ? <span role="status" class="caption">Asking the controller…</span> : null}
          </div>
        </Section>
      </form>
    </Page>
  );
}

function LineFields(props: { line: MatrixLine; onChange: (of: Partial<MatrixLine>) => void; onRemove: (() => void) | null }) {
  const { line, onChange } = props;
  const ratio = (index: number, of: Partial<Ratio>) => onChange({ ratios: line.ratios.map((old, place) => (place === index ? { ...old, ...of } : old)) });
  return (
    <fieldset class="card">
      <legend>Workload {line.name}</legend>
      <div class="fields">
        <TextField label="Name" value={line.name} onChange={(name) => onChange({ name })} />
        <Select label="Sizes are" value={line.isRange ? "range" : "list"} options={[["list", "a list"], ["range", "one range"]]} onChange={(value) => onChange({ isRange: value === "range", sizes: value === "range" ? "4-64" : "4, 64" })} />
        <TextField label="Sizes" value={line.sizes} onChange={(sizes) => onChange({ sizes })} hint={line.isRange ? "such as 4-64" : "such as 4, 64"} />
        <Select label="Unit" value={line.unit} options={UNITS} onChange={(unit) => onChange({ unit })} />
        <TextField label="Objects per bucket" value={line.objects} onChange={(objects) => onChange({ objects })} hint="a list" />
        <TextField label="Buckets" value={line.containers} onChange={(containers) => onChange({ containers })} hint="a list" />
        <TextField label="Workers" value={line.workers} onChange={(workers) => onChange({ workers })} hint="a list" />
      </div>
      <h3>Ratios (%)</h3>
      {line.ratios.map((of, index) => (
        <div class="fields" key={index} role="group" aria-label={`Ratio ${index + 1} of ${line.name}`}>
          <TextField label="Read" type="number" value={of.read} onChange={(read) => ratio(index, { read })} />
          <TextField label="Write" type="number" value={of.write} onChange={(write) => ratio(index, { write })} />
          <TextField label="Delete" type="number" value={of.delete} onChange={(value) => ratio(index, { delete: value })} />
          {line.ratios.length > 1 ? <button type="button" aria-label={`Remove ratio ${index + 1} of ${line.name}`} onClick={() => onChange({ ratios: line.ratios.toSpliced(index, 1) })}>Remove</button> : null}
        </div>
      ))}
      <div class="actions">
        <button type="button" onClick={() => onChange({ ratios: [...line.ratios, { read: "50", write: "50", delete: "0" }] })}>Add a ratio</button>
        {props.onRemove ? <button type="button" aria-label={`Remove workload ${line.name}`} onClick={props.onRemove}>Remove this workload</button> : null}
      </div>
    </fieldset>
  );
}
