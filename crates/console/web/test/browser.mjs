// A headless Chromium over its DevTools pipe: enough of it to click through pages and look at them.
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const WAIT_MS = 15_000;

export async function launch(executable = process.env.CHROMIUM ?? "chromium") {
  const profile = await mkdtemp(join(tmpdir(), "plimsoll-console-"));
  const args = ["--headless=new", "--remote-debugging-pipe", `--user-data-dir=${profile}`, "--no-first-run", "--disable-gpu", "--disable-extensions", "--disable-background-networking", "--hide-scrollbars", "--force-color-profile=srgb", "--lang=en", "about:blank"];
  if (process.getuid?.() === 0) args.unshift("--no-sandbox");
  const child = spawn(executable, args, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  const [, , , input, output] = child.stdio;
  let number = 0;
  let rest = "";
  const waiting = new Map();
  const listeners = new Map();
  output.setEncoding("utf8");
  output.on("data", (chunk) => {
    const parts = (rest + chunk).split("\0");
    rest = parts.pop() ?? "";
    for (const part of parts) {
      const message = JSON.parse(part);
      if (message.id !== undefined) {
        const of = waiting.get(message.id);
        waiting.delete(message.id);
        if (message.error) of?.reject(new Error(`${of.method}: ${message.error.message}`));
        else of?.resolve(message.result);
      } else {
        listeners.get(message.sessionId)?.(message.method, message.params);
      }
    }
  });
  child.on("exit", () => { for (const of of waiting.values()) of.reject(new Error("the browser has ended")); });
  const send = (method, params = {}, sessionId = undefined) => new Promise((resolve, reject) => {
    number += 1;
    waiting.set(number, { resolve, reject, method });
    input.write(`${JSON.stringify({ id: number, method, params, sessionId })}\0`);
  });
  return {
    async newPage() {
      const { browserContextId } = await send("Target.createBrowserContext");
      const { targetId } = await send("Target.createTarget", { url: "about:blank", browserContextId });
      const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
      const page = new Page((method, params) => send(method, params, sessionId));
      listeners.set(sessionId, (method, params) => page.heard(method, params));
      await page.prepare();
      return page;
    },
    async close() {
      const gone = new Promise((done) => child.once("exit", done));
      await send("Browser.close").catch(() => undefined);
      await gone;
      await rm(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
  };
}

export class Page {
  /** What the page complained of: exceptions, errors of the console, violations of the policy. */
  complaints = [];
  /** Failed requests that a test has asked for. */
  expected = [];

  constructor(send) {
    this.send = send;
  }

  async prepare() {
    for (const domain of ["Page", "Runtime", "Log", "DOM"]) await this.send(`${domain}.enable`);
    await this.send("Page.addScriptToEvaluateOnNewDocument", { source: `
      window.__violations = [];
      document.addEventListener("securitypolicyviolation", (event) => window.__violations.push(event.violatedDirective + " " + event.blockedURI));
      window.alert = () => window.__violations.push("alert was called: a name ran as a script");
    ` });
  }

  heard(method, params) {
    if (method === "Runtime.exceptionThrown") this.complaints.push(`exception: ${params.exceptionDetails.exception?.description ?? params.exceptionDetails.text}`);
    if (method === "Runtime.consoleAPICalled" && ["error", "warning", "assert"].includes(params.type)) this.complaints.push(`console: ${params.args.map((of) => of.value ?? of.description).join(" ")}`);
    if (method === "Log.entryAdded" && params.entry.level === "error") {
      const text = `${params.entry.text} ${params.entry.url ?? ""}`;
      if (!this.expected.some((pattern) => pattern.test(text))) this.complaints.push(`log: ${text}`);
    }
  }

  async evaluate(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(`${exceptionDetails.exception?.description ?? exceptionDetails.text} in ${expression.slice(0, 200)}`);
    return result.value;
  }

  /** Waits until an expression is true; fails with what was waited for. */
  async until(expression, what = expression, waitMs = WAIT_MS) {
    const end = Date.now() + waitMs;
    for (;;) {
      const value = await this.evaluate(`(() => { try { return ${expression}; } catch { return null; } })()`);
      if (value) return value;
      if (Date.now() > end) throw new Error(`waited ${waitMs / 1000} s in vain for: ${what}\nat ${await this.evaluate("location.href")}\n${(await this.evaluate("document.body.innerText")).slice(0, 1500)}`);
      await new Promise((done) => setTimeout(done, 40));
    }
  }

  async size(width, height, isDark) {
    await this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
    await this.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: isDark ? "dark" : "light" }, { name: "prefers-reduced-motion", value: "reduce" }] });
  }

  async open(url) {
    await this.send("Page.navigate", { url });
    await this.until("document.readyState === 'complete' && document.querySelector('#app').children.length > 0", `the page ${url}`);
  }

  text(selector = "body") {
    return this.evaluate(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ""`);
  }

  /** The first seen element with this role or tag and this name, as an expression. */
  named(selector, name) {
    return `[...document.querySelectorAll(${JSON.stringify(selector)})].find((of) => of.checkVisibility() && (of.getAttribute("aria-label") ?? of.innerText).trim() === ${JSON.stringify(name)})`;
  }

  /** A field by the text of its label. */
  field(label, within = "body", index = 0) {
    return `[...document.querySelector(${JSON.stringify(within)}).querySelectorAll("label")].filter((of) => of.innerText.split("\\n")[0].trim() === ${JSON.stringify(label)}).map((of) => of.control)[${index}]`;
  }

  /** Clicks with the mouse in the middle of an element. */
  async click(element) {
    await this.until(`!!(${element}) && !(${element}).disabled`, `something to click: ${element}`);
    const { x, y } = await this.evaluate(`(() => { const of = ${element}; of.scrollIntoView({ block: "center", inline: "center", behavior: "instant" }); const box = of.getBoundingClientRect(); return { x: box.x + box.width / 2, y: box.y + box.height / 2 }; })()`);
    for (const type of ["mouseMoved", "mousePressed", "mouseReleased"]) await this.send("Input.dispatchMouseEvent", { type, x, y, button: type === "mouseMoved" ? "none" : "left", clickCount: type === "mouseMoved" ? 0 : 1 });
  }

  clickNamed(selector, name) {
    return this.click(this.named(selector, name));
  }

  async fill(element, text) {
    await this.until(`!!(${element})`, `a field: ${element}`);
    await this.evaluate(`(() => { const of = ${element}; of.focus(); of.select(); })()`);
    await this.key("Delete");
    if (text !== "") await this.send("Input.insertText", { text });
  }

  async choose(element, value) {
    await this.until(`!!(${element})`, `a choice: ${element}`);
    await this.evaluate(`(() => { const of = ${element}; of.value = ${JSON.stringify(value)}; of.dispatchEvent(new Event("change", { bubbles: true })); })()`);
  }

  async key(key, shift = false) {
    const codes = { Tab: 9, Enter: 13, Escape: 27, Delete: 46, ArrowLeft: 37, ArrowRight: 39, " ": 32 };
    const common = { key, code: key === " " ? "Space" : key, windowsVirtualKeyCode: codes[key] ?? 0, modifiers: shift ? 8 : 0 };
    const text = key === "Enter" ? "\r" : key === " " ? " " : undefined;
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", ...common, ...(text ? { text } : {}) });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...common });
  }

  async picture(path, whole = true) {
    const { cssContentSize } = await this.send("Page.getLayoutMetrics");
    const width = await this.evaluate("innerWidth");
    const height = whole ? Math.min(5000, Math.ceil(cssContentSize.height)) : await this.evaluate("innerHeight");
    const { data } = await this.send("Page.captureScreenshot", { format: "png", captureBeyondViewport: true, clip: { x: 0, y: 0, width, height, scale: 1 } });
    await writeFile(path, Buffer.from(data, "base64"));
  }

  /** What is wrong with the page as it is: too wide, nameless controls, pale text, complaints. */
  async faults() {
    const faults = await this.evaluate(`(${inspect})()`);
    faults.push(...this.complaints, ...(await this.evaluate("window.__violations")).map((of) => `policy: ${of}`));
    return faults;
  }

  /** Goes through the page by the Tab key; returns what is wrong with the order or the look of focus. */
  async tabThrough(max = 400) {
    await this.evaluate("document.activeElement?.blur(); window.getSelection().removeAllRanges(); scrollTo(0, 0); window.__seen = []; void 0");
    await this.evaluate("(() => { const first = document.querySelector('.skip'); if (first) { first.focus(); window.__seen.push(first); } })()");
    const faults = [];
    for (let step = 0; step < max; step += 1) {
      await this.key("Tab");
      const state = await this.evaluate(`(() => {
        const of = document.activeElement;
        if (!of || of === document.body || window.__seen.includes(of) && of.type !== "radio") return { isRound: true, isSame: of === window.__seen.at(-1), count: window.__seen.length, what: of?.outerHTML.slice(0, 120) };
        const before = window.__seen.at(-1);
        const isOrdered = !before || Boolean(before.compareDocumentPosition(of) & Node.DOCUMENT_POSITION_FOLLOWING);
        window.__seen.push(of);
        const style = getComputedStyle(of);
        const holder = of.closest(".code");
        const isSeen = of.checkVisibility() && (style.outlineStyle !== "none" || holder && getComputedStyle(holder).outlineStyle !== "none");
        return { isOrdered, isSeen, what: of.outerHTML.slice(0, 120) };
      })()`);
      if (state.isRound) {
        if (state.isSame) faults.push(`the Tab key does not leave ${state.what}`);
        if (state.count < 3) faults.push("the Tab key reaches next to nothing");
        return faults;
      }
      if (!state.isOrdered) faults.push(`focus goes back to ${state.what}`);
      if (!state.isSeen) faults.push(`focus is not seen on ${state.what}`);
    }
    return faults;
  }
}

/** Runs in the page. */
function inspect() {
  const faults = [];
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) {
    const wide = [...document.querySelectorAll("body *")].filter((of) => of.getBoundingClientRect().right > width + 1 && !of.closest(".table, .code, pre, .log, .sr")).slice(0, 3).map((of) => of.outerHTML.slice(0, 140));
    faults.push(`the page is ${document.documentElement.scrollWidth} px wide in ${width} px: ${wide.join(" | ")}`);
  }
  const headings = [...document.querySelectorAll("h1")].filter((of) => of.checkVisibility());
  if (headings.length < 1) faults.push("there is no h1");
  if (document.title === "") faults.push("there is no title");
  if (document.querySelectorAll("script").length !== 1) faults.push("there is more than one script element");
  for (const of of document.querySelectorAll("[style]")) if (of.getAttribute("style")?.includes("url(")) faults.push(`style with a URL: ${of.outerHTML.slice(0, 100)}`);
  if (document.querySelector("img:not([src='icon.svg'])")) faults.push("an image that is not ours");
  const ids = new Set();
  for (const of of document.querySelectorAll("[id]")) {
    if (ids.has(of.id)) faults.push(`two elements have the id ${of.id}`);
    ids.add(of.id);
  }
  for (const of of document.querySelectorAll("a[href], button, input, select, textarea, [tabindex='0']")) {
    if (!of.checkVisibility() || of.closest("[aria-hidden='true']")) continue;
    const name = of.getAttribute("aria-label") ?? (of.labels?.length ? [...of.labels].map((label) => label.innerText).join(" ") : of.innerText);
    if (!name || name.trim() === "") faults.push(`a control without a name: ${of.outerHTML.slice(0, 140)}`);
  }
  for (const table of document.querySelectorAll("table")) if (!table.querySelector("thead th[scope='col']")) faults.push("a table without headings");
  // Contrast of text against what lies under it (WCAG AA).
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const parse = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const luminance = ([red, green, blue]) => {
    const part = (value) => { const of = value / 255; return of <= 0.03928 ? of / 12.92 : ((of + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue);
  };
  const seen = new Set();
  for (const of of document.querySelectorAll("main *, header *, footer *, dialog *")) {
    if (![...of.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== "") || !of.checkVisibility() || of.closest("button:disabled, .card.off, .sr")) continue;
    const style = getComputedStyle(of);
    let under = of;
    while (under.parentElement && parse(getComputedStyle(under).backgroundColor)[3] < 250) under = under.parentElement;
    const back = getComputedStyle(under).backgroundColor;
    const key = `${style.color} ${back}`;
    if (seen.has(key)) continue;
    seen.add(key);
    const paper = parse(back)[3] < 250 ? parse(getComputedStyle(document.body).backgroundColor) : parse(back);
    const [light, dark] = [luminance(parse(style.color)), luminance(paper)].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    if (ratio < 4.5) faults.push(`text of contrast ${ratio.toFixed(2)}: ${of.outerHTML.slice(0, 120)}`);
  }
  return faults;
}
