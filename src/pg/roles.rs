//! What the catalogs say of a role: its row, the roles that it is a member of, and who owns the database. All of it is
//! read through the server's own caches, so that it is what the server goes by in this backend. State of this backend:
//! the listener; no lock.

use std::cell::Cell;

use pgrx::pg_sys;
use pgrx::pg_sys::SysCacheIdentifier::{AUTHMEMMEMROLE, AUTHOID, DATABASEOID};

use super::backend;
use super::backend_local::Local;
use super::catalog_row::{CatalogRow, columns_of};
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
pub fn attributes(role: pg_sys::Oid) -> Option<Vec<u8>> {
    let row = CatalogRow::find(AUTHOID, role)?;
    // All columns of fixed width are named, so that a new one does not compile.
    let pg_sys::FormData_pg_authid {
        oid,
        rolname,
        rolsuper,
        rolinherit,
        rolcreaterole,
        rolcreatedb,
        rolcanlogin,
        rolreplication,
        rolbypassrls,
        rolconnlimit: _,
    } =
        // SAFETY: a row of pg_authid, which is held.
        unsafe { &*pg_sys::GETSTRUCT(row.as_tuple()).cast::<pg_sys::FormData_pg_authid>() };
    let may = [rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolbypassrls];
    // A name is filled up with zeros.
    let name = rolname.data.map(|byte| byte as u8);
    Some([&oid.to_u32().to_ne_bytes()[..], &name, &may.map(|may| u8::from(*may))].concat())
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
    let cache = AUTHMEMMEMROLE as i32;
    let none = pg_sys::Datum::null();
    let key = pg_sys::Datum::from(role);
    // SAFETY: the member is the first key of this cache, whose rows are held with the list. The column is never null.
    unsafe {
        let list = Memberships(kept!(pg_sys::SearchSysCacheList(cache, 1, key, none, none)));
        let members = (*list.0).members.as_slice((*list.0).n_members as usize);
        for member in members {
            let row = &raw mut (**member).tuple;
            let mut is_null = false;
            let of = kept!(pg_sys::SysCacheGetAttr(cache, row, ROLE_OF_MEMBERSHIP, &raw mut is_null));
            visit(pg_sys::Oid::from(of.value() as u32), columns_of(row));
        }
    }
}
