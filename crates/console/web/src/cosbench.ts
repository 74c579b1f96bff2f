// COSBench's XML from what the forms hold: one workload by the form, many by the matrix.

export interface Keys { type: string; values: Record<string, string>; more: string }
export interface KeyInfo { key: string; label: string; hint?: string; isSecret?: boolean; options?: string[] }

/** The keys that the form asks for; others may be given as text. */
export const AUTHS: Record<string, KeyInfo[]> = {
  none: [],
  mock: [{ key: "token", label: "Token" }, { key: "delay", label: "Delay (ms)" }],
  swauth: [{ key: "auth_url", label: "Address", hint: "http://127.0.0.1:8080/auth/v1.0" }, { key: "username", label: "User name", hint: "account:user" }, { key: "password", label: "Password", isSecret: true }],
  keystone: [
    { key: "auth_url", label: "Address", hint: "http://127.0.0.1:5000/v3" }, { key: "username", label: "User name" }, { key: "password", label: "Password", isSecret: true },
    { key: "tenant_name", label: "Tenant (project)" }, { key: "service", label: "Service" }, { key: "region", label: "Region" },
  ],
  httpauth: [{ key: "auth_url", label: "Address" }, { key: "username", label: "User name" }, { key: "password", label: "Password", isSecret: true }],
};
export const STORAGES: Record<string, KeyInfo[]> = {
  s3: [
    { key: "endpoint", label: "Endpoint", hint: "http://10.0.0.5:9000" }, { key: "accesskey", label: "Access key" }, { key: "secretkey", label: "Secret key", isSecret: true },
    { key: "path_style_access", label: "Path style", options: ["", "true", "false"] }, { key: "aws_region", label: "Region", hint: "us-east-1" },
    { key: "timeout", label: "Timeout (ms)", hint: "30000" }, { key: "no_verify_ssl", label: "Any TLS certificate", options: ["", "true", "false"] }, { key: "storage_class", label: "Storage class" },
    { key: "proxyhost", label: "Proxy host" }, { key: "proxyport", label: "Proxy port" },
  ],
  swift: [{ key: "timeout", label: "Timeout (ms)", hint: "30000" }, { key: "token", label: "Token", isSecret: true }, { key: "storage_url", label: "Storage URL" }, { key: "policy", label: "Storage policy" }],
  mock: [{ key: "size", label: "Size of what is read (bytes)" }, { key: "delay", label: "Delay (ms)" }, { key: "errors", label: "Errors (0 to 1)" }],
  none: [],
};

export interface Operation {
  type: string; ratio: string; containers: Selector; objects: Selector; sizes: Size; files: string; selection: string; hashCheck: boolean;
}
export interface Selector { kind: string; from: string; to: string }
export interface Size { kind: string; from: string; to: string; unit: string }
export interface StageForm {
  key: number; type: "init" | "prepare" | "main" | "cleanup" | "dispose"; isOn: boolean; name: string; workers: string;
  containers: Selector; objects: Selector; sizes: Size; deleteContainer: boolean; delay: string;
  runtime: string; rampup: string; rampdown: string; totalOps: string; totalBytes: string; driver: string; operations: Operation[];
}
export interface Form {
  name: string; description: string; auth: Keys; storage: Keys;
  cprefix: string; csuffix: string; oprefix: string; osuffix: string; stages: StageForm[];
}

export const selector = (kind: string, from: number | string, to: number | string): Selector => ({ kind, from: String(from), to: String(to) });
export const size = (kind: string, from: number | string, to: number | string, unit: string): Size => ({ kind, from: String(from), to: String(to), unit });

export function newOperation(type: string, ratio: number): Operation {
  const isWrite = type === "write" || type === "filewrite";
  return {
    type, ratio: String(ratio), containers: selector("u", 1, 2), objects: isWrite ? selector("u", 51, 100) : selector("u", 1, 50),
    sizes: size("c", 64, 64, "KB"), files: "", selection: "s", hashCheck: false,
  };
}

