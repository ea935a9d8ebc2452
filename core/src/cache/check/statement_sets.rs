//! The table of statements: each set is read under the shared lock of its partition, so what is found is certain, whoever changes it.

use super::finding::{Finding, Findings};
use super::look::{Processes, STRIDE};
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;

impl<L: Locks, A: Arena> Store<'_, L, A> {
    pub(super) fn check_statements<P: Processes>(&self, findings: &mut Findings, processes: &P) {
        for number in 0..self.statement_set_count() {
            if number.is_multiple_of(STRIDE as usize) {
                processes.pause();
            }
            let keys = self.statements_of_set(number);
            let mut known = keys.iter().flatten().enumerate();
            if known.any(|(place, (key, _))| keys.iter().flatten().take(place).any(|(other, _)| other == key)) {
                findings.add(Finding::of("statements", "a statement has two records").at("set", number as u64));
            }
            if keys.iter().flatten().any(|(key, _)| self.statement_set(*key) != number) {
                findings.add(
                    Finding::of("statements", "a record lies in the set of another statement").at("set", number as u64),
                );
            }
        }
    }
}
