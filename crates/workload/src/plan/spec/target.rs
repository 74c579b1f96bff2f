//! Where the load goes, as written: addresses without secrets.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Named, OneOrMany};
use crate::plan::tree::{Tree, from_tree};
use crate::plan::units::{Percent, Size, Time};

/// Where the load goes: the one target that is named when the run starts, one that needs no name,
/// or several with names.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Targets {
    /// The one that is named when the run starts.
    #[default]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Given,
    /// The only one: `{s3: {...}}`.
    One(TargetSpec),
    /// Several: `{store: {s3: {...}}, scratch: {files: {...}}}`. The words for kinds of target are
    /// no names.
    Several(Named<TargetSpec>),
}

impl Targets {
    /// Tells whether the target is named when the run starts.
    pub fn is_given(&self) -> bool {
        *self == Self::Given
    }
}

impl<'de> Deserialize<'de> for Targets {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Tree::deserialize(from)? {
            Tree::Null => Ok(Self::Given),
            Tree::Map(fields) if fields.is_empty() => Ok(Self::Given),
            Tree::Map(fields) => {
                let is_kind = fields.iter().any(|(name, _)| TargetSpec::KINDS.contains(&&**name));
                match is_kind {
                    true if fields.len() > 1 => Err(D::Error::custom(
                        "each of several targets needs a name: {store: {s3: ...}, scratch: \
                         {files: ...}}",
                    )),
                    true => from_tree(Tree::Map(fields)).map(Self::One),
                    false => from_tree(Tree::Map(fields)).map(Self::Several),
                }
            }
            _ => Err(D::Error::custom("must be a map of targets")),
        }
    }
}

/// One target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum TargetSpec {
    /// An object store that speaks S3.
    S3(S3Target),
    /// Directories of file systems, or devices.
    Files(FilesTarget),
    /// SeaweedFS by its own protocol.
    Seaweedfs(Box<SeaweedTarget>),
    /// An object store that speaks Swift.
    Swift(Box<SwiftTarget>),
    /// Nothing: every operation succeeds at once.
    Null(NullTarget),
    /// The embedded store, which follows a script.
    Oracle(OracleTarget),
}

impl TargetSpec {
    /// The words for kinds of target.
    pub const KINDS: [&'static str; 6] = ["s3", "files", "seaweedfs", "swift", "null", "oracle"];

    /// Returns the word for its kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::S3(_) => "s3",
            Self::Files(_) => "files",
            Self::Seaweedfs(_) => "seaweedfs",
            Self::Swift(_) => "swift",
            Self::Null(_) => "null",
            Self::Oracle(_) => "oracle",
        }
    }

    /// Returns every address that it names, by field: stores, proxies and sign-in services.
    pub fn addresses(&self) -> Vec<(&'static str, &[String])> {
        match self {
            Self::S3(s3) => vec![("hosts", &*s3.hosts.0), ("proxy", s3.proxy.as_slice())],
            Self::Seaweedfs(seaweed) => {
                vec![("master", &*seaweed.master.0), ("filer", &*seaweed.filer.0)]
            }
            Self::Swift(swift) => {
                vec![("auth", swift.auth.as_slice()), ("storage_url", swift.storage_url.as_slice())]
            }
            Self::Files(_) | Self::Null(_) | Self::Oracle(_) => Vec::new(),
        }
    }

    /// Tells whether it names what is written to it by itself, so that a member is asked for by the
    /// name that it was given and not by a key.
    pub fn names_members(&self) -> bool {
        matches!(self, Self::Seaweedfs(seaweed) if !seaweed.is_filer())
    }

    /// Tells whether it states a checksum of what was there before, so that it can be checked.
    pub fn states_sums(&self) -> bool {
        matches!(self, Self::Seaweedfs(_))
    }
}

