//! An image of the store, from which the next server begins: what answers rest on, as it is, and the answers that are
//! current. A file of checked pieces, each of which says what it is and how long.
//!
//! It is written when no other process is left, and read before there is any. So it takes the slots as they are: their
//! versions, and who has published. To the reader it is as if the server had only stood still.
//!
//! | in the image | not in it, and made anew |
//! |---|---|
//! | slots, registry of tracked relations | base floor, what is known of prepared transactions |
//! | of a standby: how far it had replayed | what its running transactions have changed: outdated before it is written |
//! | the secret of keys | claims, seats, who is changing definitions: no process is left |
//! | current answers and fragments; the speeds of runs | renditions, counters, counts of statements |

mod load;
mod piece;
mod save;

use crate::cache::header::Header;
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;
use crate::hash::Hash128;
use crate::replay::WalPlaceWords;
use crate::versions::places::LINES;
use crate::versions::tracked::Line;
use crate::versions::{Slot, ValueSlot};
use std::fmt;
use std::mem::offset_of;
use std::sync::atomic::AtomicU64;

/// The format of images. Another one needs another word.
const FORMAT: u64 = u64::from_le_bytes(*b"arrowc02");

/// What must be the same when an image is read, besides the sizes of what it holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The data as they were when the last process had ended.
    pub data: Hash128,
    /// All that computes results of the data: programs, libraries, and the files that they read.
    pub software: Hash128,
}

/// Why an image tells nothing about this store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unusable {
    /// It is damaged, ends too early, or cannot be read.
    Damaged,
    /// It has another format.
    OtherFormat,
    /// The data have changed, or are others.
    OtherData,
    /// A program, a library, or a file that they read, has changed.
    OtherSoftware,
    /// The store has room for more, or fewer, versions.
    OtherSize,
    /// The clock shows a time before that of the image.
    ClockWentBack,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unusable::Damaged => "The file is damaged.",
            Unusable::OtherFormat => "The file was written by another version of the library.",
            Unusable::OtherData => "The database cluster has been changed since, or is another one.",
            Unusable::OtherSoftware => "The server, a library or a file that they read has been replaced.",
            Unusable::OtherSize => "The setting pg_arrow_cache.memory has changed.",
            Unusable::ClockWentBack => "The clock has gone backward.",
        })
    }
}

impl std::error::Error for Unusable {}

/// What was loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Loaded {
    /// Entries.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Entries that are damaged, or that found no room.
    pub lost: u64,
    /// The image ends too early, or a piece does not tell any more where the next one begins.
    pub is_cut: bool,
}

/// How many parts there are.
const PARTS: usize = 5;

/// A part of the block that is saved word by word.
struct Part {
    offset: usize,
    words: usize,
    /// Nothing can be used without it. The others are hints, which are left out if their number has changed.
    is_needed: bool,
}

impl<L: Locks, A: Arena> Store<'_, L, A> {
    fn saved_parts(&self) -> [Part; PARTS] {
        let words = |count: usize, size: usize| count * size / size_of::<u64>();
        let layout = self.layout;
        let awaited = layout.header + offset_of!(Header, constant.awaited);
        [
            Part { offset: layout.slots, words: words(layout.slot_count, size_of::<Slot>()), is_needed: true },
            Part { offset: layout.values, words: words(layout.value_count, size_of::<ValueSlot>()), is_needed: true },
            Part { offset: layout.tracked, words: words(LINES, size_of::<Line>()), is_needed: true },
            Part { offset: awaited, words: size_of::<WalPlaceWords>() / size_of::<u64>(), is_needed: true },
            Part { offset: layout.speeds, words: layout.speed_count, is_needed: false },
        ]
    }

    /// A part of the block as words. No other process is at work, so it does not matter what they are to others.
    fn words_of(&self, part: &Part) -> &[AtomicU64] {
        // SAFETY: the parts begin on lines, have so many words by the layout, and consist of atomics that any bytes are
        // valid for.
        unsafe { self.parts::<AtomicU64>(part.offset, part.words) }
    }
}

/// What the image says of the whole, in its first piece.
#[derive(Clone, Copy)]
struct Facts {
    origin: Origin,
    saved_at: i64,
    seed: u64,
    /// Words of each part.
    sizes: [u64; PARTS],
}

impl Facts {
    const WORDS: usize = 7 + PARTS;

    fn to_words(self) -> [u64; Self::WORDS] {
        let Origin { data, software } = self.origin;
        let [slots, values, lines, awaited, speeds] = self.sizes;
        let at = self.saved_at.cast_unsigned();
        [FORMAT, data.hi, data.lo, software.hi, software.lo, at, self.seed, slots, values, lines, awaited, speeds]
    }

    fn of_words(words: [u64; Self::WORDS]) -> Result<Self, Unusable> {
        let [format, data_hi, data_lo, software_hi, software_lo, at, seed, sizes @ ..] = words;
        if format != FORMAT {
            return Err(Unusable::OtherFormat);
        }
        let data = Hash128 { hi: data_hi, lo: data_lo };
        let software = Hash128 { hi: software_hi, lo: software_lo };
        let origin = Origin { data, software };
        Ok(Self { origin, saved_at: at.cast_signed(), seed, sizes })
    }
}

/// Words as bytes.
fn bytes_of<const N: usize>(words: [u64; N]) -> [[u8; 8]; N] {
    words.map(u64::to_le_bytes)
}

/// The first words of some bytes, and what follows them; `None` if there are fewer.
fn words_at<const N: usize>(bytes: &[u8]) -> Option<([u64; N], &[u8])> {
    let (words, rest) = bytes.split_at_checked(N * size_of::<u64>())?;
    let (words, _) = words.as_chunks();
    let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
    Some((std::array::from_fn(|_| words.next().unwrap_or(0)), rest))
}
