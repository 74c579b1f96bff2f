//! One blocking call for each operation.

use plimsoll_driver::Reply;
use rustix::io::Errno;

use crate::block::{Act, Block, Progress};
use crate::open::OpenFile;

/// Does a block from its first to its last byte. `buffer` is exactly as long as the block.
#[inline]
pub(crate) fn run(block: Block, file: &OpenFile, buffer: &mut [u8]) -> Reply {
    let mut progress = Progress::new(block);
    loop {
        let result = call(&progress, file, buffer);
        if let Some(reply) = progress.advance(result, file) {
            return reply;
        }
    }
}

#[inline]
fn call(progress: &Progress, file: &OpenFile, buffer: &mut [u8]) -> Result<u32, Errno> {
    let rest = &mut buffer[progress.done as usize..];
    let (offset, _) = progress.rest();
    let count = match progress.block.act {
        Act::Read => rustix::io::pread(&file.fd, rest, offset)?,
        Act::Write => rustix::io::pwrite(&file.fd, rest, offset)?,
        Act::Sync { data_only } => {
            sync(file, data_only)?;
            0
        }
    };
    Ok(count as u32)
}

pub(crate) fn sync(file: &OpenFile, data_only: bool) -> Result<(), Errno> {
    if data_only { rustix::fs::fdatasync(&file.fd) } else { rustix::fs::fsync(&file.fd) }
}
