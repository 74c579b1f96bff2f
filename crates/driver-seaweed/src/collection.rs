//! A collection as a whole: whether it is there, its volumes, how many files it holds, its end.

use std::collections::HashMap;

use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use plimsoll_driver::DriverError;
use plimsoll_model::ErrorClass;
use serde::Deserialize;

use crate::calls;
use crate::thread::Thread;

/// What a volume server holds.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ServerStatus {
    #[serde(default)]
    volumes: Option<Vec<VolumeStatus>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct VolumeStatus {
    id: u32,
    #[serde(default)]
    collection: String,
    file_count: u64,
    #[serde(default)]
    delete_count: u64,
}

fn in_query(text: &str) -> impl std::fmt::Display {
    percent_encode(text.as_bytes(), NON_ALPHANUMERIC)
}

/// Tells whether a collection is there.
pub(crate) async fn exists(thread: &Thread, name: &str) -> Result<bool, DriverError> {
    let path = format!("/collection/info?collection={}", in_query(name));
    let leader = thread.master.view().leader.clone();
    let said = calls::ask(&thread.master.config, &thread.clock, &leader, &path).await?;
    match said.status {
        200 => Ok(true),
        // The words are all that tells it from other refusals.
        400 if String::from_utf8_lossy(&said.body).contains("does not exist") => Ok(false),
        _ => Err(said.refusal()),
    }
}

/// Has volumes made that can be written to as the driver writes.
pub(crate) async fn grow(thread: &Thread, name: &str, count: u32) -> Result<(), DriverError> {
    let config = &thread.master.config;
    let mut path = format!("/vol/grow?count={count}");
    config.push_placement(name, &mut path);
    let leader = thread.master.view().leader.clone();
    let said = calls::ask(config, &thread.clock, &leader, &path).await?;
    match said.status {
        200 => Ok(()),
        _ => {
            let refused = said.refusal();
            let why = format!("{count} volumes (`grow`) were not made: {}", refused.message);
            Err(DriverError { message: why, ..refused })
        }
    }
}

/// Returns the collections of volumes, by the word of the servers that have them. Volumes of
/// servers that do not answer, and coded ones, are not in it.
pub(crate) async fn of_volumes(thread: &Thread) -> HashMap<u32, String> {
    let mut found = HashMap::new();
    for server in &thread.master.view().servers {
        let config = &thread.master.config;
        let status = calls::read::<ServerStatus>(config, &thread.clock, server, "/status").await;
        let volumes = status.ok().and_then(|status| status.volumes).unwrap_or_default();
        found.extend(volumes.into_iter().map(|volume| (volume.id, volume.collection)));
    }
    found
}

/// Returns how many files a collection holds, each as often as there are copies of it. Asked of the
/// volume servers, since what a master knows is seconds old.
async fn files_count(thread: &Thread, name: &str) -> Result<u64, DriverError> {
    let mut count = 0;
    for server in &thread.master.view().servers {
        let config = &thread.master.config;
        let status: ServerStatus = calls::read(config, &thread.clock, server, "/status").await?;
        let volumes = status.volumes.unwrap_or_default().into_iter();
        let of_it = volumes.filter(|volume| volume.collection == name);
        count += of_it.map(|of| of.file_count.saturating_sub(of.delete_count)).sum::<u64>();
    }
    Ok(count)
}

/// Drops a collection, unless it holds files.
pub(crate) async fn drop_empty(thread: &Thread, name: &str) -> Result<(), DriverError> {
    let left = files_count(thread, name).await?;
    if left > 0 {
        let why = format!(
            "the collection `{name}` is kept, as it holds {left} files that are not the run's"
        );
        return Err(DriverError::new(ErrorClass::Precondition, why));
    }
    let path = format!("/col/delete?collection={}", in_query(name));
    let leader = thread.master.view().leader.clone();
    let said = calls::ask(&thread.master.config, &thread.clock, &leader, &path).await?;
    match said.status {
        200 | 204 => Ok(()),
        400 if String::from_utf8_lossy(&said.body).contains("does not exist") => Ok(()),
        _ => Err(said.refusal()),
    }
}
