//! Says what of a run on files of version 1 makes no sense: what the language of today has no word
//! for, and then whatever that language refuses, in the fields of version 1.

use super::{
    FILES_SCHEMA, FileJobSpec, FileWorkSpec, FilesSpec, JobFilesSpec, NameActSpec, TreeSpec,
};
use crate::plan::{InvalidField, Segment, WorkloadFile};
use crate::v1::from_files::{Origins, convert};
use crate::v1::{InvalidWorkload, field_of, invalid};

type Checked = Result<(), InvalidWorkload>;

/// Fields below a set, and what version 1 calls them below the files or the tree of a job.
const OF_SETS: [(&str, &str); 9] = [
    ("files", "count"),
    ("workers", "count"),
    ("size", "size_bytes"),
    ("name", "name_format"),
    ("names", "names"),
    ("paths", "names"),
    ("tree.entries", "entries_per_directory"),
    ("tree.name", "name"),
    ("tree.shared_names", "shared_names"),
];

/// Fields below a job, and what version 1 calls them.
const OF_JOBS: [(&str, &str); 21] = [
    ("workers", "clones"),
    ("duration", "duration_ns"),
    ("ramp", "ramp_ns"),
    ("start_delay", "start_delay_ns"),
    ("ops", "ops_max"),
    ("bytes", "bytes_max"),
    ("think.every", "think.every_ops"),
    ("think.spin", "think.spin_ns"),
    ("pacing.capped_each.read", "pacing.capped.read"),
    ("pacing.capped_each.write", "pacing.capped.write"),
    ("pacing.capped_each", "pacing.capped"),
    ("deal", "work.names.shift"),
    ("work.blocks.on", "work.blocks.files"),
    ("work.blocks.read.percent", "work.blocks.read_percent"),
    ("work.blocks.read", "work.blocks.read_blocks"),
    ("work.blocks.write", "work.blocks.write_blocks"),
    ("work.blocks.order", "work.blocks.order"),
    ("work.fill.block", "work.fill.block_bytes"),
    ("work.fill.direct", "work.fill.direct"),
    ("work.fill", "work.fill.files"),
    ("work.names", "work.names.act"),
];

impl FilesSpec {
    /// Says what of the spec makes no sense, if anything does.
    pub fn check(&self) -> Checked {
        self.checked().map(drop)
    }

    /// Returns the workload in today's language, if the spec makes sense.
    pub fn checked(&self) -> Result<WorkloadFile, InvalidWorkload> {
        if self.schema != FILES_SCHEMA {
            return invalid("schema", format!("`{}` is not {FILES_SCHEMA}", self.schema));
        }
        for (stage, of) in self.stages.iter().enumerate() {
            if of.jobs.is_empty() {
                return invalid(format!("stages[{stage}].jobs"), "there is none");
            }
            for (index, job) in of.jobs.iter().enumerate() {
                check_job(&format!("stages[{stage}].jobs[{index}]"), job)?;
            }
        }
        let (file, origins) = convert(self).map_err(|InvalidField { path, reason }| {
            InvalidWorkload { field: path.to_string().into(), reason }
        })?;
        file.judge().map_err(|refused| {
            let field = self.field_of(&origins, &refused);
            // Version 1 has no sets.
            let reason = origins.sets.keys().fold(refused.reason, |reason, name| {
                reason.replace(&format!(" of set `{name}`"), "")
            });
            InvalidWorkload { field: field.into(), reason }
        })?;
        Ok(file)
    }

    /// Returns the field of version 1 that a refused one of today's language comes from.
    fn field_of(&self, origins: &Origins, refused: &InvalidField) -> String {
        let form = refused.path.form();
        match refused.path.segments() {
            [_, Segment::Field(name), ..] if form.starts_with("sets.") => {
                let origin = origins.sets.get(&**name).map_or("", String::as_str);
                let below = form.split_once(&format!("sets.{name}.")).map_or("", |(_, rest)| rest);
                let below = field_of(below, &OF_SETS);
                format!("{origin}.{}", below.strip_prefix("tree.").unwrap_or(&below))
            }
            [_, Segment::Index(_)] => "stages".to_owned(),
            [_, Segment::Index(stage), rest @ ..] => {
                // What is put first so that reads find something is no stage of version 1.
                let stage = stage.saturating_sub(usize::from(origins.prepares));
                let [_, Segment::Index(index), ..] = rest else {
                    return format!("stages[{stage}]{}", &form["stages[]".len()..]);
                };
                let jobs = &self.stages[stage].jobs;
                // Behind the others stand jobs that fill on further targets what one job fills.
                let fills =
                    || jobs.iter().position(|job| matches!(job.work, FileWorkSpec::Fill(_)));
                let index = if *index < jobs.len() { *index } else { fills().unwrap_or(0) };
                let at = format!("stages[{stage}].jobs[{index}]");
                let lasts = jobs.get(index).and_then(|job| job.duration_ns);
                match form.strip_prefix("stages[].jobs[].").unwrap_or("") {
                    "duration" if lasts.is_none() => format!("{at}.work.blocks.repeats"),
                    below => format!("{at}.{}", field_of(below, &OF_JOBS)),
                }
            }
            _ => refused.path.to_string(),
        }
    }
}

/// Refuses what today's language cannot say, or has said by other words.
fn check_job(at: &str, job: &FileJobSpec) -> Checked {
    let refuse = |refused: bool, field: &str, reason: &str| match refused {
        true => invalid(format!("{at}.work.{field}"), reason),
        false => Ok(()),
    };
    let none = "at least one is needed, none empty";
    let lacks =
        |directories: &[String]| directories.is_empty() || directories.iter().any(String::is_empty);
    let lacks_own = |files: &JobFilesSpec| !files.existing && lacks(&files.directories);
    match &job.work {
        FileWorkSpec::Fill(fill) => fill.files.iter().enumerate().try_for_each(|(index, of)| {
            let at = |field: &str| format!("fill.files[{index}].{field}");
            refuse(of.clones == 0, &at("clones"), "must be at least 1")?;
            refuse(lacks_own(&of.files), &at("files.directories"), none)
        }),
        FileWorkSpec::Blocks(blocks) => {
            let JobFilesSpec { existing, destroys, .. } = blocks.files;
            refuse(blocks.read_percent > 100, "blocks.read_percent", "must be at most 100")?;
            refuse(lacks_own(&blocks.files), "blocks.files.directories", none)?;
            refuse(
                blocks.writes() && existing && !destroys,
                "blocks.files.destroys",
                "writing to files that exist destroys what is in them and has to be allowed",
            )
        }
        FileWorkSpec::Names(names) => {
            let act = names.act;
            let in_order = match act {
                NameActSpec::Rename => "entries are renamed in order",
                NameActSpec::MakeTree | NameActSpec::RemoveTree => {
                    "the directories of a tree come in order"
                }
                _ => "",
            };
            let TreeSpec { directories, per_clone, .. } = &names.tree;
            refuse(lacks(directories), "names.tree.directories", none)?;
            refuse(
                directories.len() > 1 && !per_clone,
                "names.tree.directories",
                "only separate trees for each clone can lie in several directories",
            )?;
            refuse(names.shuffled && !in_order.is_empty(), "names.act", in_order)
        }
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
