//! Closes parts whose writer has ended before it could.

use std::io::Write as _;

use super::found::Found;
use super::part::Part;
use super::{open_name, part_name, tail_name, unsaved};
use crate::{RecordError, RunDirectory};

impl RunDirectory {
    /// Makes whole parts of what was saved of those that nobody writes any more, so that the record
    /// can travel, and returns what is missing of them, a sentence each.
    ///
    /// What ends this in the middle loses nothing: a part stands under its name at once, and as
    /// long as it does not, what was saved of it is there.
    pub fn close_saved_parts(&self) -> Result<Vec<String>, RecordError> {
        let ops = self.ops()?;
        let mut losses = Vec::new();
        for number in Found::of(self)?.open {
            let (open, name) = (open_name(number), part_name(number));
            let saved = match Part::saved(&ops, number) {
                Ok(saved) => saved,
                Err(damage @ RecordError::Damaged { .. }) => {
                    losses.push(format!("{damage}: its operations are not counted"));
                    continue;
                }
                Err(error) => return Err(error),
            };
            losses.push(unsaved(number, saved.as_ref().map(Part::rows)));
            if let Some(part) = saved {
                let making = format!("{name}.tmp");
                ops.remove(&making)
                    .and_then(|()| ops.create(&making)?.write_all(part.bytes()))
                    .and_then(|()| ops.rename(&making, &name))
                    .map_err(|source| RecordError::io("write", &ops.path_of(&name), source))?;
            }
            ops.remove(&open)
                .and_then(|()| ops.remove(&tail_name(number)))
                .map_err(|source| RecordError::io("remove", &ops.path_of(&open), source))?;
        }
        Ok(losses)
    }
}
