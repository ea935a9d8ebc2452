//! Cuts and gaps. Of a time that is compared with a column the answer has no more than which rows the comparison splits
//! off. The *cut* is that time, as a number: the values of the column that are less lie before it, the others behind
//! it. The *gap* is the space between the last value before the cut and the first one behind it. Any other cut in the
//! same gap splits the same rows alike. So gaps are stored with an answer, which holds for all cuts in them.
//!
//! As bytes, in the order of the machine, a gap is two numbers of eight bytes. Plain data.

use pgrx::pg_sys::{self, Datum, Oid};

/// Most clock expressions of a query.
pub const MOST: usize = 16;

/// The cuts of a statement, each in the place of its clock expression. Plain data.
#[derive(Clone, Copy, Debug)]
pub struct Cuts([Option<i64>; MOST]);

impl Cuts {
    /// There are none.
    pub const NONE: Self = Self([None; MOST]);

    /// Adds that of the clock expression in this place. `None` if there is no such place.
    pub(super) fn add(&mut self, place: usize, cut: i64) -> Option<()> {
        *self.0.get_mut(place)? = Some(cut);
        Some(())
    }

    /// Returns true if there are none.
    pub fn is_none(&self) -> bool {
        self.each().next().is_none()
    }

    /// The cuts, each with the place of its clock expression.
    pub(super) fn each(&self) -> impl Iterator<Item = (usize, i64)> + '_ {
        self.0.iter().enumerate().filter_map(|(place, cut)| Some((place, (*cut)?)))
    }

    /// What was stored before the gaps, if each cut lies in its gap. `stored` belongs to the same question.
    pub fn without_gaps<'s>(&self, stored: &'s [u8]) -> Option<&'s [u8]> {
        let (before, gaps) = stored.split_at_checked(stored.len().checked_sub(self.each().count() * GAP)?)?;
        let (gaps, _) = gaps.as_chunks::<GAP>();
        let fits = |((_, cut), gap): ((usize, i64), &[u8; GAP])| {
            let [before, behind] = numbers(gap);
            before < cut && cut <= behind
        };
        self.each().zip(gaps).all(fits).then_some(before)
    }
}

/// Bytes of a gap.
const GAP: usize = 16;

fn numbers(gap: &[u8; GAP]) -> [i64; 2] {
    let [before, behind] = [gap.first_chunk(), gap.last_chunk()];
    [before, behind].map(|number| number.map_or(0, |number| i64::from_ne_bytes(*number)))
}

/// A number that is greater for a greater value: all types of dates and timestamps are integers.
pub(super) fn rank(type_oid: Oid, value: Datum) -> i64 {
    if type_oid == pg_sys::DATEOID { i64::from(value.value() as i32) } else { value.value() as i64 }
}
