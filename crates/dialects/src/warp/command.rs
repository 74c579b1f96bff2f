//! warp's commands.

use crate::command_line::LineError;
use crate::spelling::did_you_mean;

/// What a command line of warp's is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarpCommand {
    /// Carry out a benchmark.
    Benchmark(WarpBenchmark),
    /// Show the figures of files.
    Analyze,
    /// Compare two files.
    Cmp,
    /// Make one file of several.
    Merge,
    /// Carry out the benchmark that a file describes.
    Run,
}

/// A benchmark of warp's that there is here too, under the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WarpBenchmark {
    /// Downloads, looks, uploads and deletions, mixed by weight.
    #[default]
    Mixed,
    /// Downloads.
    Get,
    /// Uploads.
    Put,
    /// Deletions.
    Delete,
    /// Listings.
    List,
    /// Looks at properties.
    Stat,
    /// As mixed, on versions.
    Versioned,
    /// Setting retention of versions.
    Retention,
    /// Downloads of parts of one object.
    Multipart,
    /// Uploads in parts.
    MultipartPut,
    /// Downloads of members of an archive.
    Zip,
    /// Uploads of archives that are unpacked.
    Snowball,
    /// Uploads that are stored under several names.
    Fanout,
    /// Uploads to the end of objects.
    Append,
}

impl WarpBenchmark {
    /// Every benchmark.
    pub const ALL: [Self; 14] = [
        Self::Mixed,
        Self::Get,
        Self::Put,
        Self::Delete,
        Self::List,
        Self::Stat,
        Self::Versioned,
        Self::Retention,
        Self::Multipart,
        Self::MultipartPut,
        Self::Zip,
        Self::Snowball,
        Self::Fanout,
        Self::Append,
    ];

    /// Returns its name on the command line, warp's and ours.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Get => "get",
            Self::Put => "put",
            Self::Delete => "delete",
            Self::List => "list",
            Self::Stat => "stat",
            Self::Versioned => "versioned",
            Self::Retention => "retention",
            Self::Multipart => "multipart",
            Self::MultipartPut => "multipart-put",
            Self::Zip => "zip",
            Self::Snowball => "snowball",
            Self::Fanout => "fanout",
            Self::Append => "append",
        }
    }

    /// Tells whether what is measured uploads content.
    pub(super) fn uploads(self) -> bool {
        match self {
            Self::Mixed | Self::Put | Self::Versioned | Self::MultipartPut => true,
            Self::Snowball | Self::Fanout | Self::Append => true,
            Self::Get | Self::Delete | Self::List | Self::Stat => false,
            Self::Retention | Self::Multipart | Self::Zip => false,
        }
    }
}

impl WarpCommand {
    /// Returns its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Benchmark(benchmark) => benchmark.name(),
            Self::Analyze => "analyze",
            Self::Cmp => "cmp",
            Self::Merge => "merge",
            Self::Run => "run",
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        let others = [Self::Analyze, Self::Cmp, Self::Merge, Self::Run];
        WarpBenchmark::ALL.into_iter().map(Self::Benchmark).chain(others)
    }

    /// Returns the command of this name.
    pub(super) fn of(name: &str) -> Result<Self, LineError> {
        if let Some(why) = refusal(name) {
            return Err(LineError::not_taken(format!("`{name}`"), why));
        }
        Self::all().find(|command| command.name() == name).ok_or_else(|| {
            let known = Self::all().map(|command| (command.name(), command.name().to_owned()));
            let hint = did_you_mean(name, known);
            LineError::unknown(format!("`{name}`"), "no command of warp", &hint)
        })
    }
}

/// Returns why a command of warp's does not exist here.
fn refusal(name: &str) -> Option<&'static str> {
    Some(match name {
        "client" => {
            "an agent does its work: run `plimsoll fleet up` where `--warp-client` will be given, \
             and here the line that it prints, with the name by which the client is called: \
             `plimsoll agent --join-file FILE --name NAME`"
        }
        "iceberg" => {
            "it measures the catalogue of tables of MinIO AIStor or Apache Polaris, and plimsoll \
             speaks to no catalogue; `plimsoll s3 mixed` measures the objects below"
        }
        "help" | "h" => flags_help(),
        _ => return None,
    })
}

/// Returns where help is.
pub(super) const fn flags_help() -> &'static str {
    "`plimsoll s3 COMMAND --help` has ours, and docs/coming-from-warp.md every flag of warp's"
}
