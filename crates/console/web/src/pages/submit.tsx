// A workload from a file or from the clipboard: checked, then submitted.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, Checked, Problem, api, post, runPath, session } from "../api";
import { Code, Picked } from "../code";
import { HIDDEN } from "../cosbench";
import { EXAMPLES } from "../examples";
import { bytes, plural } from "../format";
import { go, useAddress } from "../hooks";
import { Check, ErrorBox, Page, Problems, Section, Select, saveText, tell } from "../ui";
import { CheckedView } from "./checked";
import { runHref } from "./parts";

/** More than this is sent as it is, and not shown: a field with so much text is of no use. */
const SHOWN_BYTES_MAX = 512 * 1024;

export function SubmitPage() {
  const { query } = useAddress();
  const from = query.get("from");
  const [text, setText] = useState("");
  const [fileName, setFileName] = useState<string | null>(null);
  const [hidden, setHidden] = useState<string | null>(null);
  const [checked, setChecked] = useState<Checked | null>(null);
  const [problems, setProblems] = useState<Problem[]>([]);
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [isFirst, setFirst] = useState(false);
  const [isOver, setOver] = useState(false);
  const [picked, setPicked] = useState<Picked | null>(null);
  const file = useRef<HTMLInputElement>(null);
  const whole = hidden ?? text;

  useEffect(() => {
    if (!from) return;
    api<{ text: string; file_name: string | null }>(`${runPath(from)}/workload`).then((workload) => take(workload.text, workload.file_name), (failed: unknown) => setError(failed as ApiError));
  }, [from]);

  const change = (text: string) => {
    setText(text);
    setChecked(null);
    setProblems([]);
    setError(null);
  };
  const take = (text: string, name: string | null) => {
    const isLong = text.length > SHOWN_BYTES_MAX;
    setHidden(isLong ? text : null);
    change(isLong ? "" : text);
    setFileName(name);
  };
  const open = async (files: FileList | null | undefined) => {
    const chosen = files?.[0];
    if (!chosen) return;
    const most = session.value?.upload_bytes_max ?? Infinity;
    if (chosen.size > most) {
      tell(`${chosen.name} has ${bytes(chosen.size)}; ${bytes(most)} are the most`, true);
      return;
    }
    try {
      take(await chosen.text(), chosen.name);
      if ((files?.length ?? 0) > 1) tell(`Only ${chosen.name} was taken; a workload is one file`);
    } catch (failed) {
      tell(`${chosen.name} cannot be read: ${failed instanceof Error ? failed.message : String(failed)}`, true);
    }
  };
  const check = async (): Promise<Checked | null> => {
    setBusy(true);
    setError(null);
    try {
      const answer = await post<Checked>("/check", { text: whole, file_name: fileName });
      setChecked(answer);
      setProblems(answer.problems);
      return answer;
    } catch (failed) {
      refused(failed);
      return null;
    } finally {
      setBusy(false);
    }
  };
  const refused = (failed: unknown) => {
    if (!(failed instanceof ApiError)) throw failed;
    setError(failed);
    setProblems(failed.problems);
  };
  const submit = async () => {
    // What is submitted was checked before: errors are shown here and not as a run that fails.
    const answer = checked ?? (await check());
    if (!answer?.ok) return;
    setBusy(true);
    try {
      const made = await post<{ id: string }>("/runs", { text: whole, file_name: fileName, name: null, to: isFirst ? "first" : "last" });
      tell(`Accepted as ${made.id}`);
      go(runHref(made.id));
    } catch (failed) {
      refused(failed);
    } finally {
      setBusy(false);
    }
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void open(event.dataTransfer?.files);
  };
  return (
    <Page title="Submit a workload" intro="A workload file of plimsoll's (YAML), of COSBench's (XML), or a job file of fio's. Which of them it is, is told by its content.">
      <div class={`drop ${isOver ? "over" : ""}`} data-test="drop" onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)} onDrop={drop}>
        <div class="actions">
          <input ref={file} type="file" class="sr" tabIndex={-1} aria-hidden="true" accept=".xml,.yaml,.yml,.fio,.ini,.json,.txt,text/*" data-test="file" onChange={(event) => { void open(event.currentTarget.files); event.currentTarget.value = ""; }} />
          <button type="button" onClick={() => file.current?.click()}>Choose a file…</button>
          <Select class="inline" label="or begin with" value="" options={[["", "an example…"], ...EXAMPLES.map(([name]): [string, string] => [name, name])]} onChange={(name) => {
            const example = EXAMPLES.find(([of]) => of === name);
            if (example) take(example[1], null);
          }} />
          <span class="caption">or drop a file here, or paste its text below</span>
        </div>
        {fileName ? <p class="caption">{fileName}{hidden === null ? "" : `, ${bytes(hidden.length)}: too long to be shown, it is checked and submitted as it is`}</p> : null}
        {hidden === null ? <Code label="Workload" text={text} onChange={change} problems={problems} picked={picked} /> : <p><button type="button" onClick={() => take("", null)}>Take another text</button></p>}
      </div>
      {whole.includes(HIDDEN) ? <p class="box warning" data-test="hidden">Secrets were taken out of this text: put them in where it says {HIDDEN}.</p> : null}
      <div class="actions submit-actions">
        <button type="button" disabled={isBusy || whole.trim() === ""} onClick={check}>Check</button>
        <button type="button" class="primary" disabled={isBusy || whole.trim() === ""} onClick={submit}>Submit</button>
        <Check label="at the front of the queue" checked={isFirst} onChange={setFirst} />
        {isBusy ? <span role="status" class="caption">Asking the controller…</span> : null}
      </div>
      <ErrorBox error={error} />
      <div aria-live="polite">
        {checked ? <p class={`box ${checked.ok ? "done" : "failure"}`} data-test="verdict">{checked.ok ? "The workload is sound." : `The workload has ${plural(checked.problems.filter((of) => of.severity === "error").length, "error")}; it was not submitted.`}</p> : null}
        <Problems label="What was found in the workload" problems={problems} onPick={(of) => setPicked({ line: of.line ?? 1, column: of.column, number: (picked?.number ?? 0) + 1 })} />
      </div>
      {checked?.ok ? <Section id="understood" title="As it is understood" aside={checked.lowered ? <button type="button" onClick={() => saveText(`${checked.name ?? "workload"}.yaml`, checked.lowered ?? "", "application/yaml")}>Download as plimsoll YAML</button> : undefined}><CheckedView checked={checked} /></Section> : null}
    </Page>
  );
}
