// Builds crates/console/assets from these sources, bit for bit the same each time; with --check
// compares what is committed there with a fresh build and fails where they differ.
import { build } from "esbuild";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const assets = join(here, "..", "assets");

const bundle = await build({
  absWorkingDir: here,
  entryPoints: { console: "src/main.tsx" },
  outdir: "out",
  write: false,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
});

const files = new Map();
for (const file of bundle.outputFiles) files.set(file.path.split(/[\\/]/).pop(), file.contents);
for (const name of ["index.html", "icon.svg"]) files.set(name, await readFile(join(here, "src", name)));
files.set("licenses.txt", await licenses());

if (process.argv.includes("--check")) {
  const differing = [];
  for (const [name, contents] of files) {
    const committed = await readFile(join(assets, name)).catch(() => null);
    if (committed === null || Buffer.compare(committed, contents) !== 0) differing.push(name);
  }
  for (const name of await readdir(assets)) if (!files.has(name)) differing.push(name);
  if (differing.length > 0) {
    console.error(`not what a fresh build makes: ${differing.join(", ")}; run: npm run build`);
    process.exit(1);
  }
  console.log("the committed assets are what a fresh build makes");
} else {
  await mkdir(assets, { recursive: true });
  for (const [name, contents] of files) {
    await writeFile(join(assets, name), contents);
    console.log(`${name}  ${contents.length} bytes`);
  }
}

// Returns the licences of what is bundled, which ask to be handed on with it.
async function licenses() {
  let text = "The console's script and style contain these works.\n";
  for (const name of ["preact", "uplot"]) {
    const folder = join(here, "node_modules", name);
    const { version } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const license = (await readFile(join(folder, "LICENSE"), "utf8")).replaceAll("\r\n", "\n").trim();
    text += `\n==== ${name} ${version} ====\n\n${license}\n`;
  }
  return Buffer.from(text);
}
