// Clicks through every page of the console in a headless Chromium.
//
//   node test/click.mjs                                     against the mock server, with its faults
//   node test/click.mjs --base http://127.0.0.1:19088 --user ann --password secret
//                                                           against a real controller: it submits
//                                                           small runs on mock storage, and cancels them
//   ... --yaml                                              submits plimsoll's language instead of COSBench's,
//                                                           onto the store within plimsoll
//   ... --pictures DIR                                      keeps a picture of each page, light and dark,
//                                                           whole and at both sizes, to be looked at
//   ... --docs DIR                                          keeps small pictures for docs/images
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SPARSE } from "../mock/data.mjs";
import { startMock } from "../mock/server.mjs";
import { launch } from "./browser.mjs";
import { smaller } from "./png.mjs";

const option = (name) => {
  const place = process.argv.indexOf(`--${name}`);
  return place < 0 ? null : process.argv[place + 1];
};
const pictures = option("pictures");
const docs = option("docs");
const isYaml = process.argv.includes("--yaml");
const DOCS = { names: ["sign-in", "overview", "run-live", "run", "timeline", "history", "matrix", "compare", "submit", "make", "make-matrix", "agents"], width: 1280, height: 860, heights: { "run-live": 1640, run: 1640 } };
const SIZES = [[1600, 1000], [400, 800]];

const mock = option("base") ? null : await startMock();
const base = option("base") ?? mock.url;
const user = option("user") ?? "ann";
const password = option("password") ?? "ann";
for (const folder of [pictures, docs]) if (folder) await mkdir(folder, { recursive: true });
const browser = await launch();
const page = await browser.newPage();
let checksCount = 0;
const failures = [];

