// What is taken out of names before they are shown.
import assert from "node:assert/strict";
import { test } from "node:test";

const { load } = await import("./sources.mjs");
const { harmless } = await load("api.ts");

test("names cannot turn text around; texts to be edited stay as they are", () => {
  const read = JSON.parse('{"name": "a\\u202eb\\nc", "text": "x\\ny", "files": [{"name": "d\\u202ee", "size_bytes": 1}]}', harmless);
  assert.deepEqual(read, { name: "a\ufffdb c", text: "x\ny", files: [{ name: "d\u202ee", size_bytes: 1 }] });
});
