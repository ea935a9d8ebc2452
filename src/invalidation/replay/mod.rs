//! Publishing what transactions of a primary have changed, on a standby that replays its WAL (architecture: *Publish
//! before visible*).
//!
//! Only the startup process runs this, while sessions may read (hot standby). Nothing here raises, waits or allocates:
//! an ERROR in the startup process stops the standby. Its memory is fixed. What it does not understand switches the
//! cache off on this server, before the record is replayed ([`ReplayFault`]).
//!
//! `publisher` keeps what running transactions have changed and publishes it. `catalog_caches` says which catalog a
//! message of the server is about, `definitions` what a commit has redefined, `rows` whose rows a record changes.

mod catalog_caches;
mod definitions;
mod publisher;
mod rows;

use arrow_cache_core::ReplayFault;
use pgrx::pg_sys::RmgrIds;

use crate::invalidation::definitions::Definitions;
use crate::invalidation::waking;
use crate::pg::wal_record::WalRecord;
use crate::shmem;
use publisher::{begin_anew, publisher, surely, switch_off};

/// To be called before a record of either manager of the heap is replayed.
///
/// # Safety
/// Called by the startup process, with a record that it is about to replay.
pub unsafe fn before_rows(record: WalRecord<'_>) {
    if rows::is_change(record) {
        // SAFETY: no other reference is alive, since this is not called while it runs.
        let publisher = unsafe { publisher() };
        surely(|| {
            if publisher.follows(record) {
                publisher.note(record);
            }
        });
    }
}

/// To be called before a record of another manager is replayed. Returns what it redefines, if anything: `after` is due
/// then.
///
/// # Safety
/// As for `before_rows`.
pub unsafe fn before(record: WalRecord<'_>) -> Option<Definitions> {
    // SAFETY: as in `before_rows`.
    let publisher = unsafe { publisher() };
    surely(|| match record.manager() {
        _ if !publisher.follows(record) => None,
        RmgrIds::RM_XLOG_ID => None,
        RmgrIds::RM_XACT_ID => publisher.transaction(record),
        RmgrIds::RM_STANDBY_ID => {
            if let Some(oldest) = record.oldest_running() {
                publisher.forget_older(oldest);
            }
            None
        }
        _ => {
            switch_off(ReplayFault::CustomResourceManager);
            None
        }
    })
}

/// To be called when a record has been replayed that redefines something.
///
/// # Safety
/// As for `before_rows`, with the record that `before` was called with.
pub unsafe fn after(record: WalRecord<'_>, redefined: Definitions) {
    // SAFETY: as in `before_rows`.
    surely(|| unsafe { publisher() }.finish(record, redefined));
}

/// To be called when a record has been replayed, and `after` has been called if it was due: what it has changed is
/// visible.
#[inline]
pub fn visible() {
    waking::wake();
}

/// To be called when recovery ends, before transactions can be made here. Prepared transactions will be committed by
/// sessions that do not know what they have changed: as after a restart, nothing is stored until they are over.
pub fn recovery_ends() {
    surely(|| {
        if let Some(store) = shmem::store_without_area() {
            store.forget_past();
            begin_anew();
            store.replay().arrive();
        }
    });
}

/// To be called when the startup process ends in the midst of recovery, since the server stops.
///
/// # Safety
/// As for `before_rows`.
pub unsafe fn recovery_stops() {
    // SAFETY: as in `before_rows`.
    surely(|| unsafe { publisher() }.stop());
}
