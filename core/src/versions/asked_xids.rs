//! Which transactions run, remembered for one publication. State of one process; no lock.

/// Number of ids that are remembered, from the first on.
const REMEMBERED: u64 = u128::BITS as u64;

/// AskedXids to a question about transaction ids. The slots of a transaction often name the same other writers, and
/// each question takes the server's lock on the list of transactions.
#[derive(Clone, Copy, Debug)]
pub struct AskedXids {
    first: u64,
    asked: u128,
    yes: u128,
}

impl AskedXids {
    /// Nothing asked yet. 128 ids from `first` on are remembered.
    #[must_use]
    pub fn from(first: u64) -> Self {
        Self { first, asked: 0, yes: 0 }
    }

    /// What is remembered of `xid`, or what `ask` replies.
    pub fn get(&mut self, xid: u64, ask: impl FnOnce(u64) -> bool) -> bool {
        let place = xid.wrapping_sub(self.first);
        if place >= REMEMBERED {
            return ask(xid);
        }
        let bit = 1 << place;
        if self.asked & bit == 0 {
            self.yes |= if ask(xid) { bit } else { 0 };
            self.asked |= bit;
        }
        self.yes & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_once_about_each_id_and_replies_the_same_again() {
        const FIRST: u64 = 1 << 40;
        let is_even = |xid: u64| xid.is_multiple_of(2);
        let mut asked_xids = AskedXids::from(FIRST);
        let mut questions = 0;
        for _ in 0..3 {
            for xid in (FIRST..FIRST + REMEMBERED).rev() {
                let reply = asked_xids.get(xid, |asked| {
                    questions += 1;
                    is_even(asked)
                });
                assert_eq!(reply, is_even(xid));
            }
        }
        assert_eq!(questions, REMEMBERED);
    }

    #[test]
    fn asks_each_time_about_ids_that_it_has_no_room_for() {
        const FIRST: u64 = 1000;
        let mut asked_xids = AskedXids::from(FIRST);
        for xid in [0, FIRST - 1, FIRST + REMEMBERED, u64::MAX] {
            for reply in [true, false, true] {
                assert_eq!(asked_xids.get(xid, |_| reply), reply);
            }
        }
    }
}
