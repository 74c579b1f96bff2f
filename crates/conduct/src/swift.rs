//! Opens a Swift as a workload describes it.

use plimsoll_driver_swift::{Access, Manifest, Said, SignIn, SwiftConfig, Version};
use plimsoll_record::schema::SWIFT;
use plimsoll_workload::plan::FieldPath;
use plimsoll_workload::plan::spec::{SwiftAuth, SwiftManifest, SwiftTarget};

use crate::opening::Reach;
use crate::{ConductError, RunTime, Store};

/// Returns what a workload says of who signs in.
fn said(spec: &SwiftTarget) -> Said<'_> {
    Said {
        auth: spec.auth.as_deref(),
        version: spec.auth_version.map(|version| match version {
            SwiftAuth::V1 => Version::V1,
            SwiftAuth::V2 => Version::V2,
            SwiftAuth::V3 => Version::V3,
            SwiftAuth::None => Version::None,
        }),
        user: spec.user.as_deref(),
        project: spec.project.as_deref(),
        project_id: spec.project_id.as_deref(),
        user_domain: spec.user_domain.as_deref(),
        project_domain: spec.project_domain.as_deref(),
        region: spec.region.as_deref(),
        service: spec.service.as_deref(),
        storage_url: spec.storage_url.as_deref(),
    }
}

/// Returns how a Swift is reached as a workload describes it and as the caller was told.
fn config(spec: &SwiftTarget, access: Access, sign_in: SignIn) -> SwiftConfig {
    let plain = SwiftConfig::new(sign_in, spec.container());
    let timeout = spec.timeout.map(|timeout| timeout.0);
    let mut tls = access.tls;
    tls.insecure |= spec.insecure;
    SwiftConfig {
        policy: spec.policy.clone().unwrap_or_default(),
        chunked: spec.chunked,
        segment_bytes: spec.segment.map(|size| size.0),
        manifest: match spec.manifest {
            SwiftManifest::Static => Manifest::Static,
            SwiftManifest::Dynamic => Manifest::Dynamic,
        },
        has_segments: spec.segment.is_some(),
        checks_md5: spec.md5,
        tls,
        connect_timeout: timeout.unwrap_or(plain.connect_timeout),
        stall_timeout: timeout,
        ..plain
    }
}

/// Opens a Swift; `name` and `path` are those of its target, and `takes_parts` tells whether objects
/// are made of parts there. Where the workload is only judged, nobody is asked anything.
pub(crate) fn open(
    (name, path): (&str, &FieldPath),
    spec: &SwiftTarget,
    takes_parts: bool,
    reach: &mut dyn Reach,
    time: &RunTime,
) -> Result<Store, ConductError> {
    let said = said(spec);
    let refused = |field: &str, why: String| path.field(field).refuse(why);
    said.check().map_err(|error| refused(error.field, error.why))?;
    if reach.only_judges() {
        return Ok(Store::judged(SWIFT, spec.container().to_owned()));
    }
    let access = reach.swift(name).map_err(ConductError::Caller)?;
    let found = access.sign_in(&said);
    let (sign_in, storage) = found.map_err(|error| refused(error.field, error.why))?;
    if let Some(auth) = sign_in.address() {
        reach.may_sign_in(&auth.endpoint.to_string()).map_err(ConductError::Caller)?;
    }
    let mut config = SwiftConfig { storage, ..config(spec, access, sign_in) };
    config.has_segments |= takes_parts;
    Store::swift(config, time)
}
