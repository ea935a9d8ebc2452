//! Which changes were noted lately, so that records that repeat them cost a comparison. State of the one process that replays; no lock. Fixed
//! memory: nothing here allocates or panics.

use crate::replay::changes::CatalogChange;
use crate::replay::hot_files::RelationFile;

/// Rows that a record changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Touched {
    /// The file that they are in.
    pub file: RelationFile,
    /// How, if it is the file of a catalog.
    pub how: CatalogChange,
}

/// A change of a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Noted {
    file: RelationFile,
    /// The transaction, and how it has changed the file.
    who: u64,
    ended: u64,
}

impl Noted {
    /// No change is of a kind with this number.
    const NOTHING: Self = Self { file: RelationFile::NONE, who: u64::MAX, ended: 0 };

    const fn new(xid: u32, touched: Touched, ended: u64) -> Self {
        Self { file: touched.file, who: xid as u64 | (touched.how as u64) << u32::BITS, ended }
    }
}

/// `N` changes, a power of two, each in a place that its file and its kind find.
///
/// What is remembered holds until a transaction ends: its id means another transaction when ids have gone round. So everything is asked and
/// remembered together with the number of transactions that have ended so far.
pub struct LatelyNoted<const N: usize> {
    places: [Noted; N],
}

impl<const N: usize> LatelyNoted<N> {
    /// Nothing was noted.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(N.is_power_of_two(), "places are found by remainder") };
        Self { places: [Noted::NOTHING; N] }
    }

    /// Was this noted of the transaction, while so many had ended? Never of a record without transaction.
    #[inline(always)]
    #[must_use]
    pub fn has(&self, xid: u32, touched: Touched, ended: u64) -> bool {
        self.places[Self::place(touched)] == Noted::new(xid, touched, ended)
    }

    /// This was noted of the transaction, while so many had ended.
    pub fn add(&mut self, xid: u32, touched: Touched, ended: u64) {
        if xid != 0 {
            self.places[Self::place(touched)] = Noted::new(xid, touched, ended);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.places.fill(Noted::NOTHING);
    }

    /// Of a catalog there may be three kinds of changes at the same time.
    const fn place(touched: Touched) -> usize {
        (touched.file.number() as usize).wrapping_add((touched.how as usize) << 5) % N
    }
}

impl<const N: usize> Default for LatelyNoted<N> {
    fn default() -> Self {
        Self::new()
    }
}
