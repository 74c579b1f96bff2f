//! One blocking call for each operation.

use plimsoll_driver::Reply;
use rustix::io::Errno;

use crate::block::{Act, Block, Progress};
use crate::open::OpenFile;

/// Does a block from its first to its last byte. `buffer` is exactly as long as the block.
#[inline]
pub(crate) fn run(block: Block, file: &OpenFile, buffer: &mut [u8]) -> Reply {
    match call(block, file, block.offset, buffer) {
        Ok(count) if count == block.len => Ok(u64::from(count)),
        result => complete(block, file, buffer, result),
    }
}

/// Goes on with a block after its first call.
#[cold]
fn complete(
    block: Block,
    file: &OpenFile,
    buffer: &mut [u8],
    mut result: Result<u32, Errno>,
) -> Reply {
    let mut progress = Progress::new(block);
    loop {
        if let Some(reply) = progress.advance(result, file) {
            return reply;
        }
        let (offset, _) = progress.rest();
        result = call(block, file, offset, &mut buffer[progress.done as usize..]);
    }
}

#[inline]
fn call(block: Block, file: &OpenFile, offset: u64, rest: &mut [u8]) -> Result<u32, Errno> {
    let count = match block.act {
        Act::Read => rustix::io::pread(&file.fd, rest, offset)?,
        Act::Write => rustix::io::pwrite(&file.fd, rest, offset)?,
        Act::Sync { data_only } => sync(file, data_only).map(|()| 0)?,
    };
    Ok(count as u32)
}

pub(crate) fn sync(file: &OpenFile, data_only: bool) -> Result<(), Errno> {
    if data_only { rustix::fs::fdatasync(&file.fd) } else { rustix::fs::fsync(&file.fd) }
}