const at = (hash) => `${base}/console/${hash}`;
const title = (text) => `document.querySelector("#title")?.innerText === ${JSON.stringify(text)}`;
const asked = (path) => page.evaluate(`fetch("/api/v1${path}").then((of) => of.json())`);
function check(what, isRight, more = "") {
  checksCount += 1;
  if (!isRight) failures.push(`${what}${more ? `: ${more}` : ""}`);
}
async function step(name, what) {
  const began = Date.now();
  try {
    await what();
  } catch (error) {
    failures.push(`${name}: ${error.message}`);
  }
  page.complaints.splice(0).forEach((complaint) => failures.push(`${name}: ${complaint}`));
  console.log(`${name} (${Date.now() - began} ms)`);
}
/** Looks at a page in both sizes, light and dark. */
async function look(name, { keyboard = true, whole = true } = {}) {
  for (const [width, height] of SIZES) {
    for (const isDark of [false, true]) {
      await page.size(width, height, isDark);
      await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
      for (const fault of new Set(await page.faults())) check(`${name} at ${width} px${isDark ? ", dark" : ""}`, false, fault);
      checksCount += 1;
      page.complaints.length = 0;
      if (pictures) await page.picture(join(pictures, `${name}-${width}-${isDark ? "dark" : "light"}.png`), whole);
    }
  }
  if (docs && DOCS.names.includes(name)) {
    await page.evaluate("document.querySelector('.told button')?.click()");
    for (const isDark of [false, true]) {
      await page.size(DOCS.width, DOCS.heights[name] ?? DOCS.height, isDark);
      await page.evaluate("scrollTo(0, 0); document.activeElement?.blur(); new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
      const path = join(docs, `console-${name}-${isDark ? "dark" : "light"}.png`);
      await page.picture(path, false);
      await writeFile(path, smaller(await readFile(path)));
    }
  }
  await page.size(1600, 1000, false);
  if (keyboard) for (const fault of await page.tabThrough()) check(`${name} by keyboard`, false, fault);
  checksCount += 1;
}

await page.size(1600, 1000, false);

await step("sign-in", async () => {
  page.expected.push(/401/);
  await page.open(at(""));
  await page.until("document.querySelector('[data-test=sign-in], nav')", "a sign-in or the overview");
  if (!(await page.evaluate("!!document.querySelector('[data-test=sign-in]')"))) return;
  await look("sign-in", { keyboard: false, whole: false });
  await page.fill("document.querySelector('input[name=user]')", user);
  await page.fill("document.querySelector('input[name=password]')", `${password}x`);
  await page.key("Enter");
  await page.until("document.querySelector('[role=alert]')?.innerText.length > 0", "a word about the wrong password");
  await page.fill("document.querySelector('input[name=password]')", password);
  await page.key("Enter");
  await page.until("document.querySelector('nav[aria-label=Pages]')", "the frame after signing in");
});

await step("submit", async () => {
  await page.open(at("#/submit"));
  await page.until(title("Submit a workload"));
  const code = "document.querySelector('[data-test=code]')";
  const broken = isYaml ? "schema: plimsoll.workload/2\nsets: {o: {count: many}}\nstages: []\n" : `<workload name="broken">\n  <workflow>\n    <workstage name="main">\n      <work name="main" workers="1" runtime="30">\n        <operation type="read" ratio="90" config="containers=u(1,2);objects=u(1,5)"/>\n      </work>\n    </workstage>\n  </workflow>\n</workload>\n`;
  await page.fill(code, broken);
  await page.clickNamed("button", "Check");
  await page.until("document.querySelector('[data-test=verdict]')?.innerText.includes('error')", "the verdict on a broken workload");
  const problem = await page.text("[data-test=problems]");
  check("the error is told, of COSBench's in its words", problem.includes(isYaml ? "count" : "op ratio should sum to 100"), problem);
  if (await page.evaluate("!!document.querySelector('[data-test=problems] button')")) {
    await page.click("document.querySelector('[data-test=problems] button')");
    await page.until("document.activeElement === document.querySelector('[data-test=code]')", "the focus in the code");
    const { line, said } = await page.evaluate(`(() => { const of = document.querySelector('[data-test=code]'); return { line: of.value.slice(0, of.selectionStart).split("\\n").length, said: Number(/line (\\d+)/.exec(document.querySelector('[data-test=problems]').innerText)[1]) }; })()`);
    check("pressing a problem goes to its line", line === said, `${line} and ${said}`);
  }
  await look("submit");
  await page.clickNamed("button", "Submit");
  check("a broken workload is not submitted", (await page.evaluate("location.hash")) === "#/submit");
  const names = [];
  // Files are taken by the field that the button opens, and by dropping.
  for (const name of ["click-through <b>1</b>", "click-through-2", "click-through-3"]) {
    await page.open(at("#/submit"));
    await page.until(title("Submit a workload"));
    const text = isYaml ? `schema: plimsoll.workload/2\nname: ${JSON.stringify(name)}\nsets: {o: {count: 50, size: 4KiB}}\nstages:\n- {prepares: true, jobs: [{workers: 2, work: {fill: o}}]}\n- {name: main, duration: 40s, jobs: [{workers: 4, pacing: {capped: 500/s}, work: {objects: [{get: o, weight: 80}, {put: o, weight: 20}]}}]}\n` : `<?xml version="1.0" encoding="UTF-8"?>\n<workload name="${name.replaceAll("<", "&lt;").replaceAll(">", "&gt;")}">\n  <storage type="mock" config="delay=2"/>\n  <workflow>\n    <workstage name="main">\n      <work name="main" workers="4" runtime="${mock ? 30 : 40}">\n        <operation type="read" ratio="80" config="containers=u(1,4);objects=u(1,100)"/>\n        <operation type="write" ratio="20" config="containers=u(1,4);objects=u(101,200);sizes=c(64)KB"/>\n      </work>\n    </workstage>\n  </workflow>\n</workload>\n`;
    const file = `const data = new DataTransfer(); data.items.add(new File([${JSON.stringify(text)}], "main.xml"));`;
    if (names.length === 0) await page.evaluate(`(() => { ${file} const field = document.querySelector("[data-test=file]"); field.files = data.files; field.dispatchEvent(new Event("change", { bubbles: true })); })()`);
    else await page.evaluate(`(() => { ${file} document.querySelector("[data-test=drop]").dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: data })); })()`);
    await page.until(`document.querySelector("[data-test=code]").value.includes("stage")`, "the file in the field");
    await page.clickNamed("button", "Submit");
    await page.until("location.hash.startsWith('#/runs/')", "the page of the run that was submitted");
    names.push(await page.evaluate("decodeURIComponent(location.hash.slice(7))"));
    await page.until("document.querySelector('#title')?.innerText.startsWith('click-through')", "the name of the run");
  }
  check("three runs were made", new Set(names).size === 3);
});

await step("overview", async () => {
  await page.open(at("#/"));
  await page.until("document.querySelector('[data-test=queue] tbody tr')", "the queue");
  await page.until("document.querySelector('[data-test=agents] tbody tr')", "agents");
  const { active } = await asked("/overview");
  check("the queue shows names as text", (await page.text("[data-test=queue]")).includes(active[0].name.slice(0, 30)));
  await look("overview");
  const queued = (await asked("/overview")).active.filter((run) => run.state === "queued");
  if (queued.length >= 2) {
    const last = queued.at(-1).id;
    await page.clickNamed("button", `Move ${last} up`);
    await page.until(`document.querySelector('.told')?.innerText.includes("Moved ${last}")`, "word that the run was moved");
    check("the run was moved up", (await asked("/overview")).active.filter((run) => run.state === "queued").at(-2).id === last);
    await page.click(`document.querySelector('input[aria-label="Choose ${last}"]')`);
    await page.choose("document.querySelector('select[aria-label=\"Where to move the chosen runs\"]')", "first");
    await page.clickNamed("button", "Move");
    await page.until(`document.querySelector('[data-test=queue] tbody tr:nth-child(${active.length - queued.length + 1})')?.querySelector("a").innerText === "${last}" || document.querySelectorAll('[data-test=queue] tbody tr').length < 2`, "the run at the front of the queue");
    await page.clickNamed("button", `Cancel ${last}`);
    await page.until("document.querySelector('dialog[open]')", "a question before cancelling");
    await page.key("Escape");
    await page.until("!document.querySelector('dialog')", "no dialog after Escape");
    check("Escape cancels nothing", (await asked("/overview")).active.some((run) => run.id === last));
    check("focus comes back after the dialog", await page.evaluate(`document.activeElement.getAttribute("aria-label") === "Cancel ${last}"`));
    await page.clickNamed("button", `Cancel ${last}`);
    await page.clickNamed("dialog button", "Cancel the run");
    await page.until(`document.querySelector('.told')?.innerText.includes("Cancelled ${last}")`, "word that the run was cancelled");
  }
});

await step("colours", async () => {
  await page.open(at("#/"));
  await page.until("document.querySelector('[data-test=theme]')");
  const paper = () => page.evaluate("getComputedStyle(document.body).backgroundColor");
  const light = await paper();
  await page.choose("document.querySelector('[data-test=theme]')", "dark");
  check("the switch makes it dark", (await paper()) !== light);
  await page.open(`${at("")}?again#/agents`);
  await page.until(title("Agents"));
  check("the choice is kept", (await paper()) !== light);
  await page.choose("document.querySelector('[data-test=theme]')", "system");
  check("the system's colours come back", (await paper()) === light);
});

await step("agents", async () => {
  await page.open(at("#/agents"));
  await page.until("document.querySelector('[data-test=agents] tbody tr')", "agents");
  await look("agents");
});

await step("run, live", async () => {
  await page.open(at("#/"));
  const id = await page.until("(document.querySelector('[data-test=queue] .state.live')?.closest('tr').querySelector('a').innerText)", "a run that goes on", 60_000);
  const run = await asked(`/runs/${id}`);
  await page.open(at(`#/runs/${id}`));
  await page.until("document.querySelectorAll('.uplot').length >= 3", "charts");
  check("the name is text", (await page.text("h1")) === run.name.trim(), await page.text("h1"));
  const stages = await page.evaluate("[...document.querySelectorAll('.stage-name')].length");
  check("each stage has a bar", stages === run.stages.length, `${stages}`);
  const operations = () => page.evaluate("document.querySelector('#chart-latency .legend').textContent");
  const first = await operations();
  await page.until(`document.querySelector('#chart-latency .legend').textContent !== ${JSON.stringify(first)}`, "figures that go on by themselves");
  await page.evaluate("document.querySelector('#chart-rate .plot').focus()");
  for (let step = 0; step < 3; step += 1) await page.key("ArrowLeft");
  check("the arrow keys move all charts", await page.evaluate("[...document.querySelectorAll('.u-cursor-x')].every((of) => !of.classList.contains('u-off'))"));
  await page.evaluate("document.querySelector('#heat .plot')?.focus()");
  await page.key("ArrowLeft");
  check("the heat map is read out", /operations took|nothing ended/.test(await page.text("#heat .caption")), await page.text("#heat .caption"));
  await look("run-live");
  await page.clickNamed(".stage-name", await page.evaluate("document.querySelector('.stage-name').innerText.trim()"));
  check("a stage can be chosen", (await page.evaluate("location.hash")).includes("stage="));
  if (mock) {
    await page.open(at(`#/runs/${id}`));
    await page.until("document.querySelectorAll('.uplot').length >= 3", "charts");
    page.expected.push(/503|ERR_/);
    mock.faults.refuseEvents = true;
    mock.dropStreams();
    await page.until("document.querySelector('[data-test=live]').innerText.includes('interrupted')", "word that the live view is interrupted");
    await look("run-interrupted", { keyboard: false, whole: false });
    mock.faults.refuseEvents = false;
    await page.until("document.querySelector('[data-test=live]').innerText === ''", "the live view again", 40_000);
    const before = await operations();
    await page.until(`document.querySelector('#chart-latency .legend').textContent !== ${JSON.stringify(before)}`, "figures again");
  }
  await page.clickNamed(".page-head button", "Cancel");
  await page.clickNamed("dialog button", "Cancel the run");
  await page.until("document.querySelector('.page-head .state')?.innerText === 'cancelled'", "the run is cancelled", 30_000);
  await page.until("[...document.querySelectorAll('#results h2')].some((of) => of.innerText === 'Results')", "results in place of the live view");
});

const endedRuns = async () => (await asked("/runs?state=finished,failed,cancelled&limit=50")).runs.filter((run) => run.has_record);

await step("run, afterwards", async () => {
  const all = await endedRuns();
  const run = all.find((of) => of.name === "s3-sample" && of.ops_count > 0) ?? all.find((of) => of.state === "finished" && of.ops_count > 0) ?? all[0];
  await page.open(at(`#/runs/${run.id}`));
  await page.until("document.querySelector('[data-test=results] tbody tr')", "results");
  await page.until("document.querySelectorAll('.uplot').length >= 2", "charts");
  await page.choose(page.field("Show"), "all");
  await page.until("document.querySelectorAll('.uplot').length >= 2", "charts of all stages");
  await look("run-all-stages", { keyboard: false });
  await page.open(at(`#/runs/${run.id}?`));
  await page.until("document.querySelectorAll('.uplot').length >= 2", "charts");
  for (const summary of await page.evaluate("document.querySelectorAll('summary').length") ? [...Array(await page.evaluate("document.querySelectorAll('summary').length")).keys()] : []) await page.click(`document.querySelectorAll('summary')[${summary}]`);
  await page.until("document.querySelectorAll('#about pre').length > 0 || !document.body.innerText.includes('The workload as it was given')", "the workload's text");
  await look("run");
  if (mock) {
    for (const number of [9999, 9998]) {
      const hostile = await asked(`/runs/w${number}`);
      await page.open(at(`#/runs/w${number}`));
      await page.until("document.querySelector('[data-test=results] tbody tr')", "results");
      check("a hostile name is text", (await page.evaluate("document.querySelector('h1').textContent")) === hostile.name.replace("\u202e", "\ufffd"));
      await look(`run-hostile-${number}`, { keyboard: false });
    }
  }
  if (mock) {
    await page.open(at(`#/runs/w${SPARSE}`));
    await page.until("document.querySelectorAll('.uplot').length >= 3 && document.querySelector('[data-test=tiles]')", "charts and figures of a run of which little is known");
    check("what is not counted by job is told by the results", !(await page.text("[data-test=tiles]")).includes("–"), await page.text("[data-test=tiles]"));
    const failed = (await asked("/runs?state=failed&limit=1")).runs[0];
    const stage = (await asked(`/runs/${failed.id}`)).stages.find((of) => of.error !== null);
    await page.open(at(`#/runs/${failed.id}`));
    await page.until("document.querySelector('#stages')", "the stages of a run that failed");
    check("a stage says why it failed", (await page.text("#stages")).includes(`${stage.id}: ${stage.error}`), await page.text("#stages"));
    await page.open(at(`#/runs/w${SPARSE}`));
    await page.until("document.querySelector('[data-test=by-agent]')", "figures by agent");
    check("columns that nobody knows are left out", !(await page.text("[data-test=by-agent]")).includes("Clock offset"));
    await look("run-sparse", { keyboard: false });
  }
  await page.open(at("#/runs/w99999999"));
  page.expected.push(/404/);
  await page.until("document.querySelector('[role=alert]')?.innerText.includes('w99999999')", "word that there is no such run");
});

if (mock) {
  await step("change and submit", async () => {
    await page.open(at("#/runs/w9997"));
    await page.clickNamed("a", "Change and submit");
    await page.until("document.querySelector('[data-test=code]')?.value.includes('<workload')", "the workload of the run to be changed");
    await page.until("document.querySelector('[data-test=hidden]')", "word that secrets were taken out");
  });
}

await step("timeline", async () => {
  const run = (await endedRuns()).find((of) => of.ops_count > 0);
  await page.open(at(`#/runs/${run.id}/timeline`));
  await page.until("document.querySelector('[data-test=timeline] tbody tr')", "rows of the timeline");
  check("the timeline can be had as CSV", await page.evaluate("!!document.querySelector('a[download][href*=\"timeline.csv\"]')"));
  await look("timeline");
});

await step("history", async () => {
  await page.open(at("#/history"));
  await page.until("document.querySelectorAll('[data-test=history] tbody tr').length >= 2", "runs");
  await look("history");
  const total = (await asked("/runs?limit=1")).total_count;
  if (total > 50) {
    const began = Date.now();
    await page.clickNamed("button", "Next page");
    await page.until("document.body.innerText.includes('51 to 100') && !document.querySelector('.old')", "the second page");
    check("a page of the history is there at once", Date.now() - began < 1000, `${Date.now() - began} ms`);
    await page.clickNamed("button", "Previous page");
    await page.until("document.body.innerText.includes('1 to 50') && !document.querySelector('.old')", "the first page");
  }
  await page.clickNamed("th button", "Name");
  await page.until("document.querySelector('th[aria-sort=descending]')?.innerText.startsWith('Name')", "sorting by name");
  await page.fill(page.field("Search"), "click-through");
  await page.until("location.hash.includes('search=click-through')", "the search in the address");
  await page.until("[...document.querySelectorAll('[data-test=history] tbody tr')].every((of) => of.innerText.includes('click-through')) && document.querySelector('[data-test=history] tbody tr')", "runs that match only");
  await page.fill(page.field("Search"), "no run is called like this");
  await page.until("document.querySelector('.empty')?.innerText === 'No run matches.'", "word that none matches");
  await page.fill(page.field("Search"), "");
  await page.choose(page.field("State"), "cancelled");
  await page.until("[...document.querySelectorAll('[data-test=history] tbody .state')].every((of) => of.innerText === 'cancelled') && document.querySelector('[data-test=history] tbody tr')", "cancelled runs only");
  await page.choose(page.field("State"), "");
});

await step("matrix", async () => {
  // A real controller needs its time until a second run has figures.
  for (let tries = 0; (await endedRuns()).filter((run) => run.ops_count > 0).length < 2 && tries < 180; tries += 1) await new Promise((done) => setTimeout(done, 1000));
  const runs = (await endedRuns()).filter((run) => run.ops_count > 0).slice(0, 3);
  await page.open(at("#/history"));
  await page.until("document.querySelector('[data-test=history] tbody tr')");
  for (const run of runs) await page.click(`document.querySelector('input[aria-label="Choose ${run.id}"]')`);
  await page.clickNamed("button", "Matrix");
  await page.until("document.querySelector('[data-test=matrix] tbody tr')", "rows of the matrix");
  await look("matrix");
  const rows = () => page.evaluate("document.querySelectorAll('[data-test=matrix] tbody tr').length");
  const before = await rows();
  await page.clickNamed("button", "Op rate only");
  await page.until("document.querySelectorAll('[data-test=matrix] thead th').length === 6", "one figure only");
  await page.clickNamed("button", "Everything");
  const kind = await page.evaluate("document.querySelector('fieldset label').innerText.trim()");
  await page.click(page.field(kind));
  await page.until(`document.querySelectorAll('[data-test=matrix] tbody tr').length < ${before} || document.body.innerText.includes('No figures of the chosen operations')`, "fewer rows without a kind");
  await page.click(page.field(kind));
  await page.clickNamed("th button", "p99");
  await page.until("document.querySelector('th[aria-sort=descending]')?.innerText.startsWith('p99')", "sorting by p99");
  await page.open(at("#/matrix"));
  await page.until("document.querySelector('.empty')", "word that no runs are chosen");
});

await step("compare", async () => {
  const runs = (await endedRuns()).filter((run) => run.ops_count > 0).slice(0, 6).map((run) => run.id);
  await page.open(at(`#/compare?runs=${runs.join(",")}&before=${runs.slice(0, runs.length / 2).join(",")}&after=${runs.slice(runs.length / 2).join(",")}`));
  await page.until("document.querySelector('[data-test=compare] tbody tr, .empty:not([role=status])')", "a comparison");
  await look("compare");
  await page.clickNamed("button", "Swap the sides");
  await page.until(`location.hash.includes("before=${runs[Math.floor(runs.length / 2)]}")`, "the sides swapped");
});

await step("make a workload", async () => {
  await page.open(at("#/make"));
  await page.until(title("Make a workload"));
  await page.fill(page.field("Name"), 'form <"&;> 1');
  await page.fill(page.field("Endpoint"), "http://127.0.0.1:9000");
  await page.fill(page.field("Access key"), "key");
  await page.fill(page.field("Secret key"), "a=b&c<d");
  await page.fill(page.field("Ratio (%)"), "70");
  await page.until("document.body.innerText.includes('add up to 90 %')", "word about the ratios");
  await page.fill(page.field("Ratio (%)"), "80");
  await page.clickNamed("button", "Clone stage main");
  await page.until("document.querySelectorAll('[data-test=stage-main]').length === 2", "a second main stage");
  await page.clickNamed("button", "Remove stage main-2");
  await page.click(page.field("on", "[data-test=stage-dispose]"));
  await page.fill(page.field("Wait after it (s)", "[data-test=stage-prepare]"), "7");
  const xml = await page.evaluate("document.querySelector('[data-test=code]').value");
  check("the XML holds what was typed", xml.includes('name="form &lt;&quot;&amp;;&gt; 1"') && xml.includes("secretkey=*REDACTED*") && xml.includes('name="prepare" closuredelay="7"') && !xml.includes('type="dispose"'), xml);
  const parsed = await page.evaluate(`(() => { const of = new DOMParser().parseFromString(document.querySelector('[data-test=code]').value, "text/xml"); return of.querySelector("parsererror") ? "broken" : of.documentElement.getAttribute("name"); })()`);
  check("the XML is well-formed", parsed === 'form <"&;> 1', parsed);
  await page.fill(page.field("Name"), "form-1");
  await page.clickNamed("button", "Check");
  await page.until("document.querySelector('[data-test=verdict]')", "the verdict");
  check("the form's workload is sound", isYaml || (await page.text("[data-test=verdict]")).includes("sound"), `${await page.text("[data-test=verdict]")} ${await page.text("[data-test=problems]")}`);
  await look("make");
});

await step("make a matrix", async () => {
  await page.open(at("#/make-matrix"));
  await page.until(title("Make a matrix of workloads"));
  await page.fill(page.field("Name"), "click-matrix");
  await page.choose(page.field("Type"), "mock");
  await page.until("document.querySelector('[data-test=made] tbody tr')", "what the matrix makes");
  check("the cross product is counted", (await page.text("[data-test=made] tbody tr td")) === "8", await page.text("[data-test=made]"));
  await page.clickNamed("button", "Check all");
  await page.until("/sound|errors/.test(document.querySelector('[data-test=made]').innerText)", "the verdict");
  check("the matrix is sound", isYaml || (await page.text("[data-test=made]")).includes("sound"), await page.text("#made"));
  await page.clickNamed("button", "Show click-matrix-small");
  await look("make-matrix");
});

if (mock) {
  page.expected.push(/ERR_|Failed to load|401|503/);
  await step("lost connection", async () => {
    await page.open(at("#/"));
    await page.until("document.querySelector('[data-test=queue]')");
    mock.faults.down = true;
    await page.until("document.querySelector('[data-test=connection]').innerText.includes('No connection')", "word about the lost connection");
    check("what was shown is still there", await page.evaluate("!!document.querySelector('[data-test=queue]')"));
    await look("lost", { keyboard: false, whole: false });
    mock.faults.down = false;
    await page.until("document.querySelector('[data-test=connection]').innerText === ''", "the connection again", 30_000);
  });
  await step("slow server", async () => {
    mock.faults.slowMs = 3000;
    await page.open(at("?slow#/agents"));
    await page.until("document.body.innerText.includes('slow to answer')", "word that the controller is slow");
    mock.faults.slowMs = 0;
    await page.until("document.querySelector('[data-test=agents]')", "agents at last");
  });
  await step("empty", async () => {
    mock.faults.empty = true;
    await page.open(at("?empty#/"));
    await page.until("document.querySelectorAll('.empty').length === 3", "an overview of nothing");
    await look("overview-empty", { keyboard: false });
    await page.open(at("#/history"));
    await page.until("document.body.innerText.includes('No runs yet')", "a history of nothing");
    mock.faults.empty = false;
  });
  await step("session that ends", async () => {
    await page.open(at("#/submit"));
    await page.until(title("Submit a workload"));
    await page.fill("document.querySelector('[data-test=code]')", "schema: plimsoll.workload/2\n");
    mock.expireSessions();
    await page.clickNamed("button", "Check");
    await page.until("document.querySelector('dialog[open] [data-test=sign-in]')", "the sign-in over the page");
    await look("expired", { keyboard: false, whole: false });
    await page.key("Escape");
    check("the sign-in stays", await page.evaluate("!!document.querySelector('dialog[open]')"));
    await page.fill("document.querySelector('dialog input[name=password]')", password);
    await page.key("Enter");
    await page.until("!document.querySelector('dialog')", "the page again");
    check("what was typed is still there", (await page.evaluate("document.querySelector('[data-test=code]').value")).startsWith("schema:"));
    await page.clickNamed("button", "Check");
    await page.until("document.querySelector('[data-test=verdict]')", "a verdict after signing in again");
  });
  await step("sign out", async () => {
    await page.clickNamed("button", "Sign out");
    await page.until("document.querySelector('main [data-test=sign-in]')", "the sign-in");
  });
}

await browser.close();
mock?.close();
if (failures.length > 0) {
  console.error(`\n${failures.length} of ${checksCount} checks failed:`);
  for (const failure of failures) console.error(`- ${failure}`);
  process.exit(1);
}
console.log(`${checksCount} checks passed`);
