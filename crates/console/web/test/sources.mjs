// Makes the TypeScript sources importable by tests.
import { build } from "esbuild";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export async function load(name) {
  const folder = await mkdtemp(join(tmpdir(), "plimsoll-console-"));
  const outfile = join(folder, "module.mjs");
  const source = join(dirname(fileURLToPath(import.meta.url)), "..", "src", name);
  try {
    await build({ entryPoints: [source], outfile, bundle: true, format: "esm", platform: "neutral", logLevel: "error" });
    return await import(pathToFileURL(outfile).href);
  } finally {
    await rm(folder, { recursive: true });
  }
}