let keys = 0;
export function newStage(type: StageForm["type"]): StageForm {
  keys += 1;
  return {
    key: keys, type, isOn: true, name: type, workers: type === "main" ? "8" : "1", containers: selector("r", 1, 2),
    objects: type === "cleanup" ? selector("r", 1, 100) : selector("r", 1, 50), sizes: size("c", 64, 64, "KB"), deleteContainer: false, delay: "0",
    runtime: "300", rampup: "0", rampdown: "0", totalOps: "", totalBytes: "", driver: "",
    operations: type === "main" ? [newOperation("read", 80), newOperation("write", 20)] : [],
  };
}
export function cloneStage(stage: StageForm): StageForm {
  keys += 1;
  return { ...structuredClone(stage), key: keys, name: `${stage.name}-2` };
}

export function newForm(): Form {
  return {
    name: "", description: "", auth: { type: "none", values: {}, more: "" }, storage: { type: "s3", values: {}, more: "" },
    cprefix: "mycontainers", csuffix: "", oprefix: "myobjects", osuffix: "",
    stages: (["init", "prepare", "main", "cleanup", "dispose"] as const).map(newStage),
  };
}

/** A text as an attribute's value. */
export function attribute(text: string): string {
  const named: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;" };
  // Characters that XML cannot hold are left out.
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "").replace(/[&<>"\n\r\t]/g, (of) => named[of] ?? of);
}

export function selectorText({ kind, from, to }: Selector): string {
  return kind === "c" ? `c(${from.trim()})` : `${kind}(${from.trim()},${to.trim()})`;
}
export function sizeText(of: Size): string {
  return `${selectorText(of)}${of.unit}`;
}

function config(pairs: [string, string][], more = ""): string {
  const text = pairs.filter(([, value]) => value.trim() !== "").map(([key, value]) => `${key}=${value.trim()}`);
  if (more.trim() !== "") text.push(more.trim());
  return text.join(";");
}

function keysText(of: Keys, known: Record<string, KeyInfo[]>): string {
  return config((known[of.type] ?? []).map(({ key }) => [key, of.values[key] ?? ""]), of.more);
}

/** What stands for a secret where a workload is only shown, here as in what the controller shows. */
export const HIDDEN = "*REDACTED*";

function withoutSecrets(of: Keys, known: Record<string, KeyInfo[]>): Keys {
  const values = { ...of.values };
  for (const { key, isSecret } of known[of.type] ?? []) if (isSecret && values[key]) values[key] = HIDDEN;
  return { ...of, values, more: of.more.replace(/\b(secretkey|password|token|usertoken|accesskey)=[^;]*/gi, `$1=${HIDDEN}`) };
}

/** The same form as it may stand in a page. */
export function shownForm<T extends { auth: Keys; storage: Keys }>(form: T): T {
  return { ...form, auth: withoutSecrets(form.auth, AUTHS), storage: withoutSecrets(form.storage, STORAGES) };
}

const plain = (pairs: [string, string][]): string => pairs.filter(([, value]) => value !== "").map(([name, value]) => ` ${name}="${attribute(value)}"`).join("");

function operationXml(of: Operation): string {
  const pairs: [string, string][] = [["containers", selectorText(of.containers)]];
  if (of.type === "filewrite") pairs.push(["fileselection", of.selection], ["files", of.files]);
  else if (of.type !== "list") pairs.push(["objects", selectorText(of.objects)]);
  if (of.type === "write") pairs.push(["sizes", sizeText(of.sizes)]);
  if (of.hashCheck && of.type !== "delete" && of.type !== "list") pairs.push(["hashCheck", "true"]);
  return `        <operation type="${attribute(of.type)}" ratio="${attribute(of.ratio.trim())}" config="${attribute(config(pairs))}"/>\n`;
}

function stageXml(of: StageForm): string {
  const delay = of.delay.trim() === "" || of.delay.trim() === "0" ? "" : ` closuredelay="${attribute(of.delay.trim())}"`;
  let text = `    <workstage name="${attribute(of.name)}"${delay}>\n`;
  if (of.type === "main") {
    const zero = (value: string) => (value.trim() === "0" ? "" : value.trim());
    text += `      <work name="${attribute(of.name)}"${plain([
      ["workers", of.workers.trim()], ["rampup", zero(of.rampup)], ["runtime", zero(of.runtime)], ["rampdown", zero(of.rampdown)],
      ["totalOps", zero(of.totalOps)], ["totalBytes", zero(of.totalBytes)], ["driver", of.driver.trim()],
    ])}>\n`;
    for (const operation of of.operations) text += operationXml(operation);
    text += "      </work>\n";
  } else {
    const pairs: [string, string][] = [["containers", selectorText(of.containers)]];
    if (of.type === "prepare" || of.type === "cleanup") pairs.push(["objects", selectorText(of.objects)]);
    if (of.type === "prepare") pairs.push(["sizes", sizeText(of.sizes)]);
    if (of.type === "cleanup" && of.deleteContainer) pairs.push(["deleteContainer", "true"]);
    text += `      <work${plain([["type", of.type], ["workers", of.workers.trim()], ["driver", of.driver.trim()]])} config="${attribute(config(pairs))}"/>\n`;
  }
  return `${text}    </workstage>\n`;
}

function head(name: string, description: string, names: string, auth: Keys, storage: Keys): string {
  let text = '<?xml version="1.0" encoding="UTF-8"?>\n';
  text += `<workload${plain([["name", name.trim()], ["description", description.trim()], ["config", names]])}>\n`;
  if (auth.type !== "none") text += `  <auth type="${attribute(auth.type)}" config="${attribute(keysText(auth, AUTHS))}"/>\n`;
  text += `  <storage type="${attribute(storage.type)}" config="${attribute(keysText(storage, STORAGES))}"/>\n`;
  return text;
}

const namesConfig = (of: Form): string => config([["cprefix", of.cprefix], ["csuffix", of.csuffix], ["oprefix", of.oprefix], ["osuffix", of.osuffix]]);

export function formXml(form: Form): string {
  return `${head(form.name, form.description, namesConfig(form), form.auth, form.storage)}  <workflow>\n${form.stages.filter((of) => of.isOn).map(stageXml).join("")}  </workflow>\n</workload>\n`;
}

export function ratioSum(stage: StageForm): number {
  return stage.operations.reduce((sum, of) => sum + (Number(of.ratio) || 0), 0);
}

/** What the form itself can tell; the rest is told by a check. */
export function formProblems(form: Form): string[] {
  const problems: string[] = [];
  if (form.name.trim() === "") problems.push("The workload needs a name.");
  if (/[/,]/.test(form.name)) problems.push("The workload's name may hold no / and no comma, as files are called after it.");
  const on = form.stages.filter((of) => of.isOn);
  if (on.length === 0) problems.push("At least one stage must be on.");
  for (const stage of on) {
    if (stage.name.trim() === "") problems.push(`A stage of type ${stage.type} has no name.`);
    if (stage.name.includes(";")) problems.push(`Stage ${stage.name}: the name may hold no semicolon.`);
    if (!/^[1-9]\d*$/.test(stage.workers.trim())) problems.push(`Stage ${stage.name}: the number of workers must be 1 or more.`);
    if (stage.type !== "main") continue;
    if (stage.operations.length === 0) problems.push(`Stage ${stage.name} has no operations.`);
    else if (ratioSum(stage) !== 100) problems.push(`Stage ${stage.name}: the ratios add up to ${ratioSum(stage)} %, not to 100 %.`);
    if (![stage.runtime, stage.totalOps, stage.totalBytes].some((value) => Number(value) > 0)) problems.push(`Stage ${stage.name} has no end: give it a run time, a number of operations or of bytes.`);
    for (const of of stage.operations) if (of.type === "filewrite" && of.files.trim() === "") problems.push(`Stage ${stage.name}: filewrite needs a folder of files.`);
  }
  const semicolon = (of: Keys) => Object.values(of.values).some((value) => value.includes(";"));
  if (semicolon(form.auth) || semicolon(form.storage)) problems.push("A value of auth or storage may hold no semicolon.");
  return problems;
}

export interface Ratio { read: string; write: string; delete: string }
export interface MatrixLine { key: number; name: string; sizes: string; isRange: boolean; unit: string; objects: string; containers: string; workers: string; ratios: Ratio[] }
export interface MatrixForm {
  name: string; auth: Keys; storage: Keys; runtime: string; rampup: string; delay: string; preparers: string; lines: MatrixLine[];
}

export const STAGES_MAX = 1000;

export function newMatrixLine(name: string): MatrixLine {
  keys += 1;
  return { key: keys, name, sizes: "4, 64", isRange: false, unit: "KB", objects: "1000", containers: "4", workers: "16, 64", ratios: [{ read: "100", write: "0", delete: "0" }, { read: "80", write: "20", delete: "0" }] };
}
export function newMatrixForm(): MatrixForm {
  return {
    name: "", auth: { type: "none", values: {}, more: "" }, storage: { type: "s3", values: {}, more: "" }, runtime: "300", rampup: "50", delay: "30", preparers: "4",
    lines: [newMatrixLine("small")],
  };
}

/** A list of whole numbers, or what is wrong with it. */
export function numbers(text: string): number[] | string {
  const parts = text.split(/[\s,;]+/).filter((part) => part !== "");
  if (parts.length === 0) return "nothing is given";
  if (!parts.every((part) => /^[1-9]\d{0,9}$/.test(part))) return `"${text}" is no list of whole numbers from 1 on`;
  return [...new Set(parts.map(Number))];
}

/** Sizes: a list such as `4, 64`, or one range such as `4-64`. */
export function sizesOf(line: MatrixLine): Size[] | string {
  if (line.isRange) {
    const range = /^\s*([1-9]\d*)\s*-\s*([1-9]\d*)\s*$/.exec(line.sizes);
    if (!range || Number(range[1]) > Number(range[2])) return `"${line.sizes}" is no range such as 4-64`;
    return [size("u", range[1] ?? "", range[2] ?? "", line.unit)];
  }
  const list = numbers(line.sizes);
  return typeof list === "string" ? list : list.map((value) => size("c", value, value, line.unit));
}

export interface Made { name: string; fileName: string; xml: string; mainCount: number; seconds: number }

/** All workloads of a matrix: each line of the form is one, its cross product the main stages. */
export function matrixXml(form: MatrixForm): { made: Made[]; problems: string[] } {
  const problems: string[] = [];
  const isName = (name: string) => /^[A-Za-z0-9][A-Za-z0-9_.-]{2,49}$/.test(name.trim());
  const names = "3 to 50 letters, digits, dots, dashes or underscores";
  if (!isName(form.name)) problems.push(`The name of the matrix must have ${names}.`);
  const whole = (text: string, what: string, min: number): number => {
    const value = Number(text);
    if (text.trim() === "" || !Number.isInteger(value) || value < min) problems.push(`${what} must be a whole number from ${min} on.`);
    return value;
  };
  const times = { runtime: whole(form.runtime, "The run time", 1), rampup: whole(form.rampup, "The ramp up", 0), delay: whole(form.delay, "The delay", 0), preparers: whole(form.preparers, "The number of preparing workers", 1) };
  const made: Made[] = [];
  const seen = new Set<string>();
  for (const line of form.lines) {
    const at = `Workload ${line.name || "without a name"}`;
    if (!isName(line.name)) problems.push(`${at}: the name must have ${names}.`);
    if (seen.has(line.name)) problems.push(`${at}: two workloads have this name.`);
    seen.add(line.name);
    const lists = { sizes: sizesOf(line), objects: numbers(line.objects), containers: numbers(line.containers), workers: numbers(line.workers) };
    for (const [what, list] of Object.entries(lists)) if (typeof list === "string") problems.push(`${at}, ${what}: ${list}.`);
    for (const ratio of line.ratios) {
      const sum = Number(ratio.read) + Number(ratio.write) + Number(ratio.delete);
      if (sum !== 100) problems.push(`${at}: the ratios ${ratio.read}/${ratio.write}/${ratio.delete} add up to ${Number.isNaN(sum) ? "no number" : `${sum} %`}, not to 100 %.`);
    }
    const { sizes, objects, containers, workers } = lists;
    if (typeof sizes === "string" || typeof objects === "string" || typeof containers === "string" || typeof workers === "string") continue;
    const mainCount = sizes.length * objects.length * containers.length * workers.length * line.ratios.length;
    if (mainCount > STAGES_MAX) {
      problems.push(`${at} has ${mainCount} main stages; ${STAGES_MAX} are the most.`);
      continue;
    }
    made.push(matrixWorkload(form, line, { sizes, objects, containers, workers }, times, mainCount));
  }
  return { made, problems };
}

function matrixWorkload(
  form: MatrixForm, line: MatrixLine, lists: { sizes: Size[]; objects: number[]; containers: number[]; workers: number[] },
  times: { runtime: number; rampup: number; delay: number; preparers: number }, mainCount: number,
): Made {
  const name = `${form.name.trim()}-${line.name.trim()}`;
  const base = { delay: "0", deleteContainer: false, workers: String(times.preparers), containers: selector("r", 1, 1) };
  let stages = "";
  for (const of of lists.sizes) for (const objects of lists.objects) for (const containers of lists.containers) {
    const sizeName = of.kind === "u" ? `${of.from}-${of.to}${of.unit}` : `${of.from}${of.unit}`;
    const label = `${sizeName}-${objects}obj-${containers}con`;
    const all = selector("r", 1, containers);
    const isDeleting = line.ratios.some((ratio) => Number(ratio.delete) > 0);
    const stage = (type: StageForm["type"], more: Partial<StageForm>) => stageXml({ ...newStage(type), ...base, name: `${type}-${label}`, containers: all, ...more });
    stages += stage("init", { workers: "1" });
    // Objects 1..n are read, n+1..2n written, 2n+1..3n deleted: no operation takes away what another needs.
    stages += stage("prepare", { objects: selector("r", 1, objects), sizes: of, delay: isDeleting ? "0" : String(times.delay) });
    if (isDeleting) stages += stage("prepare", { name: `prepare-deleted-${label}`, objects: selector("r", 2 * objects + 1, 3 * objects), sizes: of, delay: String(times.delay) });
    for (const workers of lists.workers) for (const ratio of line.ratios) {
      const operation = (type: string, share: string, first: number): Operation => ({
        ...newOperation(type, 0), ratio: share, containers: selector("u", 1, containers), objects: selector("u", first * objects + 1, (first + 1) * objects), sizes: of,
      });
      const operations = [operation("read", ratio.read, 0), operation("write", ratio.write, 1), operation("delete", ratio.delete, 2)].filter((one) => Number(one.ratio) > 0);
      const mix = operations.map((one) => `${one.type[0]}${one.ratio}`).join("");
      stages += stage("main", { name: `${label}-${workers}w-${mix}`, workers: String(workers), runtime: String(times.runtime), rampup: String(times.rampup), delay: String(times.delay), operations });
    }
    stages += stage("cleanup", { objects: selector("r", 1, 3 * objects) });
    stages += stage("dispose", { workers: "1" });
  }
  const prefix = `${name.toLowerCase().replace(/[^a-z0-9]+/g, "-")}-`;
  const xml = `${head(name, `${mainCount} main stages`, config([["cprefix", prefix], ["oprefix", "o"]]), form.auth, form.storage)}  <workflow>\n${stages}  </workflow>\n</workload>\n`;
  const sets = lists.sizes.length * lists.objects.length * lists.containers.length;
  return { name, fileName: `${name}.xml`, xml, mainCount, seconds: mainCount * (times.runtime + times.rampup + times.delay) + sets * times.delay };
}