/// An object store that speaks S3. Keys and tokens come from the environment or a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct S3Target {
    /// Its addresses, such as `s3-{1...4}:9000`.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    pub hosts: OneOrMany<String>,
    /// The bucket of sets that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// Whether a bucket that does not exist is created; at the end it is removed if it is empty.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub create_bucket: bool,
    /// Whether a bucket that the run created stays.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub keep_bucket: bool,
    /// The region that requests are signed for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Whether TLS is used.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub tls: bool,
    /// Where a request names the bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookup: Option<Lookup>,
    /// Which profile the keys come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// How requests are signed; left out, as the command line says, else by version 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<S3Signature>,
    /// How long making a connection may take, and how long the store may then let a request go
    /// without a byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Time>,
    /// The proxy that all requests go through, such as `proxy:3128`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// The storage class of what is uploaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<String>,
    /// Whether the store's certificate is taken whoever has signed it.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub insecure: bool,
}

/// How requests to S3 are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum S3Signature {
    /// By version 2, which only old stores need.
    V2,
    /// By version 4.
    V4,
}

/// Where a request names the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Lookup {
    /// In the path.
    Path,
    /// In the host's name.
    Host,
}

/// Directories in which the run makes one of its own, `<directory>/plimsoll/<run>/`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FilesTarget {
    /// The directory; of several, workers are dealt to them in turn. Left out only where all sets
    /// name paths that are there.
    #[serde(
        default,
        skip_serializing_if = "OneOrMany::is_empty",
        serialize_with = "super::names_a_file"
    )]
    pub directory: OneOrMany<String>,
}

/// SeaweedFS: by the protocol of its masters and volume servers, or by its filers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SeaweedTarget {
    /// Its masters, such as `localhost:9333`.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    pub master: OneOrMany<String>,
    /// Its filers instead of its masters, such as `filer-{1...2}:8888`: files have keys then, which
    /// are paths.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    pub filer: OneOrMany<String>,
    /// Of filers: the directory of all keys, `/plimsoll-bench` where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The collection that is written to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection: Option<String>,
    /// How copies are placed, such as `'001'`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<String>,
    /// The type of disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
    /// How long the store keeps what is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Time>,
    /// Whether the store puts each write on the medium before it answers.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub fsync: bool,
    /// Where files are to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_center: Option<String>,
    /// The rack where they are to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rack: Option<String>,
    /// How file ids are asked for.
    #[serde(default, skip_serializing_if = "is_plain")]
    pub assign: SeaweedAssign,
    /// How many ids are asked for at once; each of a worker's next writes takes one.
    #[serde(default = "super::one", skip_serializing_if = "super::is_one")]
    pub ids_per_assign: u32,
    /// How content goes to a volume server.
    #[serde(default, skip_serializing_if = "is_plain")]
    pub upload: SeaweedUpload,
    /// Has so many volumes made in the collection before the first stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grow: Option<u32>,
    /// Whether the collection, or the directory of filers, is created where it does not exist.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub create_bucket: bool,
    /// Has the collection dropped at the end if the run made it and nobody else wrote to it.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub drop_collection: bool,
    /// The `security.toml` of the cluster: keys of tokens, and TLS.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "super::names_a_file"
    )]
    pub security: Option<String>,
}

impl SeaweedTarget {
    /// The directory of filers where none is named.
    pub const DIRECTORY: &str = "/plimsoll-bench";

    /// Tells whether it is reached by its filers.
    pub fn is_filer(&self) -> bool {
        !self.filer.is_empty()
    }

    /// Returns the plain target of these filers.
    pub fn of_filers(filers: Vec<String>) -> Self {
        Self { filer: OneOrMany(filers), ..Self::of(Vec::new()) }
    }

    /// Returns the plain target of these masters.
    pub fn of(masters: Vec<String>) -> Self {
        Self {
            master: OneOrMany(masters),
            filer: OneOrMany::default(),
            directory: None,
            collection: None,
            replication: None,
            disk: None,
            ttl: None,
            fsync: false,
            data_center: None,
            rack: None,
            assign: SeaweedAssign::default(),
            ids_per_assign: 1,
            upload: SeaweedUpload::default(),
            grow: None,
            create_bucket: false,
            drop_collection: false,
            security: None,
        }
    }
}

