//! The first errors of a stage, as a record keeps them.

use plimsoll_model::EndpointId;
use plimsoll_record::schema::{self, Manifest};
use plimsoll_report::ErrorSample;

/// Returns the first errors of one stage.
pub(crate) fn first_errors(manifest: &Manifest, stage: &schema::Stage) -> Vec<ErrorSample> {
    let is_of_stage = |error: &&schema::FirstError| error.stage_index == Some(stage.index);
    let of_stage = manifest.first_errors.iter().filter(is_of_stage);
    let endpoint = |name: &String| {
        let position = manifest.endpoints().position(|each| each == name)?;
        Some(EndpointId(u16::try_from(position).ok()?))
    };
    let sample = |error: &schema::FirstError| ErrorSample {
        class: error.class,
        kind: error.kind,
        endpoint: error.endpoint.as_ref().and_then(endpoint),
        status: error.status,
        message: error.message.clone(),
    };
    of_stage.map(sample).collect()
}
