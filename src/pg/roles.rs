//! What the catalogs say of a role: its row, the roles that it is a member of, and who owns the database. All of it is
//! read through the server's own caches, so that it is what the server goes by in this backend. State of this backend:
//! the listener; no lock.

use std::cell::Cell;

use pgrx::pg_sys;
use pgrx::pg_sys::SysCacheIdentifier::{AUTHMEMMEMROLE, AUTHOID, DATABASEOID};

use super::backend;
use super::backend_local::Local;
use super::catalog_row::CatalogRow;
use super::compat::ROLE_OF_MEMBERSHIP;

/// Called when something about roles has changed. It may be called in the middle of an abort, so it must not call
/// PostgreSQL.
pub type Listener = fn();

static LISTENER: Local<Cell<Option<Listener>>> = Local::new(Cell::new(None));

/// From now on, `listener` is called each time this backend learns that a role, a membership or a database has changed.
/// A second listener takes the place of the first.
pub fn listen(listener: Listener) {
    if LISTENER.replace(Some(listener)).is_none() {
        // One cache of each catalog is enough: each changed row has a message for all of them.
        for cache in [AUTHOID, AUTHMEMMEMROLE, DATABASEOID] {
            // SAFETY: the callback has the type that the server expects, and needs no argument.
            unsafe { kept!(pg_sys::CacheRegisterSyscacheCallback(cache as i32, Some(changed), pg_sys::Datum::null())) };
        }
    }
}

unsafe extern "C-unwind" fn changed(_arg: pg_sys::Datum, _cache: i32, _hash: u32) {
    if let Some(listener) = LISTENER.get() {
        listener();
    }
}

/// The bytes of what a role is: its number, its name and its attributes. Not its password, until when that holds, and
/// how many connections it may have. `None` if there is no such role.
pub fn attributes(role: pg_sys::Oid, use_bytes: impl FnOnce(&[u8])) -> Option<()> {
    const LENGTH: usize = std::mem::offset_of!(pg_sys::FormData_pg_authid, rolconnlimit);
    let row = CatalogRow::find(AUTHOID, role)?;
    // SAFETY: a row of pg_authid, which is held, and has these columns, none of which is null. The name is filled up
    // with zeros, and what stands between the columns is zero as well, since the server forms rows in zeroed memory.
    use_bytes(unsafe { std::slice::from_raw_parts(pg_sys::GETSTRUCT(row.as_tuple()).cast(), LENGTH) });
    Some(())
}

/// The role that owns this database, which is a member of pg_database_owner.
pub fn database_owner() -> Option<pg_sys::Oid> {
    let row = CatalogRow::find(DATABASEOID, pg_sys::Oid::from(backend::database()))?;
    // SAFETY: a row of pg_database, which is held.
    Some(unsafe { (*pg_sys::GETSTRUCT(row.as_tuple()).cast::<pg_sys::FormData_pg_database>()).datdba })
}

/// The rows that make a role a member of others, held while they are read.
struct Memberships(*mut pg_sys::CatCList);

impl Drop for Memberships {
    fn drop(&mut self) {
        // SAFETY: the reference that `for_each_membership` took.
        unsafe { kept!(pg_sys::ReleaseCatCacheList(self.0)) };
    }
}

/// Calls `visit` with each role that a role is a member of, not by way of others, and the bytes of the row that says
/// so: who has granted it, and with which options. In any order.
pub fn for_each_membership(role: pg_sys::Oid, mut visit: impl FnMut(pg_sys::Oid, &[u8])) {
    let none = pg_sys::Datum::null();
    let key = pg_sys::Datum::from(role);
    // SAFETY: the member is the first key of this cache. Its rows have no variable columns and no nulls, so that their
    // bytes are those behind the head.
    unsafe {
        let list = Memberships(kept!(pg_sys::SearchSysCacheList(AUTHMEMMEMROLE as i32, 1, key, none, none)));
        let members = (*list.0).members.as_slice((*list.0).n_members as usize);
        for member in members {
            let tuple = &raw mut (**member).tuple;
            let row = pg_sys::GETSTRUCT(tuple);
            let length = (*tuple).t_len as usize - usize::from((*(*tuple).t_data).t_hoff);
            let of = row.add(ROLE_OF_MEMBERSHIP).cast::<pg_sys::Oid>();
            visit(of.read(), std::slice::from_raw_parts(row.cast(), length));
        }
    }
}
