//! What the server itself knows of the changes that the present transaction has made, and which transactions run. Keeps
//! nothing.

use arrow_cache_core::versions::noted_rows::{CountedChanges, RowChanges};
use pgrx::pg_sys;

use super::compat::{changes_over, counted_relation};
use super::{backend, server};

/// The relations whose tuples this transaction has changed so far. The heap access method itself counts them, whatever
/// path the change took. Nothing is listed while `track_counts` is off: see `invalidation::track_counts`.
#[derive(Clone, Copy)]
pub struct Changes(*mut server::SubXactStatus);

impl Changes {
    /// Those of now.
    pub fn of_now() -> Self {
        // SAFETY: the function returns the newest level, pushing an empty one at most.
        Self(unsafe { kept!(server::pgstat_get_xact_stack_level(backend::transaction_nest_level())) })
    }

    /// The same, without the price of a guard. What the server raises jumps over the frame.
    ///
    /// # Safety
    /// No frame between here and PostgreSQL may have pending destructors.
    pub unsafe fn of_now_unguarded() -> Self {
        // SAFETY: as above; the caller's promise.
        Self(unsafe { direct!(server::pgstat_get_xact_stack_level(backend::transaction_nest_level())) })
    }

    /// Calls `visit` with each of them, with all that is counted, once for each level that has changed it. Gives up
    /// after `most` relations and levels of subtransactions: returns false if there are more.
    pub fn for_each(self, most: usize, mut visit: impl FnMut(Change<'_>)) -> bool {
        let (mut level, mut steps) = (self.0, 0);
        // SAFETY: the list lives in TopTransactionContext, and nothing below changes it.
        unsafe {
            while !level.is_null() {
                steps += 1;
                let mut table = (*level).first;
                while !table.is_null() && steps <= most {
                    steps += 1;
                    visit(Change(&*(*table).parent));
                    table = (*table).next;
                }
                if steps > most {
                    return false;
                }
                level = (*level).previous;
            }
        }
        true
    }
}

/// What the server counts of a relation whose tuples this transaction has changed.
#[derive(Clone, Copy)]
pub struct Change<'a>(&'a pg_sys::PgStat_TableStatus);

impl<'a> Change<'a> {
    /// That of an open relation; `None` while the server counts nothing of it.
    ///
    /// # Safety
    /// The relation must be open for `'a`.
    pub unsafe fn of(relation: pg_sys::Relation) -> Option<Self> {
        // SAFETY: the caller's promise; the server keeps what it counts for longer than the transaction.
        unsafe { (*relation).pgstat_info.as_ref() }.map(Self)
    }

    /// The relation.
    pub fn relation(self) -> u32 {
        counted_relation(self.0).to_u32()
    }

    /// The changes of its rows that have not been rolled back; `None` if counts were set to zero.
    pub fn effective(self) -> Option<RowChanges> {
        let counted = self.counted();
        (!counted.is_truncated).then_some(counted.open)
    }

    /// How many changes of its rows are counted, at all levels together.
    pub fn counted(self) -> CountedChanges {
        let mut counted = CountedChanges { over: changes_over(self.0), ..CountedChanges::default() };
        let mut level = self.0.trans;
        // SAFETY: the counts of the open levels, from the newest to the transaction, live in TopTransactionContext.
        while let Some(counts) = unsafe { level.as_ref() } {
            counted.open = counted.open.and(RowChanges {
                inserted: counts.tuples_inserted,
                updated: counts.tuples_updated,
                deleted: counts.tuples_deleted,
            });
            counted.is_truncated |= counts.truncdropped;
            level = counts.upper;
        }
        counted
    }
}

/// Calls `visit` with every relation whose definition this transaction will tell the other backends to read again. A
/// relation may come more than once; InvalidOid stands for all relations. Only at the outermost level of a transaction.
pub fn for_each_redefined_relation(mut visit: impl FnMut(pg_sys::Oid)) {
    const RELATION: i8 = pg_sys::SHAREDINVALRELCACHE_ID as i8;
    let mut messages: *mut pg_sys::SharedInvalidationMessage = std::ptr::null_mut();
    let mut unused = false;
    // SAFETY: the function copies what is collected so far into an array of its own, whose messages are told apart by
    // their first byte.
    unsafe {
        let count = kept!(pg_sys::xactGetCommittedInvalidationMessages(&raw mut messages, &raw mut unused));
        if messages.is_null() {
            return;
        }
        for message in std::slice::from_raw_parts(messages, count as usize) {
            if message.id == RELATION {
                visit(message.rc.relId);
            }
        }
        kept!(pg_sys::pfree(messages.cast()));
    }
}

/// The oldest id of a running transaction, prepared ones included; the next id when none runs.
pub fn oldest_active_transaction() -> u32 {
    // SAFETY: reads the process array; called by a backend outside of recovery that holds no lock.
    unsafe { kept!(pg_sys::GetOldestActiveTransactionId()).into_inner() }
}
