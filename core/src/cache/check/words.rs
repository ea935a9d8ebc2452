//! The tables of fixed places: words that are whole by themselves. Each is read once, so what is found is certain, whoever changes them.

use super::finding::{Finding, Findings};
use super::look::{Processes, STRIDE};
use crate::atomics::Ordering::Relaxed;
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;

impl<L: Locks, A: Arena> Store<'_, L, A> {
    pub(super) fn check_words<P: Processes>(&self, findings: &mut Findings, processes: &P) {
        let header = self.header();
        if header.seats_taken.load(Relaxed) > self.layout.seat_count {
            findings.add(Finding::of("seats", "more seats are taken than there are"));
        }
        for (number, line) in self.speed_lines().iter().enumerate() {
            if !line.is_possible() {
                findings.add(Finding::of("speeds", "a word has a time without runs").at("line", number as u64));
            }
        }
        for (number, line) in self.key_lines().iter().enumerate() {
            if !line.is_possible() {
                findings.add(Finding::of("runs", "a word has a key without runs").at("line", number as u64));
            }
        }
        let versions = self.versions();
        for (number, slot) in versions.slots().iter().enumerate() {
            if number.is_multiple_of(STRIDE as usize) {
                processes.pause();
            }
            if slot.try_read().is_some_and(|state| !state.is_possible()) {
                findings.add(
                    Finding::of("versions", "a slot holds a set of transactions that cannot be")
                        .at("slot", number as u64),
                );
            }
        }
    }
}
