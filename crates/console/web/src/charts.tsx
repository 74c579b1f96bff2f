// Lines over time by uPlot, and the heat map of latency on a canvas. Colours are those of the style
// sheet, so that both follow light and dark.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { Store } from "./api";
import { BIN_LAST, Lines, binFromNs } from "./figures";
import { UNKNOWN, clock, clockAxis, count, duration } from "./format";

/** Counted up when light and dark change: what is drawn on a canvas is drawn again. */
export const painted = new Store(0);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => painted.set(painted.value + 1));

let probe: HTMLElement | null = null;

/** The present value of a colour of the style sheet. */
function colorOf(variable: string): string {
  if (!probe) {
    probe = document.createElement("i");
    probe.hidden = true;
    document.body.append(probe);
  }
  probe.style.color = `var(${variable})`;
  return getComputedStyle(probe).color;
}

export interface ChartProps {
  id: string; title: string; caption: string; lines: Lines;
  /** As it stands beside a name. */
  text: (value: number) => string;
  /** As it stands at the axis; of the largest value shown. */
  axis: (max: number) => (value: number) => string;
  /** What the upright axis measures, with its unit where the values have none. */
  measure: string;
  isLog?: boolean;
  empty: string;
}

const HEIGHT = 240;
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

/** A chart with its legend, which shows the values under the cursor. Left and right move it. */
export function Chart(props: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const legend = useRef<HTMLUListElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const shape = props.lines.lines.map((line) => `${line.name}\n${line.color}`).join("\n\n");
  const isEmpty = props.lines.lines.length === 0 || props.lines.atSec.length === 0;

  useEffect(() => {
    const element = box.current;
    if (!element || isEmpty) return;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(latest.current, element.clientWidth, (index) => say(legend.current, latest.current, index)), dataOf(latest.current.lines), element);
      say(legend.current, latest.current, null);
    };
    draw();
    const resized = new ResizeObserver(() => {
      if (plot.current && element.clientWidth > 0 && element.clientWidth !== plot.current.width) {
        plot.current.setSize({ width: element.clientWidth, height: HEIGHT });
      }
    });
    resized.observe(element);
    const repaint = painted.listen(draw);
    return () => {
      resized.disconnect();
      repaint();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape, isEmpty, props.isLog]);

  useEffect(() => {
    if (!plot.current || isEmpty) return;
    plot.current.setData(dataOf(props.lines));
    say(legend.current, props, plot.current.cursor.idx ?? null);
  }, [props.lines]);

  const move = (event: KeyboardEvent) => {
    const of = plot.current;
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    if (!of || step === undefined) return;
    event.preventDefault();
    const last = props.lines.atSec.length - 1;
    const index = Math.min(last, Math.max(0, (of.cursor.idx ?? last + (step < 0 ? 1 : 0)) + step));
    // The third argument, which its types leave out, moves the cursors of the other charts along.
    const setCursor = of.setCursor as (at: uPlot.Cursor, fire: boolean, publish: boolean) => void;
    setCursor({ left: of.valToPos(props.lines.atSec[index] ?? 0, "x"), top: of.bbox.height / devicePixelRatio / 2 }, true, true);
  };
  return (
    <figure id={props.id} class="chart">
      <figcaption>
        <h3>{props.title}</h3>
        <ul class="legend" ref={legend}>
          {isEmpty ? null : props.lines.lines.map((line) => (
            <li key={line.name}><i class={line.dash ? "dashed" : ""} style={{ color: `var(${line.color})` }} />{line.name} <b /></li>
          ))}
        </ul>
      </figcaption>
      {isEmpty ? <p class="empty">{props.empty}</p> : (
        <div ref={box} class="plot" tabIndex={0} role="img" aria-label={`${props.title}. ${props.caption} Left and right arrow keys move through time.`} onKeyDown={move} />
      )}
      <p class="caption">{props.caption}</p>
    </figure>
  );
}

function dataOf(lines: Lines): uPlot.AlignedData {
  return [lines.atSec, ...lines.lines.map((line) => line.values)];
}

/** Writes values into the legend: those under the cursor, or the last ones. */
function say(list: HTMLUListElement | null, props: ChartProps, index: number | null): void {
  if (!list) return;
  for (const [place, value] of [...list.querySelectorAll("b")].entries()) {
    const values = props.lines.lines[place]?.values ?? [];
    const shown = index === null ? values.findLast((of) => of !== null) : values[index];
    value.textContent = shown == null ? UNKNOWN : props.text(shown);
  }
}

