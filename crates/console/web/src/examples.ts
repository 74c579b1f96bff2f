// Texts to begin with.

export const EXAMPLES: [name: string, text: string][] = [
  ["plimsoll: read a store", `schema: plimsoll.workload/2
name: get
targets:
  store: {s3: {hosts: ['10.0.0.5:9000'], bucket: bench}}
sets: {o: {on: store, count: 2500, size: 10MiB}}
stages:
- {prepares: true, jobs: [{workers: 20, work: {fill: o}}]}
- {name: read, duration: 5m, jobs: [{workers: 20, work: {objects: [{get: o}]}}]}
`],
  ["COSBench: S3, 80 % reads", `<?xml version="1.0" encoding="UTF-8"?>
<workload name="s3-sample" description="80 % reads, 20 % writes">
  <storage type="s3" config="accesskey=ACCESS;secretkey=SECRET;endpoint=http://10.0.0.5:9000;path_style_access=true"/>
  <workflow>
    <workstage name="init">
      <work type="init" workers="1" config="cprefix=bench;containers=r(1,2)"/>
    </workstage>
    <workstage name="prepare">
      <work type="prepare" workers="8" config="cprefix=bench;containers=r(1,2);objects=r(1,50);sizes=c(64)KB"/>
    </workstage>
    <workstage name="main">
      <work name="main" workers="8" runtime="30">
        <operation type="read" ratio="80" config="cprefix=bench;containers=u(1,2);objects=u(1,50)"/>
        <operation type="write" ratio="20" config="cprefix=bench;containers=u(1,2);objects=u(51,100);sizes=c(64)KB"/>
      </work>
    </workstage>
    <workstage name="cleanup">
      <work type="cleanup" workers="8" config="cprefix=bench;containers=r(1,2);objects=r(1,100)"/>
    </workstage>
    <workstage name="dispose">
      <work type="dispose" workers="1" config="cprefix=bench;containers=r(1,2)"/>
    </workstage>
  </workflow>
</workload>
`],
  ["COSBench: mock storage", `<?xml version="1.0" encoding="UTF-8"?>
<workload name="mock" description="nothing is touched">
  <storage type="mock" config="delay=5"/>
  <workflow>
    <workstage name="main">
      <work name="main" workers="8" runtime="30">
        <operation type="read" ratio="80" config="containers=u(1,4);objects=u(1,100)"/>
        <operation type="write" ratio="20" config="containers=u(1,4);objects=u(101,200);sizes=c(64)KB"/>
      </work>
    </workstage>
  </workflow>
</workload>
`],
  ["fio: random reads of a file", `[global]
directory=/mnt/scratch
size=1G
runtime=30
time_based=1

[randread]
rw=randread
bs=4k
iodepth=16
`],
];
