//! The server's lists: of nodes, OIDs and integers. Read in place; keeps nothing.

use pgrx::pg_sys;

/// The cells of a list; none for NIL. They are read in place, because lists are walked in every statement.
///
/// # Safety
/// `list` must be NIL or a valid list that is not changed while the result is used.
unsafe fn cells<'a>(list: *const pg_sys::List) -> &'a [pg_sys::ListCell] {
    if list.is_null() {
        return &[];
    }
    // SAFETY: a valid list has as many cells as it says, and nobody changes it.
    unsafe { std::slice::from_raw_parts((*list).elements, (*list).length as usize) }
}

/// The nodes of a list.
///
/// # Safety
/// As `cells`; the list must hold pointers to `T`.
pub unsafe fn nodes<'a, T: 'a>(list: *const pg_sys::List) -> impl ExactSizeIterator<Item = *mut T> + Clone + 'a {
    // SAFETY: NIL or a valid list.
    unsafe { cells(list) }.iter().map(|cell| {
        // SAFETY: a list of pointers.
        unsafe { cell.ptr_value }.cast()
    })
}

/// A node of a list, by its place from 0.
///
/// # Safety
/// As `nodes`.
pub unsafe fn node_at<T>(list: *const pg_sys::List, place: usize) -> Option<*mut T> {
    // SAFETY: NIL or a valid list of pointers.
    unsafe { cells(list).get(place).map(|cell| cell.ptr_value.cast()) }
}

/// The OIDs of a list.
///
/// # Safety
/// As `cells`; the list must be one of OIDs.
pub unsafe fn oids<'a>(list: *const pg_sys::List) -> impl Iterator<Item = pg_sys::Oid> + 'a {
    // SAFETY: NIL or a valid list.
    unsafe { cells(list) }.iter().map(|cell| {
        // SAFETY: a list of OIDs.
        unsafe { cell.oid_value }
    })
}

/// The numbers of a list.
///
/// # Safety
/// As `cells`; the list must be one of integers.
pub unsafe fn integers<'a>(list: *const pg_sys::List) -> impl Iterator<Item = i32> + 'a {
    // SAFETY: NIL or a valid list.
    unsafe { cells(list) }.iter().map(|cell| {
        // SAFETY: a list of integers.
        unsafe { cell.int_value }
    })
}
