//! The claims that this session holds (core, `cache/claims.rs`). None outlives the transaction in which it was taken,
//! whatever ends that: when a process is told to end, no destructor runs, but the callbacks at the end of a transaction
//! do. State of this backend; no lock.

use std::cell::{Cell, RefCell};

use arrow_cache_core::{Claim, Ending, Reason};

use crate::pg::backend_local::Local;
use crate::shmem;

/// Most claims of one session: that of a statement, and those of exports inside.
const MOST: usize = 4;

struct Held {
    /// The number of its `Lead`.
    number: u64,
    claim: Claim,
}

static HELD: Local<RefCell<[Option<Held>; MOST]>> = Local::new(RefCell::new([const { None }; MOST]));
/// How many of them there are.
static COUNT: Local<Cell<usize>> = Local::new(Cell::new(0));
/// The number of the last `Lead` with a claim.
static LAST: Local<Cell<u64>> = Local::new(Cell::new(0));

/// The claim of the answer that a statement computes, if it has it. Given back at the end of its computation, or when
/// it is dropped, in the middle of error recovery, too.
#[derive(Default)]
pub struct Lead(Cell<Option<u64>>);

impl Lead {
    /// Takes charge of a claim. There must be room for it (`has_room`).
    pub fn of(claim: Claim) -> Self {
        let number = LAST.get() + 1;
        LAST.set(number);
        let refused = HELD.with_borrow_mut(|held| match held.iter_mut().find(|place| place.is_none()) {
            Some(place) => {
                *place = Some(Held { number, claim });
                COUNT.set(COUNT.get() + 1);
                None
            }
            None => Some(claim),
        });
        match refused {
            Some(claim) => {
                give_back(claim, Ending::Open);
                Self::default()
            }
            None => Self(Cell::new(Some(number))),
        }
    }

    /// The answer is not stored.
    pub fn note_refusal(&self, reason: Reason) {
        let may_succeed_later = matches!(
            reason,
            Reason::ChangedMeanwhile
                | Reason::SettingsChanged
                | Reason::DdlInProgress
                | Reason::OwnDdl
                | Reason::OwnWrites
                | Reason::Disabled
                | Reason::PopulateOff
                | Reason::QuickRows
        );
        self.end(if may_succeed_later { Ending::Open } else { Ending::Hopeless });
    }

    /// Lets those go on who wait.
    pub fn end(&self, ending: Ending) {
        let Some(number) = self.0.take() else { return };
        // It is gone already if the transaction has ended.
        if let Some(held) = take_first(|held| held.number == number) {
            give_back(held.claim, ending);
        }
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.end(Ending::Open);
    }
}

/// Returns true if this session may take one more claim.
pub fn has_room() -> bool {
    COUNT.get() < MOST
}

/// Returns true if this session holds a claim.
pub fn is_any() -> bool {
    COUNT.get() > 0
}

/// The transaction has ended: gives back what is left. Cannot raise.
pub fn transaction_ended() {
    if COUNT.get() > 0 {
        while let Some(held) = take_first(|_| true) {
            give_back(held.claim, Ending::Open);
        }
    }
}

fn take_first(is_wanted: impl Fn(&Held) -> bool) -> Option<Held> {
    HELD.with_borrow_mut(|held| {
        let place = held.iter_mut().find(|place| place.as_ref().is_some_and(&is_wanted))?;
        COUNT.set(COUNT.get() - 1);
        place.take()
    })
}

fn give_back(claim: Claim, ending: Ending) {
    let place = claim.place();
    if let Some(store) = shmem::store_without_area() {
        store.claims().release(claim, ending);
    }
    shmem::wake_waiters(place);
}
