//! The messages of gRPC that the stand-in reads and sends.
//!
//! Written from the protocol's description and not from the driver's, so that client and server do
//! not share a mistake.

use prost::Message;

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
    #[prost(string, tag = "7")]
    pub(crate) data_node: String,
    #[prost(string, tag = "10")]
    pub(crate) disk_type: String,
    #[prost(uint64, tag = "11")]
    pub(crate) expected_data_size: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AssignResponse {
    #[prost(string, tag = "1")]
    pub(crate) fid: String,
    #[prost(uint64, tag = "4")]
    pub(crate) count: u64,
    #[prost(string, tag = "5")]
    pub(crate) error: String,
    #[prost(string, tag = "6")]
    pub(crate) auth: String,
    #[prost(message, repeated, tag = "7")]
    pub(crate) replicas: Vec<Location>,
    #[prost(message, optional, tag = "8")]
    pub(crate) location: Option<Location>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Location {
    #[prost(string, tag = "1")]
    pub(crate) url: String,
    #[prost(string, tag = "2")]
    pub(crate) public_url: String,
    #[prost(uint32, tag = "3")]
    pub(crate) grpc_port: u32,
    #[prost(string, tag = "4")]
    pub(crate) data_center: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LookupVolumeRequest {
    #[prost(string, repeated, tag = "1")]
    pub(crate) volume_or_file_ids: Vec<String>,
    #[prost(string, tag = "2")]
    pub(crate) collection: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LookupVolumeResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) volume_id_locations: Vec<VolumeIdLocation>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct VolumeIdLocation {
    #[prost(string, tag = "1")]
    pub(crate) volume_or_file_id: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) locations: Vec<Location>,
    #[prost(string, tag = "3")]
    pub(crate) error: String,
    #[prost(string, tag = "4")]
    pub(crate) auth: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeepConnectedRequest {
    #[prost(string, tag = "1")]
    pub(crate) client_type: String,
    #[prost(string, tag = "3")]
    pub(crate) client_address: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeepConnectedResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) volume_location: Option<VolumeLocation>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct VolumeLocation {
    #[prost(string, tag = "1")]
    pub(crate) url: String,
    #[prost(string, tag = "2")]
    pub(crate) public_url: String,
    #[prost(uint32, repeated, tag = "3")]
    pub(crate) new_vids: Vec<u32>,
    #[prost(uint32, repeated, tag = "4")]
    pub(crate) deleted_vids: Vec<u32>,
    #[prost(string, tag = "5")]
    pub(crate) leader: String,
    #[prost(string, tag = "6")]
    pub(crate) data_center: String,
    #[prost(uint32, tag = "7")]
    pub(crate) grpc_port: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct BatchDeleteRequest {
    #[prost(string, repeated, tag = "1")]
    pub(crate) file_ids: Vec<String>,
    #[prost(bool, tag = "2")]
    pub(crate) skip_cookie_check: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct BatchDeleteResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) results: Vec<DeleteResult>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeleteResult {
    #[prost(string, tag = "1")]
    pub(crate) file_id: String,
    #[prost(int32, tag = "2")]
    pub(crate) status: i32,
    #[prost(string, tag = "3")]
    pub(crate) error: String,
    #[prost(uint32, tag = "4")]
    pub(crate) size: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that were taken off the wire of SeaweedFS 4.48.
    #[test]
    fn messages_are_those_of_the_wire() {
        let location = Location {
            url: "127.0.0.1:21626".to_owned(),
            public_url: "127.0.0.1:21626".to_owned(),
            grpc_port: 31_626,
            data_center: "DefaultDataCenter".to_owned(),
        };
        let assigned = AssignResponse {
            fid: "4,137b4ce765".to_owned(),
            count: 1,
            location: Some(location),
            ..AssignResponse::default()
        };
        let mut wire = b"\x0a\x0c4,137b4ce765\x20\x01\x42\x39".to_vec();
        wire.extend(b"\x0a\x0f127.0.0.1:21626\x12\x0f127.0.0.1:21626\x18\x8a\xf7\x01");
        wire.extend(b"\x22\x11DefaultDataCenter");
        assert_eq!(assigned.encode_to_vec(), wire);
        let gone = DeleteResult {
            file_id: "999,0100000000".to_owned(),
            status: 404,
            error: "volume 999 not found".to_owned(),
            size: 0,
        };
        let wire = b"\x0a\x0e999,0100000000\x10\x94\x03\x1a\x14volume 999 not found";
        assert_eq!(gone.encode_to_vec(), wire);
        let news = KeepConnectedResponse {
            volume_location: Some(VolumeLocation {
                leader: "127.0.0.1:21665.31665".to_owned(),
                ..VolumeLocation::default()
            }),
        };
        assert_eq!(news.encode_to_vec(), b"\x0a\x17\x2a\x15127.0.0.1:21665.31665");
        let asked = AssignRequest::decode(&b"\x08\x01\x12\x03000\x1a\x09benchmark\x58\x8b\x08"[..]);
        let asked = asked.unwrap();
        assert_eq!((asked.collection.as_str(), asked.expected_data_size), ("benchmark", 1035));
    }
}
