//! The flags that change how requests to S3 are made: warp's names.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::secret::Secret;

use super::{ByteSize, Duration};

/// How requests are made, whatever they are about.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[command(next_help_heading = "Requests")]
pub(crate) struct RequestArgs {
    /// Server-side encryption with a key generated for the run and sent with every request (SSE-C);
    /// needs --tls
    #[arg(long, conflicts_with_all = ["sse_s3_encrypt", "sse_kms_key"])]
    pub(crate) encrypt: bool,
    /// Server-side encryption with the server's own key (SSE-S3)
    #[arg(long, conflicts_with = "sse_kms_key")]
    pub(crate) sse_s3_encrypt: bool,
    /// Server-side encryption with this KMS key (SSE-KMS); without a name the default key
    #[arg(long, value_name = "KEY ID", num_args = 0..=1, default_missing_value = "")]
    pub(crate) sse_kms_key: Option<String>,
    /// Send a checksum behind what is uploaded: CRC32, CRC32C, CRC64NVME, SHA1, SHA256, or CRC32-FO
    /// and CRC32C-FO for that of whole objects
    #[arg(long, value_name = "NAME", conflicts_with = "md5")]
    pub(crate) checksum: Option<String>,
    /// Storage class of uploads
    #[arg(long, value_name = "CLASS")]
    pub(crate) storage_class: Option<String>,
    /// Tag of what is uploaded; can be given several times. `rand:N` stands for N random letters
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) tag: Vec<Pair>,
    /// Metadata of what is uploaded; can be given several times. `rand:N` stands for N random
    /// letters
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) add_metadata: Vec<Pair>,
    /// Upload only if the key does not exist yet (If-None-Match: *)
    #[arg(long)]
    pub(crate) if_none_match: bool,
    /// Upload larger objects in parts of this size, as one operation [default: 16MiB]; of multipart
    /// and multipart-put the size of a part [default: 5MiB]
    #[arg(long = "part.size", value_name = "SIZE")]
    pub(crate) part_size: Option<ByteSize>,
    /// Parts of such an object uploaded in parallel [default: 4]
    #[arg(long = "part.parallel", value_name = "N")]
    pub(crate) part_parallel: Option<u32>,
    /// Upload every object with one request, whatever its size
    #[arg(long, conflicts_with = "part_size")]
    pub(crate) disable_multipart: bool,
    /// How requests are signed and who asks: IAM fails where no keys are found in the environment,
    /// in profiles, and at the services of containers and instances
    #[arg(long, value_enum, ignore_case = true, default_value_t = SignatureArg::S3v4)]
    pub(crate) signature: SignatureArg,
    /// Exchange this web identity token, or the one in file:PATH, for credentials
    #[arg(long, env = "PLIMSOLL_STS_WEB_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    #[serde(skip)]
    pub(crate) sts_web_token: Option<Secret>,
    /// How long each place may take to hand out credentials, a `credential_process` among them
    /// [default: 10s]
    #[arg(long, value_name = "DURATION")]
    #[serde(default)]
    pub(crate) credentials_timeout: Option<Duration>,
    /// Replace each host by all of its addresses
    #[arg(long)]
    pub(crate) resolve_host: bool,
    /// Use HTTP/2; fail if the server does not support it
    #[arg(long)]
    pub(crate) http2: bool,
    /// `env` goes through the proxies that the environment names; without it only a workload's
    /// `proxy` does
    #[arg(long, value_enum, default_value_t = ProxyArg::None)]
    pub(crate) proxy: ProxyArg,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum SignatureArg {
    /// Version 4, with the keys of the flags
    #[default]
    #[value(name = "S3V4")]
    S3v4,
    /// Version 2, which only old stores need
    #[value(name = "S3V2")]
    S3v2,
    /// Version 4, with the keys that are found
    #[value(name = "IAM")]
    Iam,
    /// Version 4, with keys in exchange for --sts-web-token
    #[value(name = "STS_WEB_TOKEN")]
    StsWebToken,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum ProxyArg {
    /// Connect directly
    #[default]
    None,
    /// As HTTP_PROXY, HTTPS_PROXY and NO_PROXY say
    Env,
}

/// A name with a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pair(pub(crate) String, pub(crate) String);

impl FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok(Self(name.to_owned(), value.to_owned())),
            _ => Err("not NAME=VALUE".to_owned()),
        }
    }
}

/// What objects hold and which are chosen.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Objects")]
pub(crate) struct DataArgs {
    /// Content of objects: random, zero, text, or file:DIR for the bytes of the files there
    #[arg(long = "obj.generator", value_name = "KIND")]
    pub(crate) generator: Option<String>,
    /// Compression ratio of the content, as zstd's fastest level achieves
    #[arg(long = "data.compress", value_name = "RATIO")]
    pub(crate) data_compress: Option<f64>,
    /// Deduplication ratio of the content: one block in RATIO is unique
    #[arg(long = "data.dedupe", value_name = "RATIO")]
    pub(crate) data_dedupe: Option<f64>,
    /// Popularity of objects: uniform, zipf:THETA, or sequential [default: uniform]
    #[arg(long, value_name = "LAW")]
    pub(crate) pick: Option<String>,
}
