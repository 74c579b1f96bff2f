// Fields that the form and the matrix share.
import { AUTHS, KeyInfo, Keys, STORAGES, Selector, Size } from "../cosbench";
import { Select, TextField } from "../ui";

export function KeysFields(props: { title: string; of: Keys; known: Record<string, KeyInfo[]>; onChange: (keys: Keys) => void }) {
  const { of, known } = props;
  const set = (key: string, value: string) => props.onChange({ ...of, values: { ...of.values, [key]: value } });
  return (
    <fieldset class="card">
      <legend>{props.title}</legend>
      <div class="fields">
        <Select label="Type" value={of.type} options={Object.keys(known)} onChange={(type) => props.onChange({ ...of, type })} />
        {(known[of.type] ?? []).map((info) => info.options ? (
          <Select key={info.key} label={info.label} value={of.values[info.key] ?? ""} options={info.options.map((value): [string, string] => [value, value || "default"])} onChange={(value) => set(info.key, value)} />
        ) : (
          <TextField key={info.key} label={info.label} hint={info.hint ? `such as ${info.hint}` : ""} type={info.isSecret ? "password" : "text"} value={of.values[info.key] ?? ""} onChange={(value) => set(info.key, value)} />
        ))}
        <TextField label="More keys" hint="key=value;key=value" mono value={of.more} onChange={(more) => props.onChange({ ...of, more })} />
      </div>
    </fieldset>
  );
}

export function AccessFields(props: { auth: Keys; storage: Keys; onChange: (change: { auth?: Keys; storage?: Keys }) => void }) {
  return (
    <>
      <KeysFields title="Storage" of={props.storage} known={STORAGES} onChange={(storage) => props.onChange({ storage })} />
      <KeysFields title="Sign-in to the storage (Swift)" of={props.auth} known={AUTHS} onChange={(auth) => props.onChange({ auth })} />
    </>
  );
}

const KINDS: [string, string][] = [["c", "constant"], ["u", "uniform"], ["r", "range, in order"], ["s", "sequential"]];

/** Which numbers are taken: `u(1,50)`. */
export function SelectorFields(props: { label: string; of: Selector; onChange: (of: Selector) => void; onlyRange?: boolean }) {
  const { of, onChange } = props;
  return (
    <fieldset class="group">
      <legend>{props.label}</legend>
      {props.onlyRange ? null : <select aria-label={`${props.label}: how they are chosen`} value={of.kind} onChange={(event) => onChange({ ...of, kind: event.currentTarget.value })}>{KINDS.map(([value, text]) => <option key={value} value={value}>{text}</option>)}</select>}
      <input inputMode="numeric" aria-label={of.kind === "c" ? `${props.label}: number` : `${props.label}: first`} value={of.from} onInput={(event) => onChange({ ...of, from: event.currentTarget.value })} />
      {of.kind === "c" ? null : <>to<input inputMode="numeric" aria-label={`${props.label}: last`} value={of.to} onInput={(event) => onChange({ ...of, to: event.currentTarget.value })} /></>}
    </fieldset>
  );
}

export const UNITS = ["B", "KB", "MB", "GB"];

export function SizeFields(props: { label: string; of: Size; onChange: (of: Size) => void }) {
  const { of, onChange } = props;
  return (
    <fieldset class="group">
      <legend>{props.label}</legend>
      <select aria-label={`${props.label}: how they are chosen`} value={of.kind} onChange={(event) => onChange({ ...of, kind: event.currentTarget.value })}>{KINDS.slice(0, 3).map(([value, text]) => <option key={value} value={value}>{text}</option>)}</select>
      <input inputMode="numeric" aria-label={of.kind === "c" ? `${props.label}: number` : `${props.label}: smallest`} value={of.from} onInput={(event) => onChange({ ...of, from: event.currentTarget.value })} />
      {of.kind === "c" ? null : <>to<input inputMode="numeric" aria-label={`${props.label}: largest`} value={of.to} onInput={(event) => onChange({ ...of, to: event.currentTarget.value })} /></>}
      <select aria-label={`${props.label}: unit`} value={of.unit} onChange={(event) => onChange({ ...of, unit: event.currentTarget.value })}>{UNITS.map((unit) => <option key={unit}>{unit}</option>)}</select>
    </fieldset>
  );
}

/** The two ways to make workloads. */
export function MakeTabs(props: { page: "make" | "make-matrix" }) {
  return (
    <nav class="tabs" aria-label="Ways to make workloads">
      <a href="#/make" aria-current={props.page === "make" ? "page" : undefined}>One workload</a>
      <a href="#/make-matrix" aria-current={props.page === "make-matrix" ? "page" : undefined}>A matrix of workloads</a>
    </nav>
  );
}
