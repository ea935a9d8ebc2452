//! The pieces of memory that entries own in the arena: no two of them share a byte. State of one process.

use super::finding::{Finding, Findings};
use crate::room::{OutOfMemory, Room};

/// Most pieces that are compared with each other; they take 16 bytes each. Of more, those that come first are.
const MOST_BLOCKS: usize = 1 << 20;

/// Pieces of memory: where they begin in the arena, and their lengths.
pub(super) struct Blocks(Vec<(usize, u32)>);

impl Blocks {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn add(&mut self, place: usize, bytes: usize) -> Result<(), OutOfMemory> {
        if self.0.len() < MOST_BLOCKS {
            self.0.make_room(1)?;
            // A piece of 4 GB or more is compared with those that begin in its first 4 GB.
            self.0.push((place, u32::try_from(bytes).unwrap_or(u32::MAX)));
        }
        Ok(())
    }

    /// Finds pieces that share a byte.
    pub(super) fn find_shared(&mut self, findings: &mut Findings) {
        self.0.sort_unstable();
        for pair in self.0.windows(2) {
            let [(place, bytes), (next, _)] = pair else { continue };
            if next - place < *bytes as usize {
                findings.add(Finding::of("arena", "two pieces of memory share bytes").at("byte", *next as u64));
            }
        }
    }
}
