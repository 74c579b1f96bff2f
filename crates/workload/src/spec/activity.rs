//! What the measured stage does, as written, where it is more than operations on whole objects.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PacingSpec, SizeSpec, WorkloadSpec, invalid, is_false};
use crate::{Activity, InvalidWorkload, Pick};

/// The most parts of one object (S3's limit).
pub(crate) const PARTS_MAX: u32 = 10_000;
/// The most files a zip archive has without its extension for large ones.
const ZIP_FILES_MAX: u64 = 65_535;
/// The largest such archive, less what its headers may take.
const ZIP_BYTES_MAX: f64 = (u32::MAX - (64 << 20)) as f64;
/// The most members of an archive, or copies of a content, that one operation writes.
const MEMBERS_MAX: u32 = 10_000;
/// Archives that are compressed are built in memory, one a worker: together at most this much.
const ARCHIVES_BYTES_MAX: f64 = (1u64 << 30) as f64;
/// The longest beginning of a name in a tar archive.
const TAR_PREFIX_MAX: usize = 155;

/// What the measured stage does.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum ActivitySpec {
    /// The operations, on whole objects.
    #[default]
    Operations,
    /// The operations GET, STAT, PUT and DELETE on versions: a PUT writes a new version of a
    /// random object of the worker's own, the others are about one version.
    Versioned,
    /// Sets until when a version of an object may not be removed.
    Retention {
        /// For how long from that moment on.
        hold_ns: u64,
    },
    /// Reads one part of one object, which the prepare stage uploads in parts.
    Multipart,
    /// Uploads objects in parts; each worker has one upload under way.
    MultipartPut {
        /// Parts of an object.
        parts: u32,
        /// Parts of an upload under way at a time.
        part_concurrency: u32,
    },
    /// Adds to the end of an object; each worker has one of its own.
    Append {
        /// After so many parts, the first included, a new object is begun.
        parts: u32,
    },
    /// Reads one file of a zip archive, which the prepare stage uploads.
    Zip,
    /// Uploads tar archives that the store takes apart.
    Snowball {
        /// Objects in an archive.
        members: u32,
        /// Whether the archive is compressed (zstd).
        #[serde(default, skip_serializing_if = "is_false")]
        compress: bool,
    },
    /// Uploads one content that the store writes under several names.
    Fanout {
        /// How many names.
        copies: u32,
    },
}

impl ActivitySpec {
    pub(super) fn is_operations(&self) -> bool {
        *self == Self::Operations
    }
}

/// How the object of a GET, STAT or RETENTION is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum PickSpec {
    /// Each as likely as the next.
    #[default]
    Uniform,
    /// By Zipf's law: the object of rank r in proportion to r^-theta.
    Zipf {
        /// Above 0, at most 10 and not 1.
        theta: f64,
    },
    /// One after the other, and again from the first; the workers take turns.
    Sequential,
}

impl PickSpec {
    pub(super) fn is_uniform(&self) -> bool {
        *self == Self::Uniform
    }
}

fn bounded(field: &'static str, value: u32, max: u32) -> Result<NonZeroU32, InvalidWorkload> {
    match NonZeroU32::new(value).filter(|value| value.get() <= max) {
        Some(value) => Ok(value),
        None => invalid(field, format!("must be 1 to {max}")),
    }
}

impl WorkloadSpec {
    /// Returns the activity where it is not given by the operations.
    pub(super) fn lower_special(&self) -> Result<Option<Activity>, InvalidWorkload> {
        let measure = &self.measure;
        let activity = match measure.activity {
            ActivitySpec::Operations | ActivitySpec::Versioned => return Ok(None),
            ActivitySpec::Retention { hold_ns: 0 } => {
                return invalid("measure.activity.retention.hold_ns", "must be above 0");
            }
            ActivitySpec::Retention { hold_ns } => {
                Activity::Retention { hold: std::time::Duration::from_nanos(hold_ns) }
            }
            ActivitySpec::Multipart => {
                let parts = u32::try_from(self.objects.count).unwrap_or(u32::MAX);
                let part_bytes = self.part_bytes()?;
                Activity::Multipart {
                    parts: bounded("objects.count", parts, PARTS_MAX)?,
                    part_bytes,
                }
            }
            ActivitySpec::MultipartPut { parts, part_concurrency } => {
                let most = parts.min(1_000);
                Activity::MultipartPut {
                    parts: bounded("measure.activity.multipart_put.parts", parts, PARTS_MAX)?,
                    part_bytes: self.part_bytes()?,
                    part_concurrency: bounded(
                        "measure.activity.multipart_put.part_concurrency",
                        part_concurrency,
                        most,
                    )?,
                }
            }
            ActivitySpec::Append { parts } => Activity::Append {
                parts: bounded("measure.activity.append.parts", parts, PARTS_MAX)?,
            },
            ActivitySpec::Zip => self.lower_zip()?,
            ActivitySpec::Snowball { members, compress } => {
                self.lower_snowball(members, compress)?
            }
            ActivitySpec::Fanout { copies } => Activity::Fanout {
                copies: bounded("measure.activity.fanout.copies", copies, MEMBERS_MAX)?,
            },
        };
        self.check_special(&activity)?;
        Ok(Some(activity))
    }

