//! A set of transaction ids in three words. Pure values: nothing here is shared.

/// Most ids of a window that a publication asks about. Each question takes the server's lock on the list of
/// transactions.
const QUESTIONS: usize = 64;

/// A set of transaction ids: those from `low` to `high` whose remainder by 64 is marked. It may hold more than was put
/// in, never less, and exactly what was put in while its ends are less than 64 apart. Both ends of a set that is not
/// empty belong to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct XidWindow {
    /// No id below belongs to the set.
    pub low: u64,
    /// No id above belongs to the set.
    pub high: u64,
    /// One bit per remainder; 0 = the set is empty.
    pub marks: u64,
}

impl XidWindow {
    /// All ids from one to another one, which is no smaller.
    pub(crate) const fn between(low: u64, high: u64) -> Self {
        let distance = high.saturating_sub(low);
        let marks = if distance < 64 { (u64::MAX >> (63 - distance)).rotate_left(low as u32 % 64) } else { u64::MAX };
        Self { low, high, marks }
    }

    /// Whether the id belongs to the set.
    #[must_use]
    pub fn holds(&self, xid: u64) -> bool {
        (self.low..=self.high).contains(&xid) && self.marks & Self::mark(xid) != 0
    }

    fn mark(xid: u64) -> u64 {
        1 << (xid % 64)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.marks == 0
    }

    pub(crate) fn add(&mut self, xid: u64) {
        let (low, high) = if self.is_empty() { (xid, xid) } else { (self.low.min(xid), self.high.max(xid)) };
        *self = Self { low, high, marks: self.marks | Self::mark(xid) };
    }

    /// Adds every id below this one.
    pub(crate) fn add_all_below(&mut self, next: u64) {
        if next > 1 {
            *self = Self { low: 1, high: self.high.max(next - 1), marks: u64::MAX };
        }
    }

    /// By how much the distance of the ends would grow with this id.
    pub(crate) fn growth(&self, xid: u64) -> u64 {
        if self.is_empty() { 0 } else { self.low.saturating_sub(xid) + xid.saturating_sub(self.high) }
    }

    /// The set without ids that have ended. A limited number of questions is asked, so some that have ended may stay.
    pub(crate) fn without_ended(&self, oldest_running: u64, mut has_ended: impl FnMut(u64) -> bool) -> Self {
        let mut left = Self::default();
        let candidates = (self.low.max(oldest_running)..=self.high).filter(|xid| self.holds(*xid));
        for (asked, xid) in candidates.enumerate() {
            if asked == QUESTIONS {
                let low = if left.is_empty() { xid } else { left.low };
                return Self { low, ..*self };
            }
            if !has_ended(xid) {
                left.add(xid);
            }
        }
        left
    }
}
