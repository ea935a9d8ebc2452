//! What processes that have gone have left behind: pins, claims, counts of definers, slots in the middle of a change.
//! Each is looked at, then it is asked whether its process runs, then it is looked at again.

use super::finding::{Finding, Findings};
use super::look::{Look, Processes, STRIDE};
use crate::atomics::Ordering::Acquire;
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;
use crate::versions::slot::SlotState;

/// How often something is looked at that no process vouches for: one that has come meanwhile may have changed it.
const MOST_LOOKS: u32 = 10;

impl<L: Locks, A: Arena> Store<'_, L, A> {
    pub(super) fn check_leftovers<P: Processes>(&self, findings: &mut Findings, processes: &P) {
        self.check_seats(findings, processes);
        self.check_claims(findings, processes);
        if self.are_left(processes, || self.definers().are_any()) {
            findings.add(Finding::of("definitions", "somebody is counted who changes definitions, and nobody does"));
        }
        let versions = self.versions();
        for (number, slot) in versions.slots().iter().enumerate() {
            if number.is_multiple_of(STRIDE as usize) {
                processes.pause();
            }
            if slot.try_read().is_some_and(|state| !is_possible(&state)) {
                let finding = Finding::of("versions", "a slot holds a set of transactions that cannot be");
                findings.add(finding.at("slot", number as u64));
            }
            // It is the same change as long as the word stays odd and the same.
            let Some(change) = slot.change_under_way() else { continue };
            if self.are_left(processes, || slot.change_under_way() == Some(change)) {
                findings.add(Finding::of("versions", "a slot is in the middle of a change").at("slot", number as u64));
            }
        }
        for (number, value) in versions.values().iter().enumerate() {
            if number.is_multiple_of(STRIDE as usize) {
                processes.pause();
            }
            if !value.is_possible() {
                let finding = Finding::of("versions", "the slot of a value holds transactions that cannot be");
                findings.add(finding.at("value", number as u64));
            }
        }
    }

    /// Pins of seats whose process has gone.
    fn check_seats<P: Processes>(&self, findings: &mut Findings, processes: &P) {
        for (number, seat) in self.taken_seats().iter().enumerate() {
            let seated = self.header().seated.load(Acquire);
            let holds = || seat.pins() != 0 || seat.held().next().is_some();
            if !holds() || processes.has_seat(number as u32) {
                continue;
            }
            // Nobody has taken the seat in between.
            if holds() && self.header().seated.load(Acquire) == seated {
                let finding = Finding::of("seats", "a process has ended and left pins behind");
                findings.add(finding.at("seat", number as u64).not(seat.pins(), 0u32));
            }
        }
    }

    /// Claims whose process has gone.
    fn check_claims<P: Processes>(&self, findings: &mut Findings, processes: &P) {
        let claims = self.claims();
        for claimed in claims.all() {
            // It was held when the process was asked for, if it is still the same claim.
            if !processes.has_claims(claimed.owner()) && claims.is_held(&claimed) {
                let finding = Finding::of("claims", "a process has ended and left a claim behind");
                findings.add(finding.at("place", claimed.place() as u64));
            }
        }
    }

    /// Returns true if it is there, though nobody else is, at each of several looks.
    fn are_left<P: Processes>(&self, processes: &P, mut is_there: impl FnMut() -> bool) -> bool {
        for times in 0..MOST_LOOKS {
            if !is_there() || processes.are_others() {
                return false;
            }
            processes.rest(times);
        }
        is_there()
    }
}

impl<L: Locks, A: Arena, P: Processes> Look<'_, '_, L, A, P> {
    /// Returns true if there are pins that this process does not know of, although nobody else is there.
    pub(super) fn check_pins(&mut self) {
        let store = self.store;
        let Some(own) = store.seat() else { return };
        let seated = store.header().seated.load(Acquire);
        if self.processes.are_others() {
            return;
        }
        let counted: u64 = (0..self.marks.len() as u32).map(|index| store.entry(index).pins()).sum();
        let held = store.taken_seats().iter().map(|seat| seat.held().count() as u64).sum::<u64>();
        // Whoever came in between has taken a seat before its first pin.
        if store.header().seated.load(Acquire) == seated && !self.processes.are_others() {
            let finding = Finding::of("entries", "there are pins of nobody");
            self.findings.compare(finding, counted + held, own.pins());
        }
    }
}

/// Returns true if a slot can be in this state. No publisher is remembered twice, and both ends of a window belong to
/// it.
fn is_possible(state: &SlotState) -> bool {
    let pending = &state.pending;
    let are_distinct = (1..pending.len()).all(|n| pending[n] == 0 || !pending[..n].contains(&pending[n]));
    let window = &state.window;
    are_distinct && (window.is_empty() || (window.holds(window.low) && window.holds(window.high)))
}
