//! Targets of SeaweedFS that are reached by filers: what they can be told, and what their sets can
//! be.

use super::{Plan, WorkloadFile};

const FILLED: &str = "sets: {o: {count: 3, size: 1B}}\nstages:\n- {jobs: [{work: {fill: o}}]}\n";

fn plan(text: &str) -> Plan {
    let text = format!("schema: plimsoll.workload/2\nname: t\n{text}");
    WorkloadFile::from_yaml("t.yaml", &text).unwrap().check().unwrap()
}

#[test]
fn a_filer_has_keys_where_masters_give_names() {
    for (target, names_members) in [
        ("{filer: 'f:8888', directory: /a/b}", false),
        ("{filer: [f, g], replication: '001', ttl: 3d, fsync: true, security: s.toml}", false),
        ("{master: 'm:9333'}", true),
    ] {
        let plan = plan(&format!("targets: {{seaweedfs: {target}}}\n{FILLED}"));
        assert_eq!(plan.targets[0].names_members(), names_members, "{target}");
        assert!(plan.targets[0].states_sums());
    }
    let sets = "sets: {o: {count: 30, size: 1B, keys: {prefix: a/, buckets: 2}}, \
                n: {named: {key: 'k{1..9}'}, size: 1B, touch: true}, e: {existing: {prefix: x/}}}\n\
                stages:\n- {jobs: [{work: {fill: o}}]}\n- {ops: 9, jobs: [{work: {objects: [\
                {list: o}, {put: o, as: overwrite}]}}]}\n\
                - {ops: 9, jobs: [{work: {objects: [{put: n}]}}]}\n\
                - {ops: 9, jobs: [{work: {objects: [{get: e}]}}]}\n\
                - {ops: 1, jobs: [{work: {objects: [{delete: o, batch: 2}]}}]}\n";
    let plan = plan(&format!("targets: {{seaweedfs: {{filer: f}}}}\n{sets}"));
    assert!(plan.checks_what_was_there(plan.sets[0].target));
}

#[test]
fn a_cluster_has_no_more_masters_than_are_asked_in_turn() {
    let checked = |masters: String| {
        let target = format!("targets: {{seaweedfs: {{master: {masters}}}}}\n{FILLED}");
        let text = format!("schema: plimsoll.workload/2\nname: t\n{target}");
        WorkloadFile::from_yaml("t.yaml", &text).unwrap().check().map(drop)
    };
    let list = |count: u32| {
        let masters: Vec<String> = (1..=count).map(|port| format!("a:{port}.1")).collect();
        masters.join(",")
    };
    assert!(checked(format!("'{}'", list(64))).is_ok());
    // A million would be compared with each other.
    for masters in
        [format!("'{}'", list(65)), format!("[{}]", list(65)), format!("'{}'", list(50_000))]
    {
        let refused = checked(masters).unwrap_err().to_string();
        assert_eq!(refused, "targets.seaweedfs.master: must be at most 64 addresses");
    }
}

#[test]
fn what_masters_or_filers_alone_know_is_refused() {
    let of = |target: &str| format!("targets: {{seaweedfs: {target}}}\n{FILLED}");
    let only = "is for masters (`master`), not for filers";
    for (target, said) in [
        ("{}", "master: needs at least one address, or name filers (`filer`) instead"),
        ("{filer: f, master: m}", "master: SeaweedFS is reached by its masters or by its filers"),
        ("{master: m, directory: /x}", "directory: only a filer has directories"),
        ("{filer: 'u:p@f'}", "filer: an address must hold no user"),
        ("{filer: f, directory: a/../b}", "directory: must be a path without empty"),
        ("{filer: f, directory: a//b}", "directory: must be a path without empty"),
        ("{filer: f, assign: http}", &format!("assign: {only}")),
        ("{filer: f, ids_per_assign: 2}", &format!("ids_per_assign: {only}")),
        ("{filer: f, upload: put}", &format!("upload: {only}")),
        ("{filer: f, grow: 2}", &format!("grow: {only}")),
        ("{filer: f, drop_collection: true}", &format!("drop_collection: {only}")),
    ] {
        let text = format!("schema: plimsoll.workload/2\nname: t\n{}", of(target));
        let refused =
            WorkloadFile::from_yaml("t.yaml", &text).unwrap().check().unwrap_err().to_string();
        assert!(refused.starts_with(&format!("targets.seaweedfs.{said}")), "{target}: {refused}");
    }
}