/// How file ids are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SeaweedAssign {
    /// By a call of gRPC each.
    #[default]
    Call,
    /// Over one stream of gRPC for each worker.
    Stream,
    /// By HTTP.
    Http,
}

/// How content goes to a volume server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SeaweedUpload {
    /// As a form of one part (POST), as `weed` does.
    #[default]
    Form,
    /// As it is (PUT).
    Put,
}

fn is_plain<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// An object store that speaks Swift. Passwords and tokens come from the environment (`ST_KEY`,
/// `OS_PASSWORD`, `OS_AUTH_TOKEN`), as does what is left out here of who signs in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SwiftTarget {
    /// Where one signs in, such as `http://swift:8080/auth/v1.0` or `https://keystone:5000/v3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<String>,
    /// How one signs in; left out, what is given tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_version: Option<SwiftAuth>,
    /// Who signs in; of version 1 as `account:user`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The name of the project (tenant) whose objects they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The id of that project instead of its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// The domain of the user; of version 3, `Default` where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_domain: Option<String>,
    /// The domain of the project; of version 3, `Default` where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_domain: Option<String>,
    /// The region of the store in Keystone's catalogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The name or the type of the store in Keystone's catalogue; left out, the first of type
    /// `object-store`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Where the account is, such as `http://swift:8080/v1/AUTH_test`, whatever the sign-in says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_url: Option<String>,
    /// The container of sets that name none; `plimsoll` where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Whether a container that does not exist is created; at the end it is removed if it is empty.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub create_bucket: bool,
    /// Whether a container that the run created stays.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub keep_bucket: bool,
    /// The storage policy of containers that are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Whether content is sent without its length being said before (`Transfer-Encoding: chunked`).
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub chunked: bool,
    /// Objects that are larger are written in segments of this size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<Size>,
    /// How an object is made of segments, or of the parts of an upload.
    #[serde(default, skip_serializing_if = "is_plain")]
    pub manifest: SwiftManifest,
    /// Whether the MD5 that the store states of what it stored is compared with that of what was
    /// sent, which costs more than sending it.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub md5: bool,
    /// How long making a connection may take, and how long the store may then let a request go
    /// without a byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Time>,
    /// Whether the store's certificate is taken whoever has signed it.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub insecure: bool,
}

impl SwiftTarget {
    /// The container where none is named.
    pub const CONTAINER: &str = "plimsoll";

    /// Returns the container of sets that name none.
    pub fn container(&self) -> &str {
        self.container.as_deref().unwrap_or(Self::CONTAINER)
    }
}

/// How one signs in to Swift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SwiftAuth {
    /// By headers (tempauth, swauth, Ceph's gateway).
    V1,
    /// By Keystone, version 2.
    V2,
    /// By Keystone, version 3.
    V3,
    /// Not at all: by the token of the environment, or without one.
    None,
}

/// How an object of Swift is made of segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SwiftManifest {
    /// By a list of them, which the store checks (SLO).
    #[default]
    Static,
    /// By what their names begin with (DLO).
    Dynamic,
}

/// Nothing: every operation succeeds at once, unless this says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NullTarget {
    /// How long each operation takes.
    #[serde(default, skip_serializing_if = "is_plain")]
    pub delay: Time,
    /// The share of operations that fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_rate: Option<Percent>,
    /// How much a read of a whole member gives, however large that is; and of a part, where the
    /// workload does not know how large it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_size: Option<Size>,
}

/// The embedded store: by a script, as a queue, or, without either, as fast as it can.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OracleTarget {
    /// The file with its script.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "super::names_a_file"
    )]
    pub script: Option<String>,
    /// A store whose load line is known by theory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueSpec>,
}

/// A queue: so many operations are served at once, each for an exponential time, and who comes
/// first is served first; M/M/c where they arrive as a Poisson process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// How many are served at once; at least 1.
    pub servers: u32,
    /// How long one takes on average; above 0.
    pub time: Time,
}
