//! Stages: containers around objects, pauses, works beside each other.

use super::*;

fn stages(stages: &str) -> String {
    of_stages(&format!("<storage type='none'/><workflow>{stages}</workflow>"))
}

/// Returns the names of the stages with what they stand for.
fn told(lowered: &Lowered) -> Vec<String> {
    let names = lowered.file.work_stages().map(|stage| stage.name.clone().unwrap());
    let told =
        names.zip(&lowered.stages).map(|(name, of)| format!("{name} {:?} {}", of.role, of.stage));
    told.collect()
}

#[test]
fn containers_are_made_before_and_removed_behind() {
    let text = stages(
        "<workstage name='p'><work type='prepare' workers='2' config='containers=r(1,2);\
         objects=r(1,9);sizes=c(1)KB;createContainer=Yes'/></workstage>\
         <workstage name='c'><work type='cleanup' workers='2' config='containers=r(1,2);\
         objects=r(1,9);deleteContainer=on'/></workstage>",
    );
    let lowered = lowered(&text);
    assert_eq!(
        told(&lowered),
        [
            "s1-p-make-containers MakeContainers 0",
            "s1-p Main 0",
            "s2-c Main 1",
            "s2-c-remove-containers RemoveContainers 1"
        ]
    );
    assert_eq!(part(&lowered, "/stages/0/jobs/0/work"), r#"{"buckets":{"make":"objects"}}"#);
    assert_eq!(part(&lowered, "/stages/3/jobs/0/work"), r#"{"buckets":{"remove":"objects"}}"#);
}

#[test]
fn scans_in_normal_work_have_the_containers_with_them() {
    for (kind, config, count) in [
        ("prepare", "", 2),
        ("prepare", ";createContainer=false", 1),
        ("cleanup", "", 2),
        ("cleanup", ";deleteContainer=false", 1),
        ("init", "", 2),
        ("dispose", "", 1),
    ] {
        let config = format!("containers=r(1,2);objects=r(1,9);sizes=c(1)KB{config}");
        let operation = format!("<operation type='{kind}' config='{config}'/>");
        let lowered = lowered(&of_works(&format!(
            "<work name='m' workers='2' totalOps='2'>{operation}</work>"
        )));
        assert_eq!(lowered.stages.len(), count, "{kind} {config}");
    }
}

#[test]
fn pauses_are_where_closuredelay_says() {
    let init = "<work type='init' workers='1' config='containers=r(1,2)'/>";
    let delay = "<work type='delay' workers='3'/>";
    let text = stages(&format!(
        "<workstage name='init' closuredelay='7'>{init}</workstage>\
         <workstage name='rest' closuredelay='90'>{delay}</workstage>\
         <workstage name='delay'>{delay}</workstage>\
         <workstage name='both' closuredelay='1'>{init}{delay}</workstage>"
    ));
    let lowered = lowered(&text);
    assert_eq!(
        told(&lowered),
        [
            "s1-init Main 0",
            "s1-init-closuredelay Pause 0",
            "s2-rest Pause 1",
            "s4-both Main 3",
            "s4-both-closuredelay Pause 3"
        ]
    );
    assert_eq!(part(&lowered, "/stages/1"), r#"{"name":"s1-init-closuredelay","duration":"7s"}"#);
    assert_eq!(part(&lowered, "/stages/2"), r#"{"name":"s2-rest","duration":"90s"}"#);
    let told = |text: &str| lowered.notes.iter().any(|note| note.contains(text));
    assert!(told(
        "stage `rest` waits; COSBench ends a workload at delay work in a stage that is not \
            called delay"
    ));
    assert!(told("stage `delay` waits for nothing: it has no closuredelay"));
    assert!(told("delay work beside other work says nothing"));
}

#[test]
fn containers_beside_other_work_are_made_before_and_removed_behind() {
    let work = |kind: &str, config: &str| {
        format!("<work type='{kind}' workers='1' config='cprefix={config}'/>")
    };
    let objects = "a;containers=r(1,2);objects=r(1,9);sizes=c(1)KB";
    let text = stages(&format!(
        "<workstage name='all'>{}{}{}</workstage><workstage name='two'>{}{}</workstage>",
        work("dispose", "c;containers=r(3,4)"),
        work("prepare", objects),
        work("init", "b;containers=r(1,2)"),
        work("init", "d;containers=r(1,1)"),
        work("init", "e;containers=r(1,1)"),
    ));
    let lowered = lowered(&text);
    assert_eq!(
        told(&lowered),
        [
            "s1-all-make-containers MakeContainers 0",
            "s1-all Main 0",
            "s1-all-remove-containers RemoveContainers 0",
            "s2-two Main 1"
        ]
    );
    let works: Vec<&[usize]> = lowered.stages.iter().map(|stage| &*stage.works).collect();
    assert_eq!(works, [&[2][..], &[1], &[0], &[0, 1]]);
    let notes = lowered.notes.iter().filter(|note| note.contains("containers are made before"));
    assert_eq!(notes.count(), 1);
    assert!(lowered.file.check().is_ok());
}

#[test]
fn a_workload_does_something() {
    let delay = "<workstage name='s'><work type='delay'/></workstage>";
    assert!(refusal(&stages(delay)).starts_with("nothing is left to be done"));
}

#[test]
fn what_is_refused_of_the_workload_is_told_in_its_words() {
    let text = of_works(
        "<work name='m' workers='3000000' runtime='1'>\
         <operation type='read' config='containers=c(1);objects=c(1)'/></work>",
    );
    let lowered = lower(&read_all(&text), &Options::default()).unwrap();
    let refused = lowered.file.check().unwrap_err();
    let said = lowered.refusal(&read_all(&text), &refused).to_string();
    assert!(said.starts_with("line 5, column 1: `workers`: "), "{said}");
}

#[test]
fn configs_storages_and_logins_are_inherited() {
    let text = "<workload name='w' config='cprefix=a;oprefix=o;containers=r(1,2)'>\
        <workflow config='cprefix=b'>\
        <workstage name='s' config='objects=r(1,3)'>\
        <storage type='s3' config='endpoint=http://two'/>\
        <work type='prepare' workers='1' config='sizes=c(1)KB'>\
          <operation type='prepare' config='sizes=c(9)KB'/><storage type='s3' \
          config='endpoint=http://three'/></work>\
        <work type='cleanup' workers='1'/>\
        </workstage>\
        <workstage name='t'><work name='m' workers='1' totalOps='1'>\
          <operation type='read' config='containers=c(1);objects=c(1);cprefix=c'/>\
        </work></workstage>\
        </workflow><storage type='s3' config='endpoint=http://one;accesskey=k'/></workload>";
    let workload = read(text.as_bytes()).unwrap();
    let config = |stage: usize, work: usize| {
        workload.stages[stage].works[work].operations[0].config().to_owned()
    };
    let of_work = "cprefix=a;oprefix=o;containers=r(1,2);cprefix=b;objects=r(1,3);sizes=c(1)KB";
    assert_eq!(
        config(0, 0),
        format!("{of_work};{of_work};{of_work};createContainer=false;{of_work}")
    );
    assert_eq!(
        config(1, 0),
        "cprefix=a;oprefix=o;containers=r(1,2);cprefix=b;containers=c(1);objects=c(1);cprefix=c"
    );
    let lowered = lowered(text);
    check_part(
        &lowered,
        "/targets",
        r#"{"store-1":{"s3":{"hosts":"three"}},"store-2":{"s3":{"hosts":"two"}},
            "store-3":{"s3":{"hosts":"one"}}}"#,
    );
    check_part(
        &lowered,
        "/sets/objects",
        r#"{"on":"store-1","named":{"bucket":"b{1..2}","key":"o{1..3}"},"size":"1000B",
            "touch":true,"shared":true}"#,
    );
    assert!(part(&lowered, "/sets/objects-2").contains(r#""on":"store-2""#));
    assert!(
        part(&lowered, "/sets/objects-3")
            .contains(r#""on":"store-3","named":{"bucket":"c1","key":"o1"}"#)
    );
    assert_eq!(lowered.secrets.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["store-3"]);
    assert!(
        lowered.notes.iter().any(|note| note.contains("operations of prepare work are ignored"))
    );
}

#[test]
fn operations_have_their_names_and_numbers() {
    let read = |more: &str| {
        format!("<operation type='read' ratio='25' config='{more}containers=c(1);objects=c(1)'/>")
    };
    let write =
        "<operation type='write' ratio='50' config='containers=c(1);objects=c(1);sizes=c(1)B'/>";
    let text = of_works(&format!(
        "{}{}",
        work(&format!("{}{write}{}", read(""), read("name=hot;"))),
        work("<operation type='delete' config='containers=c(1);objects=c(1)'/>")
    ));
    let workload = read_all(&text);
    let told: Vec<String> = workload.stages[0]
        .works
        .iter()
        .flat_map(|work| &work.operations)
        .map(|of| format!("{} {} {}", of.id, of.name, of.shown()))
        .collect();
    assert_eq!(
        told,
        ["op1 1-read 1-read-read", "op2 write write", "op3 hot hot-read", "op4 delete delete"]
    );
    assert_eq!(workload.op_info(), ["read", "write", "delete"]);
}

fn read_all(text: &str) -> Workload {
    super::super::read(text.as_bytes()).unwrap()
}
