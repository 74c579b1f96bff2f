// The form for making one workload.
import { useMemo, useState } from "preact/hooks";
import { ApiError, Checked, post } from "../api";
import { Code, Picked } from "../code";
import { Form, HIDDEN, Operation, StageForm, cloneStage, formProblems, formXml, newForm, newOperation, newStage, ratioSum, shownForm } from "../cosbench";
import { go } from "../hooks";
import { Check, ErrorBox, Lines, Page, Problems, Section, Select, TextField, saveText, tell } from "../ui";
import { CheckedView } from "./checked";
import { AccessFields, MakeTabs, SelectorFields, SizeFields } from "./make-parts";
import { runHref } from "./parts";

export function MakePage() {
  const [form, setForm] = useState<Form>(newForm);
  const [isTold, setTold] = useState(false);
  const [checked, setChecked] = useState<Checked | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [picked, setPicked] = useState<Picked | null>(null);
  const xml = useMemo(() => formXml(form), [form]);
  const shown = useMemo(() => formXml(shownForm(form)), [form]);
  const problems = useMemo(() => formProblems(form), [form]);
  const change = (of: Partial<Form>) => {
    setForm({ ...form, ...of });
    setChecked(null);
    setError(null);
  };
  const changeStage = (key: number, of: Partial<StageForm>) => change({ stages: form.stages.map((stage) => (stage.key === key ? { ...stage, ...of } : stage)) });
  const moveStage = (index: number, by: number) => {
    const stages = [...form.stages];
    const [moved] = stages.splice(index, 1);
    if (moved) stages.splice(index + by, 0, moved);
    change({ stages });
  };
  const ask = async (what: () => Promise<void>) => {
    setTold(true);
    if (problems.length > 0) {
      tell("The form is not complete: see what is said below it", true);
      return;
    }
    setBusy(true);
    setError(null);
    try {
      await what();
    } catch (failed) {
      if (!(failed instanceof ApiError)) throw failed;
      setError(failed);
    }
    setBusy(false);
  };
  const check = async (): Promise<Checked> => {
    const answer = await post<Checked>("/check", { text: xml, file_name: null });
    setChecked(answer);
    return answer;
  };
  const submit = () => ask(async () => {
    if (!(await check()).ok) return;
    const made = await post<{ id: string }>("/runs", { text: xml, file_name: "workload-config.xml", name: null, to: "last" });
    tell(`Accepted as ${made.id}`);
    go(runHref(made.id));
  });
  const yaml = () => ask(async () => {
    const answer = checked ?? (await check());
    if (answer.lowered) saveText(`${form.name || "workload"}.yaml`, answer.lowered, "application/yaml");
    else tell("The workload has errors, so there is no YAML of it", true);
  });
  return (
    <Page title="Make a workload" intro="Fill in what you need; the result is COSBench's XML or plimsoll's YAML, to keep or to submit at once.">
      <MakeTabs page="make" />
      <form onSubmit={(event) => { event.preventDefault(); void submit(); }} data-test="make">
        <fieldset class="card">
          <legend>Workload</legend>
          <div class="fields">
            <TextField label="Name" value={form.name} onChange={(name) => change({ name })} error={isTold && form.name.trim() === "" ? "needed" : null} />
            <TextField label="Description" class="grow" value={form.description} onChange={(description) => change({ description })} />
          </div>
          <div class="fields">
            <TextField label="Bucket names begin with" value={form.cprefix} onChange={(cprefix) => change({ cprefix })} hint="cprefix" />
            <TextField label="and end with" value={form.csuffix} onChange={(csuffix) => change({ csuffix })} hint="csuffix" />
            <TextField label="Object names begin with" value={form.oprefix} onChange={(oprefix) => change({ oprefix })} hint="oprefix" />
            <TextField label="and end with" value={form.osuffix} onChange={(osuffix) => change({ osuffix })} hint="osuffix" />
          </div>
        </fieldset>
        <AccessFields auth={form.auth} storage={form.storage} onChange={change} />
        <Section id="form-stages" title="Stages, one after the other">
          {form.stages.map((stage, index) => (
            <StageFields key={stage.key} stage={stage} isFirst={index === 0} isLast={index === form.stages.length - 1}
              onChange={(of) => changeStage(stage.key, of)} onMove={(by) => moveStage(index, by)}
              onClone={() => change({ stages: form.stages.toSpliced(index + 1, 0, cloneStage(stage)) })}
              onRemove={() => change({ stages: form.stages.toSpliced(index, 1) })} />
          ))}
          <div class="actions" role="group" aria-label="Add a stage">
            {(["init", "prepare", "main", "cleanup", "dispose"] as const).map((type) => <button type="button" key={type} onClick={() => change({ stages: [...form.stages, newStage(type)] })}>Add {type}</button>)}
          </div>
        </Section>
        <Section id="form-result" title="The workload">
          {isTold || form.name !== "" ? <Lines class="failure" lines={problems} /> : null}
          <Code label="The workload as COSBench XML" text={shown} problems={checked?.problems ?? []} picked={picked} rows={14} />
          {shown !== xml ? <p class="caption">Secrets are shown as {HIDDEN} here; what is downloaded or submitted holds them.</p> : null}
          <div class="actions">
            <button type="button" disabled={isBusy} onClick={() => ask(async () => void (await check()))}>Check</button>
            <button type="button" onClick={() => saveText("workload-config.xml", xml, "application/xml")}>Download XML</button>
            <button type="button" disabled={isBusy} onClick={yaml}>Download YAML</button>
            <button type="submit" class="primary" disabled={isBusy}>Submit</button>
            {isBusy ? <span role="status" class="caption">Asking the controller…</span> : null}
          </div>
          <ErrorBox error={error} />
          <div aria-live="polite">
            {checked ? <p class={`box ${checked.ok ? "done" : "failure"}`} data-test="verdict">{checked.ok ? "The workload is sound." : "The workload has errors."}</p> : null}
            <Problems label="What was found in the workload" problems={checked?.problems ?? error?.problems ?? []} onPick={(of) => setPicked({ line: of.line ?? 1, column: of.column, number: (picked?.number ?? 0) + 1 })} />
          </div>
          {checked ? <CheckedView checked={checked} /> : null}
        </Section>
      </form>
    </Page>
  );
}

