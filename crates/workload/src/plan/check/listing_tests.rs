//! Listings that cannot be.

use super::tests::{check, one_job};

#[test]
fn pages_that_cannot_be_listed() {
    let listed = |set: &str, list: &str| {
        let list = format!("{{duration: 1s, jobs: [{{work: {{objects: [{list}]}}}}]}}");
        format!("sets: {{o: {set}}}\nstages:\n- {list}")
    };
    let named = "{named: {key: 'k{1..9}'}}";
    check(&[
        (
            &listed(named, "{list: o, by_page: true}"),
            "stages[0].jobs[0].work.objects[0].by_page: is only for the run's own objects, whose \
            names have numbers",
        ),
        (
            &one_job(
                "{count: 9, size: 1B}",
                "work: {objects: [{list: o, pages: 2, by_page: true}]}",
            ),
            "stages[1].jobs[0].work.objects[0].pages: has no effect with by_page, which lists one \
            page; leave it out",
        ),
        (
            &one_job("{count: 9, size: 1B}", "work: {objects: [{list: o, by_page: true}]}"),
            "it is sound",
        ),
        (&listed(named, "{list: o, account: true}"), "it is sound"),
        (
            &listed(named, "{list: o, account: true, versions: true}"),
            "stages[0].jobs[0].work.objects[0].account: is only for sets with user-given names, \
            without `pick`, `buckets` and `versions`",
        ),
        (
            &format!(
                "targets: {{s3: {{hosts: h, bucket: b}}}}\n{}",
                listed(named, "{list: o, account: true}")
            ),
            "stages[0].jobs[0].work: target `s3` is of kind s3, which does not offer list of \
             an account",
        ),
    ]);
}
