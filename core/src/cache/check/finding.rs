//! What a check has found. Plain values of one process; nothing here is shared.

use crate::room::{OutOfMemory, RoomyVec};
use std::fmt;

/// Most findings that are listed; of more, only the number is told.
const MOST_FINDINGS: usize = 100;

/// Something that does not agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The part of the block.
    pub part: &'static str,
    /// What is wrong.
    pub finding: &'static str,
    place: Option<(&'static str, u64)>,
    numbers: Option<(u64, u64)>,
}

impl Finding {
    pub(super) fn of(part: &'static str, finding: &'static str) -> Self {
        Self { part, finding, place: None, numbers: None }
    }

    /// Where it is: what is counted there, and its number.
    pub(super) fn at(self, what: &'static str, number: impl Into<u64>) -> Self {
        Self { place: Some((what, number.into())), ..self }
    }

    /// What was found, and what should be there.
    pub(super) fn not(self, found: impl Into<u64>, expected: impl Into<u64>) -> Self {
        Self { numbers: Some((found.into(), expected.into())), ..self }
    }
}

/// Where it is, and the numbers that do not agree.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((what, number)) = self.place {
            write!(f, "{what} {number}")?;
        }
        if let Some((found, expected)) = self.numbers {
            let separator = if self.place.is_some() { ": " } else { "" };
            write!(f, "{separator}{found} instead of {expected}")?;
        }
        Ok(())
    }
}

/// A bounded list, which takes its memory when it is made: findings are added under locks, too.
pub(super) struct Findings {
    list: Vec<Finding>,
    more: u64,
}

impl Findings {
    pub(super) fn new() -> Result<Self, OutOfMemory> {
        Ok(Self { list: Vec::with_room(MOST_FINDINGS)?, more: 0 })
    }

    pub(super) fn add(&mut self, finding: Finding) {
        if self.list.len() < self.list.capacity() {
            self.list.push(finding);
        } else {
            self.more += 1;
        }
    }

    /// Adds a finding if two numbers differ.
    pub(super) fn compare(&mut self, finding: Finding, found: impl Into<u64>, expected: impl Into<u64>) {
        let (found, expected) = (found.into(), expected.into());
        if found != expected {
            self.add(finding.not(found, expected));
        }
    }

    /// Forgets all findings but the first ones.
    pub(super) fn cut(&mut self, first: usize) {
        self.list.truncate(first);
        self.more = 0;
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The list, and how many findings it does not hold.
    pub(super) fn into_parts(self) -> (Vec<Finding>, u64) {
        (self.list, self.more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_where_it_is_and_what_differs() {
        let finding = Finding::of("index", "wrong");
        assert_eq!(finding.to_string(), "");
        assert_eq!(finding.at("entry", 5u32).to_string(), "entry 5");
        assert_eq!(finding.not(1u32, 2u32).to_string(), "1 instead of 2");
        assert_eq!(finding.at("entry", 5u32).not(1u32, 2u32).to_string(), "entry 5: 1 instead of 2");
    }

    #[test]
    fn a_list_is_bounded() {
        let mut findings = Findings::new().unwrap();
        (0..MOST_FINDINGS + 3).for_each(|_| findings.add(Finding::of("index", "wrong")));
        findings.compare(Finding::of("index", "equal"), 1u32, 1u32);
        assert_eq!(findings.len(), findings.list.capacity());
        let listed = findings.len() as u64;
        assert_eq!(findings.more, MOST_FINDINGS as u64 + 3 - listed);
        findings.cut(2);
        let (list, more) = findings.into_parts();
        assert_eq!((list.len(), more), (2, 0));
    }
}
