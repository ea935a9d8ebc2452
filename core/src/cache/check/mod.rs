//! Does everything in the block agree? A check reads, and changes nothing. It is right beside others who work, too:
//!
//! * A chain of the index is walked under the shared lock of its partition (`chains`), one bucket at a time.
//! * What spans several words is read without a lock (`records`, `payload`), and counts only if nobody was in a step
//!   (`steps`) when the reading began, and no step has begun before its end. Else it is read again, some times; then
//!   the report says that it is undecided.
//! * Versions are whole by themselves, and read as they are. What a process that has gone left behind (`leftovers`)
//!   counts if the process was gone in between two looks that saw the same.
//!
//! Hints are not looked at, such as speeds and counts: whatever stands there, no answer is wrong, and no memory lost.
//!
//! Memory that the check reads in the arena may belong to somebody else by then: places and lengths are compared with
//! the arena before anything is read there. No lock is held while memory is asked for, or the host is called.

mod blocks;
mod chains;
// Miri takes a minute for each kind of damage.
#[cfg(all(test, not(miri)))]
mod damage;
mod finding;
mod leftovers;
mod look;
mod payload;
mod records;

pub use finding::Finding;
pub use look::Processes;

use crate::atomics::Ordering::Acquire;
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;
use crate::room::{OutOfMemory, RoomyVec};
use blocks::Blocks;
use finding::Findings;
use look::Look;

/// How often it is tried to read everything while nobody is in a step.
const MOST_LOOKS: u32 = 20;
/// What a check came to.
#[derive(Debug)]
pub struct Report {
    /// What does not agree: nothing in a store that is in order.
    pub findings: Vec<Finding>,
    /// How many findings the list does not hold.
    pub more: u64,
    /// Others were at work all the time: records, lists, bytes and sums could not be compared.
    pub is_undecided: bool,
}

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Checks whether everything in the block agrees. The caller holds no lock; pins of its own do not matter.
    ///
    /// # Errors
    /// There is no memory for a byte per record and sixteen per piece of memory in the arena (up to a bound).
    pub fn check<P: Processes>(&self, processes: &P) -> Result<Report, OutOfMemory> {
        let mut findings = Findings::new()?;
        let mut marks = Vec::new();
        let mut blocks = Blocks::new();
        self.check_leftovers(&mut findings, processes);
        let certain = findings.len();
        let mut is_undecided = true;
        for times in 0..MOST_LOOKS {
            if times > 0 {
                processes.rest(times);
            }
            let Some(quiet) = self.header().steps.quiet() else { continue };
            findings.cut(certain);
            // Records are never given back to the unused ones: more of them mean that a step has begun.
            let fresh = self.header().fresh.load(Acquire).min(self.layout.max_entries);
            marks.lengthen(fresh as usize, 0)?;
            marks.fill(0);
            blocks.clear();
            let mut look =
                Look { store: self, processes, findings: &mut findings, marks: &mut marks, blocks: &mut blocks };
            look.walk_index();
            let in_chains = look.findings.len();
            look.walk_all()?;
            if self.header().steps.is_still(quiet) {
                is_undecided = false;
                break;
            }
            findings.cut(in_chains);
        }
        let (findings, more) = findings.into_parts();
        Ok(Report { findings, more, is_undecided })
    }
}

impl<L: Locks, A: Arena, P: Processes> Look<'_, '_, L, A, P> {
    /// Everything that was read belongs together if nobody was in a step.
    fn walk_all(&mut self) -> Result<(), OutOfMemory> {
        self.walk_lists();
        let sums = self.walk_records()?;
        self.compare_sums(&sums);
        self.blocks.find_shared(self.findings);
        self.check_pins();
        Ok(())
    }
}
