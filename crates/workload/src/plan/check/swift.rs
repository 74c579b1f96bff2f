//! Targets that speak Swift: what can be said of who signs in, and of containers.

use super::{Checked, in_range};
use crate::plan::path::FieldPath;
use crate::plan::spec::{SwiftAuth, SwiftTarget};

/// The largest object that Swift takes at once.
const SEGMENT_BYTES_MAX: u64 = 5 << 30;

/// Refuses what a Swift cannot be told.
pub(super) fn check(path: &FieldPath, swift: &SwiftTarget) -> Checked<()> {
    let refuse = |field: &str, reason: &str| Err(path.field(field).refuse(reason));
    let is_said = [
        ("auth", swift.auth.is_some()),
        ("user", swift.user.is_some()),
        ("project", swift.project.is_some()),
        ("project_id", swift.project_id.is_some()),
        ("user_domain", swift.user_domain.is_some()),
        ("project_domain", swift.project_domain.is_some()),
        ("region", swift.region.is_some()),
        ("service", swift.service.is_some()),
    ];
    let of_keystone = &is_said[2..];
    let first = |fields: &[(&'static str, bool)]| {
        fields.iter().find(|(_, is_said)| *is_said).map(|(field, _)| *field)
    };
    match swift.auth_version {
        Some(SwiftAuth::None) => {
            if let Some(field) = first(&is_said) {
                return refuse(field, "is for signing in, which `auth_version: none` does not do");
            }
        }
        Some(SwiftAuth::V1) => {
            if let Some(field) = first(of_keystone) {
                return refuse(field, "is for Keystone (`auth_version: v2` or `v3`)");
            }
        }
        Some(SwiftAuth::V2) => {
            if let Some(field) = first(&is_said[4..6]) {
                return refuse(field, "is for version 3 of Keystone (`auth_version: v3`)");
            }
        }
        Some(SwiftAuth::V3) | None => {}
    }
    if swift.project.is_some() && swift.project_id.is_some() {
        return refuse("project_id", "a project has a name or an id here (`project`), not both");
    }
    let container = swift.container();
    if container.is_empty() || container.contains('/') || container.len() > 256 {
        return refuse("container", "must be 1 to 256 bytes without `/`");
    }
    match swift.segment {
        Some(segment) => in_range(&path.field("segment"), segment.0, SEGMENT_BYTES_MAX),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::WorkloadFile;

    fn checked(target: &str) -> Result<(), String> {
        let text = format!(
            "schema: plimsoll.workload/2\nname: t\ntargets: {{swift: {target}}}\n\
             sets: {{o: {{count: 9, size: 1B}}}}\n\
             stages: [{{jobs: [{{work: {{fill: o}}}}]}}]\n"
        );
        let file = WorkloadFile::from_yaml("t", &text).map_err(|error| error.to_string())?;
        file.check().map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn what_can_be_said_of_a_swift() {
        for target in [
            "{}",
            "{auth: 'http://h/auth/v1.0', user: 'a:u', container: c}",
            "{auth: 'http://k', auth_version: v3, user: u, project: p, user_domain: d, region: r}",
            "{auth: 'http://k', auth_version: v2, user: u, project_id: p, service: swift}",
            "{auth_version: none, storage_url: 'http://h/v1/a', chunked: true, policy: gold}",
            "{segment: 1GiB, manifest: dynamic, md5: true, timeout: 30s, insecure: true}",
        ] {
            assert_eq!(checked(target), Ok(()), "{target}");
        }
        for (target, said) in [
            ("{auth: ''}", "auth: must not be empty"),
            ("{auth: 'http://u:p@h/'}", "auth: an address must hold no user"),
            ("{storage_url: 'http://u:p@h/'}", "storage_url: an address must hold no user"),
            ("{auth_version: none, user: u}", "user: is for signing in"),
            ("{auth_version: v1, project: p}", "project: is for Keystone"),
            ("{auth_version: v2, user_domain: d}", "user_domain: is for version 3"),
            ("{project: p, project_id: p}", "project_id: a project has a name or an id"),
            ("{container: a/b}", "container: must be 1 to 256 bytes"),
            ("{container: ''}", "container: must be 1 to 256 bytes"),
            ("{segment: 0B}", "segment: 0 is out of range"),
            ("{segment: 6GiB}", "segment: 6442450944 is out of range: 1 to 5368709120"),
        ] {
            let refused = checked(target).unwrap_err();
            let wanted = format!("targets.swift.{said}");
            assert!(refused.contains(&wanted) && !refused.contains("u:p"), "{target}: {refused}");
        }
    }
}
