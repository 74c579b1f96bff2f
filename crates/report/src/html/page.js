// Draws the charts of the page again, with uPlot, to be pointed at, zoomed and toggled. The drawings
// that stand in the page stay for print. Every text is set as text, never as HTML.
"use strict";
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const root = document.documentElement;
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const colour = (number) => css("--s" + number);
  const element = (tag, of, text) => {
    const made = document.createElement(tag);
    if (of) made.className = of;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  const number = (value) => {
    const size = Math.abs(value);
    const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 || size === 0 ? 2 : 4;
    return value.toLocaleString("en", { minimumFractionDigits: size < 100 ? Math.min(digits, 2) : 0,
      maximumFractionDigits: digits });
  };
  const duration = (ns) => {
    const units = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
    const [unit, name] = units.find(([unit]) => ns >= unit) || units[3];
    return Number((ns / unit).toPrecision(3)) + " " + name;
  };
  const offset = (seconds) => {
    if (seconds < 120) return Number(seconds.toFixed(seconds < 10 ? 3 : 2)) + " s";
    const whole = Math.round(seconds);
    const two = (part) => String(part).padStart(2, "0");
    const [h, min, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
    return h > 0 ? h + ":" + two(min) + ":" + two(s) + " h" : min + ":" + two(s) + " min";
  };
  const nearest = (ticks, value) => ticks.reduce((best, tick) =>
    Math.abs(tick[0] - value) < Math.abs(best[0] - value) ? tick : best)[1];
  const told = (axis, value) => {
    switch (axis.reads) {
      case "time": return duration(value);
      case "offset": return offset(value);
      case "share": return Number((100 * (1 - 10 ** -value)).toPrecision(6)) + " %";
      case "label": return nearest(axis.ticks, value);
      default: return number(value) + (axis.unit ? " " + axis.unit : "");
    }
  };

  // One chart of each group leads while all others follow what it was zoomed to.
  const groups = new Map();
  let follows = false;
  const zoomed = (plot, chart) => {
    const { min, max } = plot.scales.x;
    if (min === undefined || min === null) return;
    chart.reset.hidden = min <= chart.x.low && max >= chart.x.high;
    if (follows) return;
    follows = true;
    for (const other of groups.get(chart.group) || []) {
      if (other.plot && other.plot !== plot) other.plot.setScale("x", { min, max });
    }
    follows = false;
  };
  const whole = (chart) => chart.plot.setScale("x", { min: chart.x.low, max: chart.x.high });

  const drawBehind = (plot, chart) => {
    const { ctx } = plot;
    const { left, top, width, height } = plot.bbox;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    const place = (x) => plot.valToPos(x, "x", true);
    drawStretches(plot, chart, place);
    if (chart.heat) drawHeat(plot, chart, place);
    for (const [from, until, number] of chart.bands) {
      if (chart.off.has(number)) continue;
      ctx.globalAlpha = 0.16;
      ctx.fillStyle = colour(number);
      const begin = place(from);
      ctx.fillRect(begin, top, Math.max(2, place(until) - begin), height);
    }
    ctx.globalAlpha = 1;
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.font = 12 * devicePixelRatio + "px system-ui, sans-serif";
    ctx.textAlign = "left";
    ctx.textBaseline = "top";
    for (const [at, number, text, label] of chart.uprights) {
      if (chart.off.has(text)) continue;
      ctx.strokeStyle = colour(number);
      ctx.beginPath();
      ctx.moveTo(place(at), top);
      ctx.lineTo(place(at), top + height);
      ctx.stroke();
      ctx.fillStyle = css("--dim");
      ctx.fillText(label, place(at) + 4 * devicePixelRatio, top + 2 * devicePixelRatio);
    }
    ctx.restore();
  };
  // What the chart is cut into: every other one shaded, the longest that are seen named first.
  const drawStretches = (plot, chart, place) => {
    const { ctx } = plot;
    const { left, top, width, height } = plot.bbox;
    const right = left + width;
    const seen = chart.stretches.map(([from, until, name], index) =>
      ({ name, index, from: Math.max(left, place(from)), until: Math.min(right, place(until)) }))
      .filter(({ from, until }) => until > from);
    ctx.fillStyle = css("--stretch");
    for (const { index, from, until } of seen) {
      if (index % 2 === 1) ctx.fillRect(from, top, until - from, height);
    }
    ctx.fillStyle = css("--dim");
    ctx.font = 12 * devicePixelRatio + "px system-ui, sans-serif";
    ctx.textAlign = "center";
    ctx.textBaseline = "top";
    const taken = [];
    for (const { name, from, until } of seen.sort((a, b) => b.until - b.from - a.until + a.from)) {
      const half = ctx.measureText(name).width / 2 + 5 * devicePixelRatio;
      const middle = Math.min(right - half, Math.max(left + half, (from + until) / 2));
      if (2 * half > width || taken.some((at) => Math.abs(at.middle - middle) < at.half + half)) continue;
      taken.push({ middle, half });
      ctx.fillText(name, middle, top + 3 * devicePixelRatio);
    }
  };
  const drawHeat = (plot, chart, place) => {
    const { heat } = chart;
    const { ctx } = plot;
    const { top, height } = plot.bbox;
    ctx.fillStyle = colour(heat.color);
    heat.cells.forEach((cells, at) => {
      const begin = Math.floor(place(heat.from + at * heat.width));
      const end = Math.floor(place(heat.from + (at + 1) * heat.width));
      for (let i = 0; i < cells.length; i += 2) {
        const low = top + height * (1 - cells[i] / heat.rows);
        const high = top + height * (1 - (cells[i] + 1) / heat.rows);
        ctx.globalAlpha = 0.18 + 0.82 * Math.log(cells[i + 1]) / Math.log(Math.max(2, heat.max));
        const floor = Math.floor(high);
        ctx.fillRect(begin, floor, Math.max(1, end - begin), Math.floor(low) - floor);
      }
    });
    ctx.globalAlpha = 1;
  };

  // What a heat map says at a place.
  const heatAt = (chart, x, y) => {
    const { heat } = chart;
    const cells = heat.cells[Math.floor((x - heat.from) / heat.width)];
    if (!cells || y === undefined || y <= 0) return "";
    const [low, high] = [Math.log(chart.y.low), Math.log(chart.y.high)];
    const row = Math.floor(heat.rows * (Math.log(y) - low) / (high - low));
    const edge = (row) => duration(Math.exp(low + (high - low) * row / heat.rows));
    let count = 0;
    for (let i = 0; i < cells.length; i += 2) if (cells[i] === row) count = cells[i + 1];
    return edge(row) + " to " + edge(row + 1) + ": " + number(count)
      + (count === 1 ? " operation" : " operations");
  };

  // Values at a place are those of the nearest point of each series.
  const pointAt = (series, x, reach) => {
    let best = -1;
    series.at.forEach((at, index) => {
      if (best < 0 || Math.abs(at - x) < Math.abs(series.at[best] - x)) best = index;
    });
    return best >= 0 && Math.abs(series.at[best] - x) <= reach ? series.y[best] : undefined;
  };
  const between = (series, x) => {
    const next = series.at.findIndex((at) => at > x);
    return next > 0 ? series.y[next - 1] : series.y[series.y.length - 1];
  };

  const tell = (plot, chart) => {
    const { left, top } = plot.cursor;
    const { tip } = chart;
    if (left === undefined || left === null || left < 0) {
      tip.hidden = true;
      return;
    }
    const x = plot.posToVal(left, "x");
    const reach = Math.max(chart.step, (plot.scales.x.max - plot.scales.x.min) / 100);
    tip.replaceChildren(element("b", "", told(chart.x, x)));
    for (const [from, until, name] of chart.stretches) {
      if (x >= from && x < until) tip.append(element("p", "", "stage: " + name));
    }
    const table = element("table");
    for (const series of chart.series) {
      if (series.hidden) continue;
      const value = series.name === "offered" ? between(series, x) : pointAt(series, x, reach);
      if (value === undefined) continue;
      const row = element("tr");
      const name = element("td");
      const key = element("i", series.look);
      key.style.color = colour(series.color);
      name.append(key, series.name);
      row.append(name, element("td", "", value === null ? "–" : told(chart.y, value)));
      table.append(row);
    }
    tip.append(table);
    if (chart.heat) {
      const y = top >= 0 ? plot.posToVal(top, "y") : undefined;
      tip.append(element("p", "", heatAt(chart, x, y)));
    }
    const near = (plot.scales.x.max - plot.scales.x.min) / 150;
    for (const [from, until, number, text] of chart.bands) {
      if (!chart.off.has(number) && x >= from - near && x <= until + near) tip.append(element("p", "bad", text));
    }
    for (const [at, , text] of chart.uprights) {
      if (!chart.off.has(text) && Math.abs(x - at) <= near) tip.append(element("p", "", text));
    }
    tip.hidden = false;
    const box = plot.over;
    const right = left + 14 + tip.offsetWidth > box.clientWidth;
    tip.style.left = box.offsetLeft + Math.max(0, right ? left - 14 - tip.offsetWidth : left + 14)
      + "px";
    tip.style.top = box.offsetTop + 8 + "px";
  };

  const axisOf = (axis, isX, chart) => {
    const labels = new Map(axis.ticks);
    const isWhole = (plot) => plot.scales.x.min <= chart.x.low && plot.scales.x.max >= chart.x.high;
    const own = (plot) => !isX || (axis.reads !== "offset" && axis.reads !== "number")
      || isWhole(plot);
    const made = {
      stroke: () => css("--dim"), grid: { stroke: () => css("--grid"), width: 1, show: !isX },
      ticks: { stroke: () => css("--frame"), width: 1, size: 5 },
      border: { show: true, stroke: () => css("--frame"), width: 1 },
      font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
      label: axis.title || undefined, labelSize: axis.title ? 18 : 0,
      splits: (plot, index, min, max, step) => {
        if (own(plot)) return axis.ticks.map(([value]) => value);
        const splits = [];
        for (let at = Math.ceil(min / step) * step; at <= max; at += step) splits.push(at);
        return splits;
      },
      values: (plot, splits) => splits.map((value) =>
        own(plot) ? labels.get(value) ?? "" : told(axis, Number(value.toPrecision(9)))),
      filter: (plot, splits) => splits,
    };
    if (isX) made.size = 30;
    else made.size = 22 + 6.6 * Math.max(...axis.ticks.map(([, label]) => label.length));
    return made;
  };

  // Only points between gaps are drawn as such: a line does not show them.
  const alone = (plot, index) => {
    const values = plot.data[index];
    // What has no place in this series is undefined, a gap is null.
    const isGap = (at, step) => {
      while (at >= 0 && at < values.length && values[at] === undefined) at += step;
      return values[at] === null || values[at] === undefined;
    };
    const found = [];
    values.forEach((value, at) => {
      const isValue = value !== null && value !== undefined;
      if (isValue && isGap(at - 1, -1) && isGap(at + 1, 1)) found.push(at);
    });
    return found;
  };

  const optionsOf = (chart, width) => ({
    width, height: chart.height,
    padding: [10, 20, 0, 0],
    legend: { show: false },
    cursor: {
      y: Boolean(chart.heat), points: { size: 7 },
      drag: { x: true, y: false, setScale: true },
      sync: chart.group ? { key: chart.group, setSeries: false } : undefined,
      bind: { dblclick: () => () => { whole(chart); return null; } },
    },
    scales: {
      x: { time: false, range: (plot, min, max) => min === null || min === max
        ? [chart.x.low, chart.x.high] : [min, max] },
      y: { distr: chart.y.log ? 3 : 1, range: () => [chart.y.low, chart.y.high] },
    },
    axes: [axisOf(chart.x, true, chart), axisOf(chart.y, false, chart)],
    series: [{}, ...chart.series.map((series) => ({
      label: series.name, scale: "y", stroke: () => colour(series.color),
      width: series.width * 0.6, dash: series.dash ? series.dash.map((n) => n / 2) : undefined,
      points: series.dots ? { show: true, size: 6, fill: () => colour(series.color) }
        : { show: true, size: 5, fill: () => colour(series.color), filter: alone },
      spanGaps: false,
    }))],
    hooks: {
      drawClear: [(plot) => drawBehind(plot, chart)],
      setScale: [(plot, key) => key === "x" && zoomed(plot, chart)],
      setCursor: [(plot) => tell(plot, chart)],
    },
  });

  const dataOf = (chart) => chart.series.length === 0
    ? [[chart.x.low, chart.x.high]]
    : uPlot.join(chart.series.map((series) => [series.at, series.y]));

  // An entry of the legend becomes a button; what it does is told whether it is shown.
  const button = (entry, pressed) => {
    const made = element("button");
    made.type = "button";
    made.setAttribute("aria-pressed", "true");
    made.append(...entry.childNodes);
    made.addEventListener("click", () => {
      const isShown = made.getAttribute("aria-pressed") === "false";
      made.setAttribute("aria-pressed", String(isShown));
      pressed(isShown);
    });
    entry.append(made);
  };
  const toggles = (chart, figure) => {
    const entries = [...figure.querySelectorAll(".legend li:not([data-mark])")];
    chart.series.forEach((series, index) => {
      if (entries[index]) button(entries[index], (isShown) => {
        series.hidden = !isShown;
        chart.plot.setSeries(index + 1, { show: isShown });
      });
    });
    // Uprights without a label have an entry for each text, in their order.
    const texts = new Set(chart.uprights.filter((of) => !of[3]).map((of) => of[2])).values();
    for (const entry of figure.querySelectorAll(".legend li[data-mark]")) {
      const number = Number(entry.dataset.mark);
      const isBand = chart.bands.some((band) => band[2] === number);
      const of = isBand ? number : texts.next().value;
      button(entry, (isShown) => {
        if (isShown) chart.off.delete(of);
        else chart.off.add(of);
        chart.plot.redraw(false);
      });
    }
  };

  // A finger: a tap tells what is there, a drag to the side zooms to what it went over, two taps
  // show all again. Up and down it scrolls the page, which the browser does by itself.
  const TAP = 10, TWICE = 350;
  const touches = (chart) => {
    const { plot } = chart;
    const { over } = plot;
    const left = (event) => {
      const box = over.getBoundingClientRect();
      return Math.min(box.width, Math.max(0, event.clientX - box.left));
    };
    const select = (from, until) => plot.setSelect({ left: Math.min(from, until), top: 0,
      width: Math.abs(until - from), height: until === from ? 0 : over.clientHeight }, false);
    const point = (event) => plot.setCursor({ left: left(event),
      top: event.clientY - over.getBoundingClientRect().top }, true, true);
    let start = null, last = -TWICE;
    over.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "touch" || !event.isPrimary) return;
      // No mouse events of the same touch.
      event.preventDefault();
      start = left(event);
    });
    over.addEventListener("pointermove", (event) => {
      if (start === null || event.pointerType !== "touch") return;
      point(event);
      if (Math.abs(left(event) - start) > TAP) select(start, left(event));
    });
    over.addEventListener("pointercancel", () => {
      start = null;
      select(0, 0);
    });
    over.addEventListener("pointerup", (event) => {
      if (start === null || event.pointerType !== "touch") return;
      const [from, until] = [Math.min(start, left(event)), Math.max(start, left(event))];
      start = null;
      select(0, 0);
      if (until - from > TAP) {
        plot.setScale("x", { min: plot.posToVal(from, "x"), max: plot.posToVal(until, "x") });
      } else if (event.timeStamp - last < TWICE) {
        whole(chart);
        last = -TWICE;
      } else {
        point(event);
        last = event.timeStamp;
      }
    });
  };

  const make = (chart) => {
    const figure = document.getElementById(chart.id);
    const svg = figure && figure.querySelector(":scope > svg");
    if (!svg) return;
    const holder = element("div", "live");
    chart.off = new Set();
    chart.tip = element("div", "tip");
    chart.tip.hidden = true;
    chart.reset = element("button", "reset", "reset zoom");
    chart.reset.type = "button";
    chart.reset.hidden = true;
    chart.reset.addEventListener("click", () => whole(chart));
    svg.before(holder);
    figure.classList.add("is-live");
    for (const series of chart.series) series.at = chart.xs[series.x];
    const gaps = chart.series.flatMap(({ at }) => at.length > 1 ? [at[1] - at[0]] : []);
    chart.step = gaps.length > 0 ? Math.max(...gaps.filter((gap) => gap < chart.x.high / 2), 0) : 0;
    const options = optionsOf(chart, holder.clientWidth);
    chart.plot = new uPlot(options, dataOf(chart), holder);
    whole(chart);
    holder.append(chart.tip, chart.reset);
    toggles(chart, figure);
    touches(chart);
    if (chart.group) {
      if (!groups.has(chart.group)) groups.set(chart.group, []);
      groups.get(chart.group).push(chart);
    }
    new ResizeObserver(() => {
      const { width, height } = chart.plot;
      const now = holder.clientWidth;
      if (now > 0 && now !== width) chart.plot.setSize({ width: now, height });
    }).observe(holder);
  };

  charts.forEach(make);
  // What a tap told goes with one elsewhere.
  document.addEventListener("pointerdown", ({ pointerType, target }) => {
    if (pointerType !== "touch" || target.closest(".u-over")) return;
    for (const { tip } of charts) if (tip) tip.hidden = true;
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    charts.forEach(({ plot }) => plot && plot.redraw(false)));
})();
