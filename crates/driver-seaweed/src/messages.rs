//! The messages of the master and of volume servers that this driver sends and reads.
//!
//! Numbers are those of SeaweedFS's protocol (`master_pb`, `volume_server_pb`); fields that nobody
//! here asks for are left out.

use prost::Message;

/// Asks for a file id.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AssignRequest {
    #[prost(uint64, tag = "1")]
    pub(crate) count: u64,
    #[prost(string, tag = "2")]
    pub(crate) replication: String,
    #[prost(string, tag = "3")]
    pub(crate) collection: String,
    #[prost(string, tag = "4")]
    pub(crate) ttl: String,
    #[prost(string, tag = "5")]
    pub(crate) data_center: String,
    #[prost(string, tag = "6")]
    pub(crate) rack: String,
    #[prost(string, tag = "10")]
    pub(crate) disk_type: String,
    /// How many bytes each file is expected to have.
    #[prost(uint64, tag = "11")]
    pub(crate) expected_bytes: u64,
}

/// A file id, and where to write it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AssignResponse {
    #[prost(string, tag = "1")]
    pub(crate) fid: String,
    #[prost(uint64, tag = "4")]
    pub(crate) count: u64,
    #[prost(string, tag = "5")]
    pub(crate) error: String,
    /// The token that lets write it.
    #[prost(string, tag = "6")]
    pub(crate) token: String,
    /// The other servers that have the volume.
    #[prost(message, repeated, tag = "7")]
    pub(crate) replicas: Vec<Location>,
    #[prost(message, optional, tag = "8")]
    pub(crate) location: Option<Location>,
}

/// Where a volume is.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Location {
    /// `host:port` of HTTP.
    #[prost(string, tag = "1")]
    pub(crate) url: String,
    #[prost(string, tag = "2")]
    pub(crate) public_url: String,
    #[prost(uint32, tag = "3")]
    pub(crate) grpc_port: u32,
}

/// Asks where volumes are.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct LookupRequest {
    #[prost(string, repeated, tag = "1")]
    pub(crate) volumes_or_files: Vec<String>,
    #[prost(string, tag = "2")]
    pub(crate) collection: String,
}

/// Where volumes are.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct LookupResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) found: Vec<FoundVolume>,
}

/// Where one volume is.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FoundVolume {
    #[prost(string, tag = "1")]
    pub(crate) volume_or_file: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) locations: Vec<Location>,
    #[prost(string, tag = "3")]
    pub(crate) error: String,
}

/// Says who we are, as the first message of a stream that brings news of volumes.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeepConnectedRequest {
    #[prost(string, tag = "1")]
    pub(crate) client_type: String,
    #[prost(string, tag = "3")]
    pub(crate) client_address: String,
    #[prost(string, tag = "4")]
    pub(crate) version: String,
    #[prost(string, tag = "6")]
    pub(crate) data_center: String,
    #[prost(string, tag = "7")]
    pub(crate) rack: String,
}

/// News.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeepConnectedResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) volumes: Option<VolumeNews>,
}

/// News of one volume server; at first all that it has.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct VolumeNews {
    #[prost(string, tag = "1")]
    pub(crate) url: String,
    #[prost(string, tag = "2")]
    pub(crate) public_url: String,
    #[prost(uint32, repeated, tag = "3")]
    pub(crate) new_volumes: Vec<u32>,
    #[prost(uint32, repeated, tag = "4")]
    pub(crate) deleted_volumes: Vec<u32>,
    /// The master to ask, where it is another one.
    #[prost(string, tag = "5")]
    pub(crate) leader: String,
    #[prost(uint32, tag = "7")]
    pub(crate) grpc_port: u32,
    /// Volumes that are kept in erasure-coded shards.
    #[prost(uint32, repeated, tag = "8")]
    pub(crate) new_coded_volumes: Vec<u32>,
    #[prost(uint32, repeated, tag = "9")]
    pub(crate) deleted_coded_volumes: Vec<u32>,
}

/// Removes files of one volume server; copies on others stay.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct BatchDeleteRequest {
    #[prost(string, repeated, tag = "1")]
    pub(crate) fids: Vec<String>,
}

/// What came of it, file by file.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct BatchDeleteResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) results: Vec<BatchDeleted>,
}

/// What came of one file.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct BatchDeleted {
    #[prost(string, tag = "1")]
    pub(crate) fid: String,
    /// As of HTTP: 202 removed, 304 not there, 404 no such volume.
    #[prost(int32, tag = "2")]
    pub(crate) status: i32,
    #[prost(string, tag = "3")]
    pub(crate) error: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assign_is_what_the_benchmark_sends() {
        let request = AssignRequest {
            count: 1,
            replication: "000".to_owned(),
            collection: "benchmark".to_owned(),
            expected_bytes: 1035,
            ..AssignRequest::default()
        };
        let bytes = b"\x08\x01\x12\x03000\x1a\x09benchmark\x58\x8b\x08";
        assert_eq!(request.encode_to_vec(), bytes);
    }

    #[test]
    fn fields_that_nobody_asked_for_are_passed_over() {
        // As a master of version 4.44 answers, with a location and one replica.
        let location = b"\x0a\x0e127.0.0.1:8080\x12\x0e127.0.0.1:8080\x18\x90\x8d\x01";
        let mut bytes = b"\x0a\x0c3,01637037d6\x20\x01\x3a".to_vec();
        bytes.push(location.len() as u8);
        bytes.extend_from_slice(location);
        bytes.push(0x42);
        bytes.push(location.len() as u8);
        bytes.extend_from_slice(location);
        let answer = AssignResponse::decode(&*bytes).unwrap();
        assert_eq!((answer.fid.as_str(), answer.count), ("3,01637037d6", 1));
        let url = "127.0.0.1:8080".to_owned();
        let location = Location { url: url.clone(), public_url: url, grpc_port: 18_064 };
        assert_eq!(answer.location, Some(location.clone()));
        assert_eq!(answer.replicas, [location]);
    }
}