const ABOUT: Record<StageForm["type"], string> = {
  init: "makes the buckets", prepare: "writes the objects", main: "is measured", cleanup: "deletes the objects", dispose: "deletes the buckets",
};

function StageFields(props: { stage: StageForm; isFirst: boolean; isLast: boolean; onChange: (of: Partial<StageForm>) => void; onMove: (by: number) => void; onClone: () => void; onRemove: () => void }) {
  const { stage, onChange } = props;
  const name = stage.name || stage.type;
  const operation = (index: number, of: Partial<Operation>) => onChange({ operations: stage.operations.map((old, place) => (place === index ? { ...old, ...of } : old)) });
  return (
    <fieldset class={`card stage-form ${stage.isOn ? "" : "off"}`} data-test={`stage-${stage.type}`}>
      <legend>{stage.type} <span class="caption">{ABOUT[stage.type]}</span></legend>
      <div class="actions">
        <Check label="on" checked={stage.isOn} onChange={(isOn) => onChange({ isOn })} />
        <button type="button" aria-label={`Clone stage ${name}`} onClick={props.onClone}>Clone</button>
        <button type="button" aria-label={`Move stage ${name} up`} disabled={props.isFirst} onClick={() => props.onMove(-1)}>↑</button>
        <button type="button" aria-label={`Move stage ${name} down`} disabled={props.isLast} onClick={() => props.onMove(1)}>↓</button>
        <button type="button" aria-label={`Remove stage ${name}`} onClick={props.onRemove}>Remove</button>
      </div>
      {stage.isOn ? (
        <>
          <div class="fields">
            <TextField label="Stage name" value={stage.name} onChange={(name) => onChange({ name })} />
            <TextField label="Workers" type="number" value={stage.workers} onChange={(workers) => onChange({ workers })} />
            {stage.type === "main" ? (
              <>
                <TextField label="Ramp up (s)" type="number" value={stage.rampup} onChange={(rampup) => onChange({ rampup })} />
                <TextField label="Run time (s)" type="number" value={stage.runtime} onChange={(runtime) => onChange({ runtime })} />
                <TextField label="Ramp down (s)" type="number" value={stage.rampdown} onChange={(rampdown) => onChange({ rampdown })} />
                <TextField label="At most operations" type="number" value={stage.totalOps} onChange={(totalOps) => onChange({ totalOps })} hint="over all workers" />
                <TextField label="At most bytes" type="number" value={stage.totalBytes} onChange={(totalBytes) => onChange({ totalBytes })} hint="over all workers" />
              </>
            ) : (
              <>
                <SelectorFields label="Buckets" of={stage.containers} onlyRange onChange={(containers) => onChange({ containers })} />
                {stage.type === "prepare" || stage.type === "cleanup" ? <SelectorFields label="Objects" of={stage.objects} onlyRange onChange={(objects) => onChange({ objects })} /> : null}
                {stage.type === "prepare" ? <SizeFields label="Sizes" of={stage.sizes} onChange={(sizes) => onChange({ sizes })} /> : null}
                {stage.type === "cleanup" ? <Check label="delete the buckets, too" checked={stage.deleteContainer} onChange={(deleteContainer) => onChange({ deleteContainer })} /> : null}
              </>
            )}
            <TextField label="Only on agent" value={stage.driver} onChange={(driver) => onChange({ driver })} hint="all agents when empty" />
            <TextField label="Wait after it (s)" type="number" value={stage.delay} onChange={(delay) => onChange({ delay })} />
          </div>
          {stage.type === "main" ? (
            <>
              <h3>Operations <span class={ratioSum(stage) === 100 ? "caption" : "bad"}>{ratioSum(stage)} % of 100 %</span></h3>
              {stage.operations.map((of, index) => (
                <div class="fields operation" key={index} role="group" aria-label={`Operation ${index + 1} of stage ${name}`}>
                  <Select label="Operation" value={of.type} options={["read", "write", "filewrite", "delete", "list"]} onChange={(type) => operation(index, { type })} />
                  <TextField label="Ratio (%)" type="number" value={of.ratio} onChange={(ratio) => operation(index, { ratio })} />
                  <SelectorFields label="Buckets" of={of.containers} onChange={(containers) => operation(index, { containers })} />
                  {of.type === "filewrite" ? (
                    <>
                      <TextField label="Folder of files" value={of.files} onChange={(files) => operation(index, { files })} hint="on each agent" />
                      <Select label="Files are taken" value={of.selection} options={[["s", "one after the other"], ["u", "at random"]]} onChange={(selection) => operation(index, { selection })} />
                    </>
                  ) : of.type === "list" ? null : <SelectorFields label="Objects" of={of.objects} onChange={(objects) => operation(index, { objects })} />}
                  {of.type === "write" ? <SizeFields label="Sizes" of={of.sizes} onChange={(sizes) => operation(index, { sizes })} /> : null}
                  {of.type === "delete" || of.type === "list" ? null : <Check label="check by hash" checked={of.hashCheck} onChange={(hashCheck) => operation(index, { hashCheck })} />}
                  <button type="button" aria-label={`Remove operation ${index + 1} of stage ${name}`} onClick={() => onChange({ operations: stage.operations.toSpliced(index, 1) })}>Remove</button>
                </div>
              ))}
              <div class="actions"><button type="button" onClick={() => onChange({ operations: [...stage.operations, newOperation("read", Math.max(0, 100 - ratioSum(stage)))] })}>Add an operation</button></div>
            </>
          ) : null}
        </>
      ) : <p class="caption">This stage is left out.</p>}
    </fieldset>
  );
}
