// A small view of a text with its line numbers, where problems are marked at their lines. The Tab key
// leaves it, as it leaves any field.
import { useEffect, useRef } from "preact/hooks";
import { Problem } from "./api";

const LINE_PX = 20;
const PADDING_PX = 8;

export interface Picked { line: number; column: number | null; number: number }

export function Code(props: { label: string; text: string; onChange?: (text: string) => void; problems: Problem[]; picked?: Picked | null; rows?: number }) {
  const area = useRef<HTMLTextAreaElement>(null);
  const gutter = useRef<HTMLDivElement>(null);
  const linesCount = props.text.split("\n").length;
  const numbers = Array.from({ length: linesCount }, (_, index) => index + 1).join("\n");
  const scroll = () => {
    if (area.current && gutter.current) gutter.current.style.transform = `translateY(${-area.current.scrollTop}px)`;
  };
  useEffect(() => {
    const { picked } = props;
    const field = area.current;
    if (!picked || !field) return;
    const lines = props.text.split("\n");
    const before = lines.slice(0, picked.line - 1).reduce((sum, line) => sum + line.length + 1, 0);
    const length = lines[picked.line - 1]?.length ?? 0;
    const column = Math.min(length, Math.max(0, (picked.column ?? 1) - 1));
    field.focus();
    field.setSelectionRange(before + column, before + length);
    field.scrollTop = Math.max(0, (picked.line - 4) * LINE_PX);
    scroll();
  }, [props.picked?.number]);
  const marks = new Map<number, string>();
  for (const { line, severity } of props.problems) {
    if (line !== null && marks.get(line) !== "error") marks.set(line, severity);
  }
  return (
    <div class="code" style={{ height: `${(props.rows ?? 20) * LINE_PX + 2 * PADDING_PX}px` }}>
      <div class="gutter" aria-hidden="true">
        <div ref={gutter} class="gutter-lines">
          <pre>{numbers}</pre>
          {[...marks].map(([line, severity]) => (
            <span key={line} class={`mark ${severity}`} style={{ top: `${(line - 1) * LINE_PX + PADDING_PX}px` }}>{line}</span>
          ))}
        </div>
      </div>
      <textarea ref={area} aria-label={props.label} value={props.text} readOnly={!props.onChange} spellcheck={false} autocomplete="off"
        autocapitalize="off" wrap="off" aria-invalid={props.problems.some((of) => of.severity === "error")} data-test="code"
        onScroll={scroll} onInput={(event) => props.onChange?.(event.currentTarget.value)} />
    </div>
  );
}
