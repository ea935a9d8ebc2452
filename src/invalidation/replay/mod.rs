//! Publishing what transactions of a primary have changed, on a standby that replays its WAL (architecture: *Publish before visible*).
//!
//! Only the startup process runs this, while sessions may read (hot standby). Nothing here raises, waits or allocates: an ERROR in the
//! startup process stops the standby. Its memory is fixed. What it does not understand switches the cache off on this server, before the
//! record is replayed ([`ReplayFault`]).
//!
//! `publisher` keeps what running transactions have changed and publishes it, `quick` is the way of most records. `catalog_caches` says
//! which catalog a message of the server is about, `definitions` what a commit has redefined, `rows` which files of relations a record
//! changes.

mod catalog_caches;
mod definitions;
mod publisher;
mod quick;
mod rows;

use arrow_cache_core::ReplayFault;
use pgrx::pg_sys;
use pgrx::pg_sys::RmgrIds;

use crate::pg::backend;
use crate::pg::wal_record::WalRecord;
use crate::shmem;
use publisher::{Due, begin_anew, may_be_read, publisher, surely, switch_off};
pub use quick::{before_rows, end_quickly, has_ended, note_heap, note_heap2};

/// To be called before a record of another resource manager is replayed.
///
/// # Safety
/// Called by the startup process, with a record that it is about to replay.
pub unsafe fn before(record: WalRecord<'_>) -> Due {
    if !may_be_read() {
        return Due::default();
    }
    // SAFETY: no other reference is alive, since this is not called while it runs.
    let publisher = unsafe { publisher() };
    if publisher.store.is_none() {
        publisher.store = shmem::store_without_area();
    }
    surely(|| match record.manager() {
        RmgrIds::RM_XACT_ID => publisher.transaction(record),
        RmgrIds::RM_STANDBY_ID => {
            if let Some(oldest) = record.oldest_running() {
                publisher.changes.forget_older(oldest);
            }
            Due::default()
        }
        RmgrIds::RM_XLOG_ID => {
            if record.wal_level().is_some_and(|level| level < pg_sys::WalLevel::WAL_LEVEL_REPLICA as i32) {
                switch_off(ReplayFault::WalLevel);
            }
            Due::default()
        }
        RmgrIds::RM_DBASE_ID => {
            if let Some(database) = record.named_database() {
                forget_database(database);
            }
            Due::default()
        }
        _ => {
            switch_off(ReplayFault::CustomResourceManager);
            Due::default()
        }
    })
}

/// To be called when the record has been replayed, with what `before` has returned for it.
///
/// # Safety
/// As for `before`.
pub unsafe fn after(due: Due) {
    if !may_be_read() {
        return;
    }
    // SAFETY: as in `before`.
    let publisher = unsafe { publisher() };
    publisher.count_ended(due.ends);
    if let (Some(time), Some(store)) = (due.redefined, &publisher.store) {
        surely(|| {
            let (versions, definers) = (store.versions(), store.definers());
            publisher.redefined.all().for_each(|slot| versions.slot(slot).bump(time));
            publisher.redefined.all().for_each(|slot| definers.leave(slot));
        });
    }
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

/// Outdates everything that rests on a database, whose OID may come again.
fn forget_database(database: u32) {
    if let Some(store) = shmem::store_without_area() {
        let (versions, now) = (store.versions(), backend::now());
        for slot in [versions.catalogs(database), versions.ddl(database), versions.wildcard(database)] {
            versions.slot(slot).bump(now);
        }
    }
}
