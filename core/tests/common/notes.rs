//! Noting changes of files as the process that replays does.

use arrow_cache_core::RelationFile;
use arrow_cache_core::replay::changes::Full;
use arrow_cache_core::replay::notes::ReplayNotes;
use arrow_cache_core::versions::slots::SlotId;
use std::collections::BTreeSet;

pub const fn file(number: u32) -> RelationFile {
    RelationFile::new(5, number)
}

/// Notes a change of a file, whose slot has the same number, as the process that replays does.
pub fn change_rows<const L: usize, const I: usize, const N: usize>(
    notes: &mut ReplayNotes<L, I, N>,
    xid: u32,
    number: u32,
) -> Result<(), Full> {
    if notes.note_hot(xid, file(number)) { Ok(()) } else { notes.note_rows(xid, file(number), SlotId(number)) }
}

/// What is noted of a transaction, each change once.
pub fn all_notes<const L: usize, const I: usize, const N: usize>(notes: &ReplayNotes<L, I, N>, xid: u32) -> Vec<u32> {
    let mut noted = BTreeSet::new();
    notes.for_each(xid, |change| {
        noted.insert(change.0);
    });
    noted.into_iter().collect()
}
