//! The flags of `plimsoll console`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::ByteSize;
use super::fleet::FleetArgs;
use super::s3::StoreArgs;

#[derive(Args, Debug)]
pub(crate) struct ConsoleArgs {
    /// Where it keeps its queue, its history and the records of runs: a new or empty directory, or
    /// one that a console was in before
    #[arg(long, default_value = "plimsoll-console", value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Where to listen; port 0 takes a free one and says which
    #[arg(long, default_value = "127.0.0.1:19088", value_name = "ADDR:PORT")]
    pub(crate) listen: SocketAddr,
    /// Where to answer as a driver of COSBench's, for scripts that look whether one is there;
    /// `none` for nowhere
    #[arg(long, default_value = "127.0.0.1:18088", value_name = "ADDR:PORT|none")]
    pub(crate) driver_listen: DriverListen,
    /// COSBench's controller.conf: name, concurrency, archive_dir and the drivers that are expected
    /// [default: controller.conf here, in conf/ or in /etc/cosbench/, if it is there]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// What it is called [default: as controller.conf says, else the name of this machine]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Where COSBench's archives go [default: as controller.conf says, else archive in --directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) archive: Option<PathBuf>,
    /// How many workloads run at a time [default: as controller.conf says, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) concurrency: Option<u32>,
    /// How much memory this process may take: a run that takes more is ended, and a workload that
    /// would take more from its first operation on is refused [default: an eighth of the machine's]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory_max: Option<ByteSize>,
    /// Who may ask: COSBench's cosbench-users.xml, or lines of `htpasswd -B`
    /// [default: cosbench-users.xml beside controller.conf, if it is there]
    #[arg(long, value_name = "FILE", help_heading = "Access")]
    pub(crate) users: Option<PathBuf>,
    /// Listen on an address that others reach although nobody is asked who they are
    #[arg(long, help_heading = "Access")]
    pub(crate) insecure_no_auth: bool,
    /// Serve TLS with this certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = "Access")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "Access")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Keep the secrets of workloads in files of the owner's after they have run, so that they can
    /// be repeated without being submitted again
    #[arg(long, help_heading = "Permissions")]
    pub(crate) keep_secrets: bool,
    /// Leave to change what no run of plimsoll made in buckets of this name, with * and ?; also
    /// `touch` in console.toml of --directory
    #[arg(long, value_name = "PATTERN", help_heading = "Permissions")]
    pub(crate) touch: Vec<String>,
    /// Leave to work on files below this directory, and to read files there that a workload names
    #[arg(long, value_name = "DIR", help_heading = "Permissions")]
    pub(crate) allow_dir: Vec<PathBuf>,
    /// Leave to run the scripts in this directory that workloads name as their triggers
    #[arg(long, value_name = "DIR", help_heading = "Permissions")]
    pub(crate) triggers: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
}

/// Where to answer as a driver of COSBench's does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DriverListen(pub(crate) Option<SocketAddr>);

impl std::str::FromStr for DriverListen {
    type Err = std::net::AddrParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => Ok(Self(None)),
            text => text.parse().map(|address| Self(Some(address))),
        }
    }
}
