//! Publishing what transactions of a primary have changed, on a standby that replays its WAL (architecture: *Publish before visible*).
//!
//! Only the startup process runs this, while sessions may read (hot standby). Nothing here raises, waits or allocates: an ERROR in the
//! startup process stops the standby. Its memory is fixed. What it does not understand switches the cache off on this server, before the
//! record is replayed ([`ReplayFault`]).
//!
//! `publisher` keeps what running transactions have changed and publishes it. `catalog_caches` says which catalog a message of the server
//! is about, `definitions` what a commit has redefined, `rows` whose rows a record changes.

mod catalog_caches;
mod definitions;
mod publisher;
mod rows;

use arrow_cache_core::ReplayFault;
use pgrx::pg_sys;
use pgrx::pg_sys::RmgrIds;

use crate::pg::wal_record::WalRecord;
use crate::shmem;
pub use publisher::Due;
use publisher::{begin_anew, may_be_read, publisher, surely, switch_off};

/// To be called before a record is replayed. Returns what is left to do then.
///
/// # Safety
/// Called by the startup process, with a record that it is about to replay.
pub unsafe fn before(record: WalRecord<'_>) -> Option<Due> {
    if !may_be_read() {
        return None;
    }
    // SAFETY: no other reference is alive, since this is not called while it runs.
    let publisher = unsafe { publisher() };
    surely(|| match record.manager() {
        RmgrIds::RM_HEAP_ID | RmgrIds::RM_HEAP2_ID => {
            if let Some(changed) = rows::changed(record) {
                publisher.note(record.transaction(), &changed);
            }
            None
        }
        RmgrIds::RM_XACT_ID => publisher.transaction(record),
        RmgrIds::RM_STANDBY_ID => {
            if let Some(oldest) = record.oldest_running() {
                publisher.forget_older(oldest);
            }
            None
        }
        RmgrIds::RM_XLOG_ID => {
            if record.wal_level().is_some_and(|level| level < pg_sys::WalLevel::WAL_LEVEL_REPLICA as i32) {
                switch_off(ReplayFault::WalLevel);
            }
            None
        }
        _ => {
            switch_off(ReplayFault::CustomResourceManager);
            None
        }
    })
}

/// To be called when a record has been replayed for which `before` has left something to do.
///
/// # Safety
/// As for `before`, with the same record.
pub unsafe fn after(record: WalRecord<'_>, due: &Due) {
    // SAFETY: as in `before`.
    surely(|| unsafe { publisher() }.finish(record, due));
}

/// To be called when recovery ends, before transactions can be made here. Prepared transactions will be committed by sessions that do not
/// know what they have changed: as after a restart, nothing is stored until they are over.
pub fn recovery_ends() {
    if may_be_read() {
        surely(|| {
            if let Some(store) = shmem::store_without_area() {
                store.forget_past();
            }
            begin_anew();
        });
    }
}
