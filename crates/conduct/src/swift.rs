//! How a Swift is reached: as a workload describes it, and as the caller was told.

use plimsoll_driver_swift::{Access, Manifest, Said, SignIn, SwiftConfig, Version};
use plimsoll_workload::plan::spec::{SwiftAuth, SwiftManifest, SwiftTarget};

/// Returns what a workload says of who signs in.
pub(crate) fn said(spec: &SwiftTarget) -> Said<'_> {
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
pub(crate) fn config(spec: &SwiftTarget, access: Access, sign_in: SignIn) -> SwiftConfig {
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
