// The parts that pages are made of. Whatever comes from a run or a user is text, never markup.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { ApiError, Problem, Store } from "./api";
import { Asked } from "./hooks";

/** What is said to everybody at once: done, or what went wrong. */
export const told = new Store<{ text: string; isBad: boolean; number: number } | null>(null);
let toldCount = 0;

export function tell(text: string, isBad = false): void {
  toldCount += 1;
  told.set({ text, isBad, number: toldCount });
}

/** Does something and says how it went. */
export async function attempt(what: () => Promise<string | void>): Promise<boolean> {
  try {
    const done = await what();
    if (done) tell(done);
    return true;
  } catch (error) {
    tell(error instanceof Error ? error.message : String(error), true);
    return false;
  }
}

export function Page(props: { title: string; intro?: ComponentChildren; actions?: ComponentChildren; children: ComponentChildren }) {
  useEffect(() => {
    document.title = `${props.title} · Plimsoll console`;
  }, [props.title]);
  return (
    <>
      <header class="page-head">
        <div>
          <h1 id="title" tabIndex={-1}>{props.title}</h1>
          {props.intro ? <div class="caption">{props.intro}</div> : null}
        </div>
        {props.actions ? <div class="actions">{props.actions}</div> : null}
      </header>
      {props.children}
    </>
  );
}

export function Section(props: { id: string; title: string; aside?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section id={props.id} aria-labelledby={`${props.id}-title`}>
      <div class="section-head"><h2 id={`${props.id}-title`}>{props.title}</h2>{props.aside}</div>
      {props.children}
    </section>
  );
}

/** A table that scrolls on its own where it is wider than the page. */
export function Table(props: { label: string; children: ComponentChildren; class?: string; test?: string }) {
  return (
    <div class={`table ${props.class ?? ""}`} role="region" aria-label={props.label} tabIndex={0} data-test={props.test}>
      <table>{props.children}</table>
    </div>
  );
}

const MARKS: Record<string, string> = {
  running: "live", processing: "live", busy: "live", finished: "good", completed: "good", ready: "good",
  failed: "bad", terminated: "bad", away: "bad", aborted: "dim", cancelled: "dim", works: "live", done: "good", silent: "warn", lost: "bad", sleeping: "warn", queued: "warn",
};

export function State(props: { state: string }) {
  return <span class={`state ${MARKS[props.state] ?? "dim"}`}>{props.state}</span>;
}

export function Empty(props: { children: ComponentChildren }) {
  return <p class="empty">{props.children}</p>;
}

export function ErrorBox(props: { error: ApiError | null; retry?: () => void }) {
  if (props.error === null || props.error.code === "signed_out") return null;
  return (
    <div class="box failure" role="alert">
      <span>{props.error.message}</span>
      {props.retry ? <button type="button" onClick={props.retry}>Try again</button> : null}
    </div>
  );
}

/** Shows what was asked for, or why it is not there yet. */
export function Loaded<T>(props: { asked: Asked<T>; children: (data: T) => ComponentChildren }) {
  const { data, error, slow, isOld, reload } = props.asked;
  return (
    <>
      {error?.isLost && data !== null ? null : <ErrorBox error={error} retry={reload} />}
      {slow ? <p class="box note" role="status">The controller is slow to answer; still waiting.</p> : null}
      {data === null ? (error ? null : <p class="empty" role="status">Loading…</p>) : <div class={isOld ? "old" : ""} aria-busy={isOld}>{props.children(data)}</div>}
    </>
  );
}

export function Lines(props: { class: "failure" | "warning" | "note"; lines: string[]; max?: number }) {
  if (props.lines.length === 0) return null;
  return (
    <ul class="lines">
      {props.lines.map((line, index) => <li key={index} class={`box ${props.class}`}>{line}</li>)}
    </ul>
  );
}

export function Problems(props: { problems: Problem[]; onPick?: (problem: Problem) => void; label: string }) {
  if (props.problems.length === 0) return null;
  const severity = { error: "failure", warning: "warning", note: "note" } as const;
  const place = (of: Problem) => (of.line === null ? "" : of.column === null ? `line ${of.line}: ` : `line ${of.line}, column ${of.column}: `);
  return (
    <ul class="lines" aria-label={props.label} data-test="problems">
      {props.problems.map((problem, index) => (
        <li key={index} class={`box ${severity[problem.severity] ?? "note"}`}>
          {problem.line !== null && props.onPick ? (
            <button type="button" class="link" onClick={() => props.onPick?.(problem)}>{place(problem)}</button>
          ) : place(problem)}
          {problem.message}
        </li>
      ))}
    </ul>
  );
}