    /// Refuses what says nothing beside such an activity.
    fn check_special(&self, activity: &Activity) -> Result<(), InvalidWorkload> {
        let measure = &self.measure;
        let beside = [
            ("measure.operations", !measure.operations.is_empty()),
            ("measure.range", measure.range.is_some()),
            ("measure.overwrite", measure.overwrite),
            ("measure.post", measure.post),
            ("measure.delete_batch", measure.delete_batch.is_some()),
            ("measure.list_page_size", measure.list_page_size.is_some()),
            ("objects.existing", self.objects.existing.is_some()),
        ];
        if let Some((field, _)) = beside.into_iter().find(|(_, given)| *given) {
            return invalid(field, "says nothing beside this measure.activity; leave it out");
        }
        let prepares = activity.prepares();
        if !prepares && self.objects.count > 0 {
            return invalid("objects.count", "must be 0, as this activity reads nothing");
        }
        if prepares && self.objects.count == 0 {
            return invalid("objects.count", "must be at least 1");
        }
        if self.objects.versions > 1 && !matches!(activity, Activity::Retention { .. }) {
            return invalid("objects.versions", "must be 1, as this activity knows no versions");
        }
        let open = matches!(self.pacing, PacingSpec::Open { .. });
        if open && matches!(activity, Activity::MultipartPut { .. }) {
            let reason = "the parts of an upload depend on one another, so that uploads in parts \
                          have no schedule; use a closed or capped loop";
            return invalid("pacing.open", reason);
        }
        Ok(())
    }

    /// Returns how large a part is, which is what objects of such an activity are counted in.
    fn part_bytes(&self) -> Result<u64, InvalidWorkload> {
        let SizeSpec::FixedBytes(size) = self.objects.size else {
            return invalid("objects.size", "the parts of an object must be of one size");
        };
        match self.measure.part_bytes_min {
            Some(least) if size < least => {
                let reason = format!("a part of {size} bytes is below the store's {least}");
                invalid("objects.size", reason)
            }
            _ => Ok(size),
        }
    }

    fn lower_zip(&self) -> Result<Activity, InvalidWorkload> {
        let count = self.objects.count;
        if count > ZIP_FILES_MAX {
            let reason = format!("a zip archive holds at most {ZIP_FILES_MAX} files");
            return invalid("objects.count", reason);
        }
        if self.objects.size.lower().mean() * count as f64 > ZIP_BYTES_MAX {
            return invalid("objects.size", "a zip archive holds less than 4GiB");
        }
        Ok(Activity::Zip)
    }

    fn lower_snowball(&self, members: u32, compress: bool) -> Result<Activity, InvalidWorkload> {
        let count = bounded("measure.activity.snowball.members", members, MEMBERS_MAX)?;
        let bytes = self.objects.size.lower().mean() * f64::from(members);
        if compress && bytes * f64::from(self.concurrency) > ARCHIVES_BYTES_MAX {
            let reason = "archives that are compressed are built in memory, and those of all \
                          workers together come to more than 1GiB";
            return invalid("objects.size", reason);
        }
        if self.objects.size.lower().max() >= 8 << 30 {
            return invalid("objects.size", "a member of a tar archive is below 8GiB");
        }
        Ok(Activity::Snowball { members: count, compress })
    }

    /// Tells whether names below `base` fit into a tar archive.
    pub(super) fn check_names(base: &str, activity: &Activity) -> Result<(), InvalidWorkload> {
        // The worker's own prefix comes in between.
        if matches!(activity, Activity::Snowball { .. }) && base.len() + 16 > TAR_PREFIX_MAX {
            return invalid("keys.prefix", "is too long for the names in a tar archive");
        }
        Ok(())
    }

    /// Returns how objects are chosen.
    pub(super) fn lower_pick(&self, activity: &Activity) -> Result<Pick, InvalidWorkload> {
        let pick = match self.measure.pick {
            PickSpec::Uniform => return Ok(Pick::Uniform),
            PickSpec::Sequential => Pick::Sequential,
            PickSpec::Zipf { theta } if theta > 0.0 && theta <= 10.0 && theta != 1.0 => {
                Pick::Zipf { theta }
            }
            PickSpec::Zipf { .. } => {
                return invalid("measure.pick.zipf.theta", "must be above 0, at most 10 and not 1");
            }
        };
        if !activity.picks() {
            let reason = "zipf and sequential are for operations that leave the objects as they \
                          are, such as GET and STAT without PUT and DELETE";
            return invalid("measure.pick", reason);
        }
        Ok(pick)
    }
}
