//! The tables and indexes that a hit holds open for a portal that may stay open, so that the server refuses what it would refuse, for example TRUNCATE
//! or ALTER TABLE in this session between two fetches. The server asks for nothing else whether they are open, so they are opened when the first
//! such statement comes: nearly all portals are closed before. State of this backend: the scans that have not opened theirs; no lock.

use std::cell::RefCell;
use std::ffi::c_void;

use arrow_cache_core::RoomyVec;
use pgrx::pg_sys;

use super::open_relations::OpenRelations;
use crate::pg::backend_local::Local;
use crate::pg::lists::oids;

/// A scan that has not opened what it is to hold open. Its memory is there as long as it is listed: the end of the scan, or else of its hold, strikes
/// it off.
struct Waiting {
    /// Its hold, which stands for it here.
    hold: *const c_void,
    portal: pg_sys::Portal,
    relations: OpenRelations,
    /// Where the scan keeps what it has opened, and the memory that this lies in.
    opened: *mut *mut pg_sys::List,
    memory: pg_sys::MemoryContext,
}

static WAITING: Local<RefCell<Vec<Waiting>>> = Local::new(RefCell::new(Vec::new()));

/// Has a scan of the active portal open these relations later, and list them in `opened`, which lies in `memory`. False if they have to be opened at once.
///
/// # Safety
/// `hold` must be that of the scan, and `forget` be called when the scan ends, or the hold is released without that.
#[inline]
pub unsafe fn wait(
    hold: *const c_void,
    relations: OpenRelations,
    opened: *mut *mut pg_sys::List,
    memory: pg_sys::MemoryContext,
) -> bool {
    // SAFETY: the portal is there while it is active; the hold lies in a context of its own below that of the query's descriptor.
    let portal = unsafe {
        let portal = pg_sys::ActivePortal;
        let context = pg_sys::GetMemoryChunkContext(hold.cast_mut());
        // Then the hold is released before the portal is gone.
        if portal.is_null() || (*context).parent != (*portal).portalContext {
            return false;
        }
        portal
    };
    WAITING.with_borrow_mut(|waiting| waiting.add(Waiting { hold, portal, relations, opened, memory })).is_ok()
}

/// The scan with this hold has ended.
#[inline]
pub fn forget(hold: *const c_void) {
    WAITING.with_borrow_mut(|waiting| {
        if let Some(place) = waiting.iter().rposition(|scan| scan.hold == hold) {
            waiting.swap_remove(place);
        }
    });
}

/// A statement has begun that the server may refuse because of what is open, or an object is about to be dropped: opens what scans have waited with.
/// May raise.
#[inline]
pub fn open_waiting() {
    if !WAITING.with_borrow(Vec::is_empty) {
        open_all();
    }
}

#[cold]
#[inline(never)]
fn open_all() {
    while let Some(scan) = WAITING.with_borrow_mut(Vec::pop) {
        scan.open();
    }
}

impl Waiting {
    /// Opens the relations for the portal of the scan, unless that has failed: then the server has closed what it held. A relation that is gone is left
    /// out, and an index that another session has locked: the statement that wants it waits for that session anyway.
    fn open(self) {
        // SAFETY: portal and memory are there as long as the scan is listed. Planning has locked the tables. The references are given back by the end of the
        // scan, or by the resource owner of the portal.
        unsafe {
            let owner = (*self.portal).resowner;
            if owner.is_null() || (*self.portal).status == pg_sys::PortalStatus::PORTAL_FAILED {
                return;
            }
            let _as_portal = AsPortal::enter(owner, self.memory);
            let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
            let indexes = oids(self.relations.indexes).filter(|index| pg_sys::ConditionalLockRelationOid(*index, lock));
            for relation in oids(self.relations.tables).chain(indexes) {
                let open = pg_sys::try_relation_open(relation, pg_sys::NoLock as pg_sys::LOCKMODE);
                if !open.is_null() {
                    *self.opened = pg_sys::lappend(*self.opened, open.cast());
                }
            }
        }
    }
}

/// What is opened and allocated belongs to a portal, until this is dropped.
struct AsPortal {
    owner: pg_sys::ResourceOwner,
    memory: pg_sys::MemoryContext,
}

impl AsPortal {
    /// # Safety
    /// Both must be live ones.
    unsafe fn enter(owner: pg_sys::ResourceOwner, memory: pg_sys::MemoryContext) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let before = Self { owner: pg_sys::CurrentResourceOwner, memory: pg_sys::MemoryContextSwitchTo(memory) };
            pg_sys::CurrentResourceOwner = owner;
            before
        }
    }
}

impl Drop for AsPortal {
    fn drop(&mut self) {
        // SAFETY: those that were current before.
        unsafe {
            pg_sys::CurrentResourceOwner = self.owner;
            pg_sys::MemoryContextSwitchTo(self.memory);
        }
    }
}
