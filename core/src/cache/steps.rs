//! Steps: changes of several words of the block that belong together, such as taking a record, adding a chunk,
//! publishing, retiring. Two counts tell how many have begun and how many have ended, so that `check` knows whether
//! what it has read belongs together. Any process counts, without a lock; no step can fail, raise or wait for a client,
//! so each one that begins ends.

use crate::atomics::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// Steps of all processes. Zeroed memory says that there were none.
#[repr(C, align(64))]
pub(crate) struct Steps {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// A step of this process, as long as it lives. Steps may contain others.
pub(crate) struct Step<'s> {
    steps: &'s Steps,
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        self.steps.ended.fetch_add(1, Release);
    }
}

/// A moment at which nobody was in a step.
#[derive(Clone, Copy)]
pub(crate) struct Quiet {
    begun: u64,
}

impl Steps {
    pub(crate) fn begin(&self) -> Step<'_> {
        self.begun.fetch_add(1, Relaxed);
        // Pairs with the fence of `is_still`: who reads something that this step has written sees that it has begun.
        fence(Release);
        Step { steps: self }
    }

    /// Returns true if nobody is in a step at this moment.
    pub(crate) fn quiet(&self) -> Option<Quiet> {
        // Ended ones first: those that end later have begun later, or are in between.
        let ended = self.ended.load(Acquire);
        let begun = self.begun.load(Acquire);
        (begun == ended).then_some(Quiet { begun })
    }

    /// Returns true if no step has begun since. Then what was read since belongs together.
    pub(crate) fn is_still(&self, quiet: Quiet) -> bool {
        fence(Acquire);
        self.begun.load(Relaxed) == quiet.begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_quiet_between_steps_only() {
        let steps = Steps { begun: AtomicU64::new(0), ended: AtomicU64::new(0) };
        let first = steps.quiet().expect("nothing has begun");
        let outer = steps.begin();
        assert!(steps.quiet().is_none() && !steps.is_still(first));
        drop(steps.begin());
        assert!(steps.quiet().is_none(), "the outer one goes on");
        drop(outer);
        let second = steps.quiet().expect("all have ended");
        assert!(steps.is_still(second) && !steps.is_still(first));
    }
}
