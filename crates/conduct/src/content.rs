//! What makes the content of the members of sets.

use std::path::Path;
use std::sync::Arc;

use plimsoll_workload::DataFileSpec;
use plimsoll_workload::data::{DataRule, Generator};
use plimsoll_workload::objects::ObjectSet;
use plimsoll_workload::plan::Placed;

use crate::error::refused;
use crate::{ConductError, input};

/// By set: what its content is made by.
pub(crate) type Generators = Arc<[Arc<Generator>]>;

/// Returns the generators of what each set holds, with the files that they are made of.
pub(crate) fn generators(placed: &Placed) -> Result<Generators, ConductError> {
    let seed = placed.seed.0;
    let plain = Arc::new(Generator::new(seed));
    let of_set = |set: &Option<Arc<ObjectSet>>| match set {
        Some(set) if set.data != DataRule::Random => {
            let files = content_files(&set.data_files)?;
            Ok(Arc::new(Generator::with_rule(seed, &set.data, files)))
        }
        _ => Ok(Arc::clone(&plain)),
    };
    placed.sets.iter().map(of_set).collect()
}

/// Returns what the files hold that objects are made of.
fn content_files(files: &[DataFileSpec]) -> Result<Vec<u8>, ConductError> {
    let mut bytes = Vec::new();
    for DataFileSpec { path, bytes: size } in files {
        let held = input::read_bounded(Path::new(path), size.saturating_add(1));
        let held = held.map_err(|source| ConductError::Content { path: path.into(), source })?;
        if held.len() as u64 != *size {
            return refused(format!(
                "{path} does not hold the {size} bytes that the workload says"
            ));
        }
        bytes.extend(held);
    }
    Ok(bytes)
}
