//! The bytes of a file with the chunks of one answer. It begins with a table, which tells where each chunk lies, and of
//! which bytes it consists: so chunks are read one by one in any order, and what is damaged is found. Pure values.
//!
//! ```text
//! offset 0    FORMAT, number of the file, number of chunks, hash of the table and of these
//!        40   table: (length, hash) of each chunk
//!        *    chunks, one after the other, each from a multiple of 64 on
//! ```

use crate::hash::Hash128;
use crate::room::{OutOfMemory, RoomyVec};

/// The format. Another one needs another word.
const FORMAT: u64 = u64::from_le_bytes(*b"arrowf01");
const WORD: usize = size_of::<u64>();
/// Bytes before the table.
pub const FILE_HEAD: usize = 5 * WORD;
/// Bytes of a chunk in the table.
const ROW: usize = 3 * WORD;
const ALIGNMENT: u64 = 64;

/// A chunk in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FilePlace {
    /// Where it begins.
    pub offset: u64,
    /// Its bytes.
    pub len: usize,
    /// The hash of these.
    pub hash: Hash128,
}

/// The table of a file that is being written.
#[derive(Default)]
pub struct FileTable {
    rows: Vec<u8>,
}

impl FileTable {
    /// Notes the next chunk.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn add(&mut self, chunk: &[u8]) -> Result<(), OutOfMemory> {
        let hash = Hash128::of(chunk);
        self.rows.add_all([chunk.len() as u64, hash.hi, hash.lo].map(u64::to_le_bytes).as_flattened())
    }

    /// The bytes with which the file of this number begins.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn to_bytes(&self, number: u64) -> Result<Vec<u8>, OutOfMemory> {
        let mut bytes = Vec::with_room(FILE_HEAD + self.rows.len())?;
        let count = (self.rows.len() / ROW) as u64;
        bytes.add_all([FORMAT, number, count].map(u64::to_le_bytes).as_flattened())?;
        let hash = hash_of(&bytes, &self.rows)?;
        bytes.add_all([hash.hi, hash.lo].map(u64::to_le_bytes).as_flattened())?;
        bytes.add_all(&self.rows)?;
        Ok(bytes)
    }
}

/// Where the first of so many chunks begins.
#[must_use]
pub fn first_offset(chunks: usize) -> u64 {
    ((FILE_HEAD + chunks * ROW) as u64).next_multiple_of(ALIGNMENT)
}

/// Where a chunk begins that follows one of `len` bytes at `offset`.
#[must_use]
pub fn next_offset(offset: u64, len: usize) -> u64 {
    (offset + len as u64).next_multiple_of(ALIGNMENT)
}

/// Bytes of a file with chunks of these lengths, at most.
pub fn file_bytes(lens: impl Iterator<Item = usize> + Clone) -> u64 {
    let first = first_offset(lens.clone().count());
    lens.fold(first, next_offset)
}

/// How many bytes the table has behind a head of the file of this number; `None` if it is no such head.
#[must_use]
pub fn table_bytes(head: &[u8; FILE_HEAD], number: u64) -> Option<usize> {
    let ([format, own, count, ..], _) = words_of::<5>(head)?;
    let is_ours = format == FORMAT && own == number;
    usize::try_from(count).ok()?.checked_mul(ROW).filter(|_| is_ours)
}

/// The chunks of a file; `None` if head or table are not as they were written, or there is no memory.
#[must_use]
pub fn places(head: &[u8; FILE_HEAD], table: &[u8]) -> Option<Vec<FilePlace>> {
    let ([.., hi, lo], _) = words_of::<5>(head)?;
    if hash_of(&head[..3 * WORD], table) != Ok(Hash128 { hi, lo }) {
        return None;
    }
    let (rows, _) = table.as_chunks::<ROW>();
    let mut places = Vec::with_room(rows.len()).ok()?;
    let mut offset = first_offset(rows.len());
    for row in rows {
        let ([len, hi, lo], _) = words_of::<3>(row)?;
        let len = usize::try_from(len).ok()?;
        places.add(FilePlace { offset, len, hash: Hash128 { hi, lo } }).ok()?;
        offset = next_offset(offset, len);
    }
    Some(places)
}

fn hash_of(head: &[u8], table: &[u8]) -> Result<Hash128, OutOfMemory> {
    let mut bytes = Vec::with_room(head.len() + table.len())?;
    bytes.add_all(head)?;
    bytes.add_all(table)?;
    Ok(Hash128::of(&bytes))
}

/// The first words of some bytes, and what follows them; `None` if there are fewer.
fn words_of<const N: usize>(bytes: &[u8]) -> Option<([u64; N], &[u8])> {
    let (words, rest) = bytes.split_at_checked(N * WORD)?;
    let (words, _) = words.as_chunks::<WORD>();
    Some((std::array::from_fn(|number| u64::from_le_bytes(words[number])), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file as the host writes it.
    fn written(number: u64, chunks: &[Vec<u8>]) -> Vec<u8> {
        let mut table = FileTable::default();
        let mut bytes = vec![0; first_offset(chunks.len()) as usize];
        for chunk in chunks {
            table.add(chunk).unwrap();
            let offset = bytes.len();
            bytes.extend(chunk);
            bytes.resize(next_offset(offset as u64, chunk.len()) as usize, 0);
        }
        let table = table.to_bytes(number).unwrap();
        bytes[..table.len()].copy_from_slice(&table);
        bytes
    }

    /// The chunks that a reader finds whole; `None` if it refuses all.
    fn read(number: u64, bytes: &[u8]) -> Option<Vec<Option<&[u8]>>> {
        let head = bytes.first_chunk::<FILE_HEAD>()?;
        let len = table_bytes(head, number)?;
        let table = bytes.get(FILE_HEAD..FILE_HEAD.checked_add(len)?)?;
        let chunk = |place: FilePlace| {
            let chunk = bytes.get(place.offset as usize..)?.get(..place.len)?;
            (Hash128::of(chunk) == place.hash).then_some(chunk)
        };
        Some(places(head, table)?.into_iter().map(chunk).collect())
    }

    fn some_chunks() -> impl Strategy<Value = Vec<Vec<u8>>> {
        prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..8)
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(number: u64, chunks in some_chunks()) {
            let bytes = written(number, &chunks);
            prop_assert_eq!(bytes.len() as u64, file_bytes(chunks.iter().map(Vec::len)));
            let found = read(number, &bytes).unwrap();
            prop_assert!(found.into_iter().eq(chunks.iter().map(|chunk| Some(chunk.as_slice()))));
            prop_assert!(read(number.wrapping_add(1), &bytes).is_none());
        }

        #[test]
        fn no_chunk_is_another_one_in_a_damaged_file(
            chunks in some_chunks(),
            place: prop::sample::Index,
            flip in 1..=255u8,
            keeps: prop::sample::Index,
        ) {
            let mut bytes = written(7, &chunks);
            let at = place.index(bytes.len());
            bytes[at] ^= flip;
            for len in [bytes.len(), keeps.index(bytes.len())] {
                for (found, chunk) in read(7, &bytes[..len]).into_iter().flatten().zip(&chunks) {
                    prop_assert!(found.is_none_or(|found| found == chunk.as_slice()));
                }
            }
        }
    }
}
