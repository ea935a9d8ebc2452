//! What was asked about transactions, remembered for one publication. Pure bookkeeping of one process; no lock.

/// How many ids are remembered, from the first on.
const REMEMBERED: u64 = u128::BITS as u64;

/// Answers to a question about transaction ids. The slots of a transaction often name the same other writers, and each question takes
/// the server's lock on the list of transactions.
#[derive(Clone, Copy, Debug)]
pub struct Answers {
    first: u64,
    asked: u128,
    yes: u128,
}

impl Answers {
    /// No answers yet. Only ids from `first` on are remembered, as far as there is room.
    #[must_use]
    pub fn from(first: u64) -> Self {
        Self { first, asked: 0, yes: 0 }
    }

    /// The answer for `xid`: the one remembered, or that of `ask`.
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
    fn asks_once_about_each_id_and_gives_the_same_answer_again() {
        const FIRST: u64 = 1 << 40;
        let is_even = |xid: u64| xid.is_multiple_of(2);
        let mut answers = Answers::from(FIRST);
        let mut questions = 0;
        for _ in 0..3 {
            for xid in (FIRST..FIRST + REMEMBERED).rev() {
                let answer = answers.get(xid, |asked| {
                    questions += 1;
                    is_even(asked)
                });
                assert_eq!(answer, is_even(xid));
            }
        }
        assert_eq!(questions, REMEMBERED);
    }

    #[test]
    fn asks_each_time_about_ids_that_it_has_no_room_for() {
        const FIRST: u64 = 1000;
        let mut answers = Answers::from(FIRST);
        for xid in [0, FIRST - 1, FIRST + REMEMBERED, u64::MAX] {
            for answer in [true, false, true] {
                assert_eq!(answers.get(xid, |_| answer), answer);
            }
        }
    }
}