/** Of the splits of a logarithmic axis the powers of ten; all of them where fewer than two are there. */
function tens(_: uPlot, splits: number[]): (number | null)[] {
  const kept = splits.map((of) => (Math.abs(Math.log10(of) - Math.round(Math.log10(of))) < 1e-6 ? of : null));
  return kept.filter((of) => of !== null).length < 2 ? splits : kept;
}

function options(props: ChartProps, width: number, onCursor: (index: number | null) => void): uPlot.Options {
  const grid = { stroke: colorOf("--grid"), width: 1 };
  const axis = { stroke: colorOf("--dim"), grid, ticks: { ...grid, size: 4 }, font: FONT, labelFont: FONT, labelSize: 20 };
  return {
    width: Math.max(200, width),
    height: HEIGHT,
    legend: { show: false },
    cursor: { sync: { key: "time" }, drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      x: { time: true },
      y: props.isLog ? { distr: 3, log: 10 } : { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] },
    },
    axes: [
      { ...axis, ...clockAxis, label: "time", space: 76, size: 30 },
      {
        ...axis, label: props.measure, size: 62,
        values: (of, values) => {
          const text = props.axis(of.scales["y"]?.max ?? 0);
          return values.map((value) => (value == null ? "" : text(value)));
        },
        ...(props.isLog ? { filter: tens, grid: { ...grid, filter: tens }, ticks: { ...grid, size: 4, filter: tens } } : {}),
      },
    ],
    series: [
      {},
      ...props.lines.lines.map((line) => ({
        label: line.name, stroke: colorOf(line.color), width: 1.75, spanGaps: false,
        ...(line.dash ? { dash: [5, 4] } : {}),
        points: { show: line.values.filter((of) => of !== null).length < 3 },
      })),
    ],
    hooks: { setCursor: [(of) => onCursor(of.cursor.idx ?? null)] },
  };
}

/** A cell of time: its end, its length, and how many operations of each latency ended in it. */
export interface HeatCell { atMs: number; ms: number; bins: [number, number][] }

const HEAT_HEIGHT = 240;
const LEFT = 62;
const BOTTOM = 24;

/** How many operations took how long in each cell of time: darker is more. */
export function HeatMap(props: { cells: HeatCell[] }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const words = useRef<HTMLParagraphElement>(null);
  const at = useRef<number | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const range = heatRange(props.cells);

  useEffect(() => {
    const draw = () => canvas.current && drawHeat(canvas.current, latest.current.cells);
    draw();
    const resized = new ResizeObserver(draw);
    if (canvas.current?.parentElement) resized.observe(canvas.current.parentElement);
    const repaint = painted.listen(draw);
    return () => {
      resized.disconnect();
      repaint();
    };
  }, [range === null]);
  useEffect(() => {
    if (canvas.current) drawHeat(canvas.current, props.cells);
  }, [props.cells, props.cells.length]);

  const read = (cell: HeatCell | undefined, bin: number | null) => {
    if (!words.current || !cell) return;
    const most = cell.bins.reduce<[number, number] | null>((top, of) => (top === null || of[1] > top[1] ? of : top), null);
    const chosen = bin === null ? most : cell.bins.find((of) => of[0] === bin) ?? [bin, 0];
    words.current.textContent = chosen === null ? `${clock(cell.atMs)}: nothing ended`
      : `${clock(cell.atMs)}: ${count(chosen[1])} operations took ${duration(binFromNs(chosen[0]))} to ${chosen[0] >= BIN_LAST ? "any time" : duration(binFromNs(chosen[0] + 1))}`;
  };
  const point = (event: PointerEvent) => {
    const element = canvas.current;
    if (!element || range === null) return;
    const x = (event.offsetX - LEFT) / (element.clientWidth - LEFT);
    const y = 1 - event.offsetY / (element.clientHeight - BOTTOM);
    if (x < 0 || y < 0) return;
    const [from, to] = heatSpan(props.cells);
    const cell = props.cells.find((of) => of.atMs > from + x * (to - from));
    read(cell, range[0] + Math.floor(y * (range[1] - range[0] + 1)));
  };
  const move = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    at.current = Math.min(props.cells.length - 1, Math.max(0, (at.current ?? props.cells.length - (step < 0 ? 0 : 1)) + step));
    read(props.cells[at.current], null);
  };
  return (
    <figure id="heat" class="chart wide">
      <figcaption><h3>Latency heat map</h3></figcaption>
      {range === null ? <p class="empty">No operation has ended yet.</p> : (
        <div class="plot" tabIndex={0} role="img" onKeyDown={move}
          aria-label="Latency heat map: for each moment, how many operations took how long. Left and right arrow keys move through time and read out the most common latency.">
          <canvas ref={canvas} onPointerMove={point} />
        </div>
      )}
      <p class="caption" ref={words} aria-live="polite">Each column is a cell of time, each line a range of latency (eight to a factor of ten); stronger is more operations.</p>
    </figure>
  );
}

