//! Locks of relations that are not waited for.

use pgrx::pg_sys;

/// Locks a relation of this database, which others share, in ACCESS SHARE mode until the transaction ends. False if somebody else holds a lock that is in the way, or if
/// the server's table of locks is full: `ConditionalLockRelationOid` raises an error then.
///
/// # Safety
/// Inside a transaction.
pub unsafe fn lock_at_once(relation: pg_sys::Oid) -> bool {
    // SAFETY: the caller's promise. The tag is that of a relation (storage/lock.h), and the steps are those of `ConditionalLockRelationOid` (lmgr.c).
    unsafe {
        let tag = pg_sys::LOCKTAG {
            locktag_field1: pg_sys::MyDatabaseId.to_u32(),
            locktag_field2: relation.to_u32(),
            locktag_field3: 0,
            locktag_field4: 0,
            locktag_type: pg_sys::LockTagType::LOCKTAG_RELATION as u8,
            locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
        };
        let mut own = std::ptr::null_mut();
        let result = acquire(&raw const tag, &raw mut own);
        if result == pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL {
            return false;
        }
        if result != pg_sys::LockAcquireResult::LOCKACQUIRE_ALREADY_CLEAR {
            pg_sys::AcceptInvalidationMessages();
            pg_sys::MarkLockClear(own);
        }
        true
    }
}

/// Asks for the lock, without waiting, and without an error if there is no room for it.
///
/// # Safety
/// As `lock_at_once`.
unsafe fn acquire(tag: *const pg_sys::LOCKTAG, own: *mut *mut pg_sys::LOCALLOCK) -> pg_sys::LockAcquireResult::Type {
    let mode = pg_sys::AccessShareLock as i32;
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        {
            pg_sys::LockAcquireExtended(tag, mode, false, true, false, own)
        }
        #[cfg(feature = "pg18")]
        {
            pg_sys::LockAcquireExtended(tag, mode, false, true, false, own, false)
        }
    }
}