export function Field(props: { label: string; hint?: string | undefined; error?: string | null | undefined; class?: string; children: (id: { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean }) => ComponentChildren }) {
  const id = useId();
  const isSaid = Boolean(props.hint || props.error);
  return (
    <div class={`field ${props.class ?? ""}`}>
      <label for={id}>{props.label}</label>
      {props.children({ id, "aria-describedby": isSaid ? `${id}-hint` : undefined, "aria-invalid": Boolean(props.error) })}
      {isSaid ? <small id={`${id}-hint`} class={props.error ? "bad" : ""}>{props.error ?? props.hint}</small> : null}
    </div>
  );
}

export function TextField(props: {
  label: string; value: string; onChange: (value: string) => void; hint?: string; error?: string | null; class?: string;
  type?: "text" | "password" | "number" | "search"; mono?: boolean;
}) {
  return (
    <Field label={props.label} hint={props.hint} error={props.error} class={props.class ?? ""}>
      {(id) => {
        const common = {
          ...id, value: props.value, class: props.mono ? "mono" : "", spellcheck: false,
          onInput: (event: { currentTarget: HTMLInputElement }) => props.onChange(event.currentTarget.value),
        };
        if (props.type === "password") return <input {...common} type="password" autocomplete="new-password" />;
        if (props.type === "search") return <input {...common} type="search" autocomplete="off" />;
        return <input {...common} type="text" inputMode={props.type === "number" ? "numeric" : "text"} autocomplete="off" />;
      }}
    </Field>
  );
}

export function Select(props: { label: string; value: string; onChange: (value: string) => void; options: (string | [string, string])[]; hint?: string; class?: string }) {
  return (
    <Field label={props.label} hint={props.hint} class={props.class ?? ""}>
      {(id) => (
        <select {...id} value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
          {props.options.map((option) => {
            const [value, text] = typeof option === "string" ? [option, option] : option;
            return <option key={value} value={value} selected={value === props.value}>{text}</option>;
          })}
        </select>
      )}
    </Field>
  );
}

export function Check(props: { label: string; checked: boolean; onChange: (checked: boolean) => void; isHidden?: boolean; disabled?: boolean }) {
  return (
    <label class={`check ${props.isHidden ? "bare" : ""}`}>
      <input type="checkbox" checked={props.checked} disabled={props.disabled} aria-label={props.isHidden ? props.label : undefined}
        onChange={(event) => props.onChange(event.currentTarget.checked)} />
      {props.isHidden ? null : <span>{props.label}</span>}
    </label>
  );
}

/** A question that must be answered before something is done that cannot be undone. */
export function useConfirm(): [JSX.Element | null, (question: string, yes: string, then: () => void) => void] {
  const [asked, setAsked] = useState<{ question: string; yes: string; then: () => void } | null>(null);
  const close = () => setAsked(null);
  const dialog = asked ? (
    <Dialog label={asked.question} onClose={close}>
      <p>{asked.question}</p>
      <div class="actions">
        <button type="button" class="danger" onClick={() => { close(); asked.then(); }}>{asked.yes}</button>
        <button type="button" onClick={close}>Leave it</button>
      </div>
    </Dialog>
  ) : null;
  return [dialog, (question, yes, then) => setAsked({ question, yes, then })];
}

/** Laid over the page; the browser keeps the focus in it and gives it back. */
export function Dialog(props: { label: string; onClose: (() => void) | null; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const cancel = (event: Event) => {
    event.preventDefault();
    props.onClose?.();
  };
  return <dialog ref={element} aria-label={props.label} onCancel={cancel}>{props.children}</dialog>;
}

/** Gives a text to the reader as a file. */
export function saveText(name: string, text: string, type = "text/plain"): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A heading of a column by which the table is sorted when it is pressed. */
export function SortHead(props: { name: string; by: string; sort: string; onSort: (sort: string) => void; class?: string }) {
  const isUp = props.sort === props.by;
  const isDown = props.sort === `-${props.by}`;
  return (
    <th scope="col" class={props.class} aria-sort={isUp ? "ascending" : isDown ? "descending" : "none"}>
      <button type="button" class="sort" onClick={() => props.onSort(isDown ? props.by : `-${props.by}`)}>
        {props.name}<span aria-hidden="true">{isUp ? " ↑" : isDown ? " ↓" : ""}</span>
      </button>
    </th>
  );
}

export function Progress(props: { value: number | null; label: string }) {
  if (props.value === null) return null;
  return <progress max={1} value={props.value} aria-label={props.label}>{Math.round(props.value * 100)} %</progress>;
}
