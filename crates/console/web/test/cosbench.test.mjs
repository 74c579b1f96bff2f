// The XML that the forms make.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./sources.mjs";

const cosbench = await load("cosbench.ts");

function filledForm() {
  const form = cosbench.newForm();
  form.name = "s3-sample";
  form.cprefix = "s3testqwer";
  form.oprefix = "";
  form.storage = { type: "s3", values: { endpoint: "http://10.0.0.5:9000", accesskey: "key", secretkey: "a=b&<" }, more: "max_connections=50" };
  return form;
}

test("a form becomes COSBench's XML, stage by stage", () => {
  const form = filledForm();
  form.stages[1].delay = "10";
  form.stages[2].runtime = "30";
  form.stages[4].isOn = false;
  assert.deepEqual(cosbench.formProblems(form), []);
  assert.equal(cosbench.formXml(form), `<?xml version="1.0" encoding="UTF-8"?>
<workload name="s3-sample" config="cprefix=s3testqwer">
  <storage type="s3" config="endpoint=http://10.0.0.5:9000;accesskey=key;secretkey=a=b&amp;&lt;;max_connections=50"/>
  <workflow>
    <workstage name="init">
      <work type="init" workers="1" config="containers=r(1,2)"/>
    </workstage>
    <workstage name="prepare" closuredelay="10">
      <work type="prepare" workers="1" config="containers=r(1,2);objects=r(1,50);sizes=c(64)KB"/>
    </workstage>
    <workstage name="main">
      <work name="main" workers="8" runtime="30">
        <operation type="read" ratio="80" config="containers=u(1,2);objects=u(1,50)"/>
        <operation type="write" ratio="20" config="containers=u(1,2);objects=u(51,100);sizes=c(64)KB"/>
      </work>
    </workstage>
    <workstage name="cleanup">
      <work type="cleanup" workers="1" config="containers=r(1,2);objects=r(1,100)"/>
    </workstage>
  </workflow>
</workload>
`);
});

test("filewrite, delete and list have the keys that they need and no others", () => {
  const form = filledForm();
  const files = { ...cosbench.newOperation("filewrite", 50), files: "/srv/files", hashCheck: true };
  form.stages[2].operations = [files, cosbench.newOperation("delete", 30), cosbench.newOperation("list", 20)];
  const operations = cosbench.formXml(form).split("\n").filter((line) => line.includes("<operation")).map((line) => line.trim());
  assert.deepEqual(operations, [
    '<operation type="filewrite" ratio="50" config="containers=u(1,2);fileselection=s;files=/srv/files;hashCheck=true"/>',
    '<operation type="delete" ratio="30" config="containers=u(1,2);objects=u(1,50)"/>',
    '<operation type="list" ratio="20" config="containers=u(1,2)"/>',
  ]);
});

test("no secret is in what is only shown", () => {
  const form = filledForm();
  form.auth = { type: "swauth", values: { password: "hidden1", username: "a:b" }, more: "token=hidden2;x=1" };
  const shown = cosbench.formXml(cosbench.shownForm(form));
  for (const secret of ["a=b", "hidden1", "hidden2"]) assert.ok(!shown.includes(secret), secret);
  assert.ok(shown.includes("username=a:b") && shown.includes("x=1"));
  assert.ok(cosbench.formXml(form).includes("password=hidden1"));
});

test("attributes hold any text", () => {
  assert.equal(cosbench.attribute('a<b>"c"&d\n\u0001e'), "a&lt;b&gt;&quot;c&quot;&amp;d&#10;e");
});

test("what is missing in a form is said", () => {
  const form = cosbench.newForm();
  form.stages[2].operations[0].ratio = "70";
  form.stages[2].runtime = "0";
  form.stages[0].workers = "none";
  assert.deepEqual(cosbench.formProblems(form), [
    "The workload needs a name.", "Stage init: the number of workers must be 1 or more.", "Stage main: the ratios add up to 90 %, not to 100 %.",
    "Stage main has no end: give it a run time, a number of operations or of bytes.",
  ]);
});

test("a matrix has a main stage for each combination", () => {
  const form = cosbench.newMatrixForm();
  form.name = "matrix";
  Object.assign(form.lines[0], { sizes: "4, 64", objects: "100,200", containers: "2", workers: "8 16 32", ratios: [{ read: "100", write: "0", delete: "0" }, { read: "50", write: "30", delete: "20" }] });
  const { made, problems } = cosbench.matrixXml(form);
  assert.deepEqual(problems, []);
  assert.equal(made.length, 1);
  assert.equal(made[0].mainCount, 24);
  // 24 × (300 + 50 + 30) s, and a wait after each of the four prepared sets.
  assert.equal(made[0].seconds, 24 * 380 + 4 * 30);
  const { xml } = made[0];
  assert.equal(xml.match(/<work name="/g).length, 24);
  assert.equal(xml.match(/type="init"/g).length, 4);
  // Read, written and deleted objects are apart, and all that is read or deleted is prepared.
  assert.ok(xml.includes('<operation type="read" ratio="50" config="containers=u(1,2);objects=u(1,100)"/>'));
  assert.ok(xml.includes('<operation type="write" ratio="30" config="containers=u(1,2);objects=u(101,200);sizes=c(4)KB"/>'));
  assert.ok(xml.includes('<operation type="delete" ratio="20" config="containers=u(1,2);objects=u(201,300)"/>'));
  assert.ok(xml.includes('<work type="prepare" workers="4" config="containers=r(1,2);objects=r(201,300);sizes=c(4)KB"/>'));
  const names = [...xml.matchAll(/<workstage name="([^"]*)"/g)].map((of) => of[1]);
  assert.equal(new Set(names).size, names.length, "stages have different names");
});

test("a matrix that cannot be is refused with its reason", () => {
  const form = cosbench.newMatrixForm();
  form.name = "a b";
  form.runtime = "";
  Object.assign(form.lines[0], { name: "x", sizes: "64-4", isRange: true, objects: "1,zwei", ratios: [{ read: "90", write: "0", delete: "0" }] });
  const { made, problems } = cosbench.matrixXml(form);
  assert.equal(made.length, 0);
  for (const part of ["name of the matrix", "run time", "Workload x: the name", '"64-4" is no range', '"1,zwei" is no list', "add up to 90 %"]) {
    assert.ok(problems.some((problem) => problem.includes(part)), `${part} in ${problems.join(" | ")}`);
  }
  form.lines[0] = { ...cosbench.newMatrixLine("big"), workers: Array.from({ length: 300 }, (_, index) => index + 1).join(",") };
  assert.ok(cosbench.matrixXml(form).problems.some((problem) => problem.includes("1200 main stages; 1000 are the most")));
});
