//! A row of a catalog, held while it is looked at.

use std::ffi::{CStr, CString};

use pgrx::pg_sys;

/// A row from a cache of the server's. It is given back when this is dropped, by an error too.
pub struct Row {
    cache: i32,
    tuple: pg_sys::HeapTuple,
}

impl Row {
    /// The row of an object in a cache whose key is its OID. `None` if there is none.
    pub fn find(cache: pg_sys::SysCacheIdentifier::Type, object: pg_sys::Oid) -> Option<Self> {
        let cache = cache as i32;
        // SAFETY: a look-up with the one key that the caches of objects by OID have.
        let tuple = unsafe { pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(object)) };
        // Made only where there is one: it gives back what it holds.
        (!tuple.is_null()).then(|| Self { cache, tuple })
    }

    /// The row of a cache whose key is a pair of OIDs. `None` if there is none.
    pub fn find_pair(cache: pg_sys::SysCacheIdentifier::Type, one: pg_sys::Oid, other: pg_sys::Oid) -> Option<Self> {
        let cache = cache as i32;
        // SAFETY: a look-up with as many keys as the cache has.
        let tuple = unsafe { pg_sys::SearchSysCache2(cache, pg_sys::Datum::from(one), pg_sys::Datum::from(other)) };
        // Made only where there is one: it gives back what it holds.
        (!tuple.is_null()).then(|| Self { cache, tuple })
    }

    /// Its columns of fixed width.
    ///
    /// # Safety
    /// `T` must be the layout of the catalog's rows. What is pointed to is valid as long as the row is held.
    pub unsafe fn form<T>(&self) -> *const T {
        // SAFETY: the tuple is held.
        unsafe { pg_sys::GETSTRUCT(self.tuple) }.cast()
    }

    fn column(&self, number: i16) -> Option<pg_sys::Datum> {
        let mut is_null = true;
        // SAFETY: the tuple is held, and of this cache.
        let value = unsafe { pg_sys::SysCacheGetAttr(self.cache, self.tuple, number, &raw mut is_null) };
        (!is_null).then_some(value)
    }

    /// Is the column, counted from 1, null?
    pub fn is_null(&self, number: i16) -> bool {
        self.column(number).is_none()
    }

    /// The object that a column names; `None` for none.
    pub fn oid(&self, number: i16) -> Option<pg_sys::Oid> {
        let object = pg_sys::Oid::from(self.column(number)?.value() as u32);
        (object != pg_sys::InvalidOid).then_some(object)
    }

    /// The text in a column of type text or pg_node_tree; `None` if it is null.
    pub fn text(&self, number: i16) -> Option<CString> {
        let value = self.column(number)?;
        // SAFETY: a varlena, as the caller says; the copy is freed here.
        unsafe {
            let text = pg_sys::text_to_cstring(value.cast_mut_ptr());
            let copy = CStr::from_ptr(text).to_owned();
            pg_sys::pfree(text.cast());
            Some(copy)
        }
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        // SAFETY: the reference that `find` took.
        unsafe { pg_sys::ReleaseSysCache(self.tuple) };
    }
}
