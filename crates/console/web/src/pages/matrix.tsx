// One row for each stage, job and kind of operation of any set of runs.
import { Matrix, MatrixRow } from "../api";
import { plural } from "../format";
import { setQuery, useAddress, useAsked } from "../hooks";
import { Check, Empty, Lines, Loaded, Page, SortHead, State, Table } from "../ui";
import { COLUMNS, Column, Download, runHref } from "./parts";

const PRESETS: [string, string[]][] = [
  ["Everything", COLUMNS.map((of) => of.id)],
  ["Times only", COLUMNS.filter((of) => of.group === "times").map((of) => of.id)],
  ["Op rate only", ["rate"]],
  ["Throughput only", ["throughput"]],
];

export function MatrixPage() {
  const { query } = useAddress();
  const runs = (query.get("runs") ?? "").split(",").filter((id) => id !== "");
  const list = runs.map(encodeURIComponent).join(",");
  const ops = query.get("ops") === null ? null : (query.get("ops") ?? "").split(",").filter((of) => of !== "");
  const shown = query.get("metrics")?.split(",") ?? null;
  const columns = COLUMNS.filter((of) => shown === null || shown.includes(of.id));
  const withConfig = query.get("config") === "1";
  const sort = query.get("sort") ?? "";
  const asked = useAsked<Matrix>(runs.length === 0 ? null : `/matrix?runs=${list}`);
  const csv = `/matrix.csv?runs=${list}${ops === null ? "" : `&ops=${ops.join(",")}`}`;
  if (runs.length === 0) {
    return <Page title="Matrix"><Empty>No runs are chosen. <a href="#/history">Choose some in the history</a>.</Empty></Page>;
  }
  return (
    <Page title="Matrix" intro={`The figures of ${plural(runs.length, "run")} side by side; names of columns in COSBench stand in their tips.`}
      actions={<>{runs.length > 1 ? <a class="button" href={`#/compare?runs=${list}`}>Compare</a> : null}<Download path={csv}>Download as CSV</Download></>}>
      <Loaded asked={asked}>
        {(matrix) => {
          const rows = sorted(matrix.rows.filter((row) => ops === null || ops.includes(row.kind)), sort);
          const toggle = (kind: string, on: boolean) => {
            const now = ops ?? matrix.kinds;
            const next = on ? [...now, kind] : now.filter((of) => of !== kind);
            setQuery({ ops: next.length === matrix.kinds.length ? null : next.join(",") || "none" });
          };
          const metric = (column: Column, on: boolean) => {
            const now = columns.map((of) => of.id);
            const next = on ? [...now, column.id] : now.filter((of) => of !== column.id);
            setQuery({ metrics: next.length === COLUMNS.length ? null : next.join(",") || "none" });
          };
          return (
            <>
              <fieldset class="checks"><legend>Operations</legend>{matrix.kinds.map((kind) => <Check key={kind} label={kind} checked={ops === null || ops.includes(kind)} onChange={(on) => toggle(kind, on)} />)}</fieldset>
              <fieldset class="checks"><legend>Figures</legend>
                {COLUMNS.map((column) => <Check key={column.id} label={column.name} checked={columns.includes(column)} onChange={(on) => metric(column, on)} />)}
                <Check label="Configuration" checked={withConfig} onChange={(on) => setQuery({ config: on ? "1" : null })} />
              </fieldset>
              <div class="actions" role="group" aria-label="Sets of figures">
                {PRESETS.map(([name, ids]) => <button type="button" key={name} onClick={() => setQuery({ metrics: ids.length === COLUMNS.length ? null : ids.join(",") })}>{name}</button>)}
              </div>
              <Lines class="note" lines={matrix.missing.map((of) => `${of.run} is not shown: ${of.why}`)} />
              {rows.length === 0 ? <Empty>No figures of the chosen operations.</Empty> : (
                <Table label="Matrix" test="matrix">
                  <thead>
                    <tr>
                      <th scope="col">Run</th><th scope="col" class="text">Name</th><th scope="col" class="text">Stage</th><th scope="col" class="text">Job</th><th scope="col" class="text">Operation</th>
                      {columns.map((column) => <SortHead key={column.id} name={column.name} by={column.id} sort={sort} onSort={(sort) => setQuery({ sort })} />)}
                      {withConfig ? <th scope="col" class="text">Configuration</th> : null}
                    </tr>
                  </thead>
                  <tbody>
                    {rows.map((row, index) => (
                      <tr key={index}>
                        <th scope="row"><a href={runHref(row.run)}>{row.run}</a></th>
                        <td class="text name">{row.run_name} {row.run_state === "finished" ? null : <State state={row.run_state} />}</td><td class="text">{row.stage_id}</td><td class="text">{row.job_name}</td><td class="text">{row.kind}{row.op_name.toUpperCase() !== row.kind ? ` (${row.op_name})` : ""}</td>
                        {columns.map((column) => <td key={column.id} title={column.title} class={column.id === "failed" && row.ops_failed_count > 0 ? "bad" : ""}>{column.text(row)}</td>)}
                        {withConfig ? <td class="text wrap">{row.config ?? "–"}</td> : null}
                      </tr>
                    ))}
                  </tbody>
                </Table>
              )}
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}

function sorted(rows: MatrixRow[], sort: string): MatrixRow[] {
  const column = COLUMNS.find((of) => of.id === sort.replace(/^-/, ""));
  if (!column) return rows;
  const sign = sort.startsWith("-") ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [left, right] = [column.value(a), column.value(b)];
    if (left === null || right === null) return left === right ? 0 : left === null ? 1 : -1;
    return sign * (left - right);
  });
}
