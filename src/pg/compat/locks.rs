//! Locks of relations that are not waited for.

use crate::pg::backend;
use std::ffi::c_int;

use pgrx::pg_sys;

/// Locks a relation of this database, which others share, in ACCESS SHARE mode until the transaction ends. False if
/// somebody else holds a lock that is in the way, or if the server's table of locks is full. All locks that the cache
/// needs are taken here: it neither waits for one nor raises an ERROR because there is no room for it, which the
/// server's own `LockRelationOid` and `ConditionalLockRelationOid` do. What is raised for other reasons jumps over this
/// frame.
///
/// # Safety
/// Inside a transaction. No frame between here and `keeping`, or PostgreSQL, may have pending destructors.
pub unsafe fn lock_at_once(relation: pg_sys::Oid) -> bool {
    let mode = pg_sys::AccessShareLock as c_int;
    // SAFETY: the caller's promise. The tag is that of a relation (storage/lock.h), and the steps are those of
    // `ConditionalLockRelationOid` (lmgr.c).
    unsafe {
        let tag = pg_sys::LOCKTAG {
            locktag_field1: backend::database(),
            locktag_field2: relation.to_u32(),
            locktag_field3: 0,
            locktag_field4: 0,
            locktag_type: pg_sys::LockTagType::LOCKTAG_RELATION as u8,
            locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
        };
        let mut own = std::ptr::null_mut();
        let place = &raw mut own;
        #[cfg(not(feature = "pg18"))]
        let result = direct!(pg_sys::LockAcquireExtended(&raw const tag, mode, false, true, false, place));
        #[cfg(feature = "pg18")]
        let result = direct!(pg_sys::LockAcquireExtended(&raw const tag, mode, false, true, false, place, false));
        if result == pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL {
            return false;
        }
        if result != pg_sys::LockAcquireResult::LOCKACQUIRE_ALREADY_CLEAR {
            direct!(pg_sys::AcceptInvalidationMessages());
            direct!(pg_sys::MarkLockClear(own));
        }
        true
    }
}