function heatRange(cells: HeatCell[]): [number, number] | null {
  let low = BIN_LAST + 1;
  let high = -1;
  for (const { bins } of cells) {
    for (const [bin] of bins) {
      low = Math.min(low, bin);
      high = Math.max(high, bin);
    }
  }
  return high < 0 ? null : [Math.max(0, low - 1), Math.min(BIN_LAST, high + 1)];
}

/** From when to when there are cells. */
function heatSpan(cells: HeatCell[]): [number, number] {
  const first = cells[0];
  return [first ? first.atMs - first.ms : 0, cells[cells.length - 1]?.atMs ?? 0];
}

function drawHeat(canvas: HTMLCanvasElement, cells: HeatCell[]): void {
  const range = heatRange(cells);
  const width = canvas.parentElement?.clientWidth ?? 0;
  const context = canvas.getContext("2d");
  if (range === null || !context || width < LEFT + 20) return;
  const ratio = devicePixelRatio;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(HEAT_HEIGHT * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${HEAT_HEIGHT}px`;
  context.scale(ratio, ratio);
  const [low, high] = range;
  const plotWidth = width - LEFT;
  const plotHeight = HEAT_HEIGHT - BOTTOM;
  const rowHeight = plotHeight / (high - low + 1);
  const [first, end] = heatSpan(cells);
  const span = Math.max(1, end - first);
  const x = (atMs: number) => LEFT + ((atMs - first) / span) * plotWidth;
  // Per second, as cells differ in length.
  let most = 1;
  for (const { ms, bins } of cells) for (const [, of] of bins) most = Math.max(most, (of * 1000) / ms);
  context.fillStyle = colorOf("--tile");
  context.fillRect(LEFT, 0, plotWidth, plotHeight);
  context.fillStyle = colorOf("--heat");
  // Whole pixels, so that neighbours neither overlap nor leave a seam.
  const pixel = (of: number) => Math.round(of * ratio) / ratio;
  for (const { atMs, ms, bins } of cells) {
    const left = pixel(x(atMs - ms));
    const cellWidth = Math.max(1 / ratio, pixel(x(atMs)) - left);
    for (const [bin, of] of bins) {
      if (of <= 0) continue;
      const top = pixel(plotHeight - (bin - low + 1) * rowHeight);
      context.globalAlpha = 0.1 + 0.9 * (Math.log1p((of * 1000) / ms) / Math.log1p(most));
      context.fillRect(left, top, cellWidth, pixel(plotHeight - (bin - low) * rowHeight) - top);
    }
  }
  context.globalAlpha = 1;
  context.fillStyle = colorOf("--dim");
  context.strokeStyle = colorOf("--grid");
  context.font = FONT;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (let bin = low; bin <= high + 1; bin += 1) {
    if ((bin - 1) % 8 !== 0) continue;
    const y = plotHeight - (bin - low) * rowHeight;
    context.beginPath();
    context.moveTo(LEFT, y);
    context.lineTo(width, y);
    context.stroke();
    context.fillText(duration(binFromNs(bin)).replace(/\.0+ /, " "), LEFT - 8, Math.min(plotHeight - 6, Math.max(7, y)));
  }
  context.textAlign = "center";
  context.textBaseline = "top";
  // No two labels within a second: they would read alike.
  const steps = Math.max(1, Math.floor(Math.min(plotWidth / 130, span / 1000)));
  for (let step = 0; step <= steps; step += 1) {
    const left = LEFT + (step / steps) * plotWidth;
    context.textAlign = step === 0 ? "left" : step === steps ? "right" : "center";
    context.fillText(clock(first + (step / steps) * span), left, plotHeight + 8);
  }
}
