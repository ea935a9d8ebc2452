//! Small questions about catalog objects: lists, relations' kinds, types.

use pgrx::pg_sys;

/// First OID that the server gives to objects of users (access/transam.h).
pub const FIRST_USER_OID: u32 = 16384;
/// First OID that initdb gives to objects without a fixed one (access/transam.h).
pub const FIRST_UNPINNED_OID: u32 = 10000;

/// The cells of a list; none for NIL. Read in place: a list is walked once per statement or more.
///
/// # Safety
/// `list` must be NIL or a valid list that is not changed while the result is used.
unsafe fn cells<'a>(list: *const pg_sys::List) -> &'a [pg_sys::ListCell] {
    if list.is_null() {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts((*list).elements, (*list).length as usize) }
}

/// The nodes of a list.
///
/// # Safety
/// As `cells`; the list must hold pointers to `T`.
pub unsafe fn nodes<'a, T: 'a>(list: *const pg_sys::List) -> impl ExactSizeIterator<Item = *mut T> + 'a {
    // SAFETY: as the caller promises.
    unsafe { cells(list) }.iter().map(|cell| {
        // SAFETY: as the caller promises.
        unsafe { cell.ptr_value }.cast()
    })
}

/// The OIDs of a list.
///
/// # Safety
/// As `cells`; the list must be one of OIDs.
pub unsafe fn oids<'a>(list: *const pg_sys::List) -> impl Iterator<Item = pg_sys::Oid> + 'a {
    // SAFETY: as the caller promises.
    unsafe { cells(list) }.iter().map(|cell| {
        // SAFETY: as the caller promises.
        unsafe { cell.oid_value }
    })
}

/// The numbers of a list.
///
/// # Safety
/// As `cells`; the list must be one of integers.
pub unsafe fn integers<'a>(list: *const pg_sys::List) -> impl Iterator<Item = i32> + 'a {
    // SAFETY: as the caller promises.
    unsafe { cells(list) }.iter().map(|cell| {
        // SAFETY: as the caller promises.
        unsafe { cell.int_value }
    })
}

/// Deepest nesting of composite types that is looked into; a deeper one counts as a user's own.
const MAX_TYPE_DEPTH: u32 = 8;

/// Do the output and comparison of values of this type rest on built-in functions alone? True for
/// built-in types, enums, arrays of such, and composites of such.
pub fn is_plain(type_oid: pg_sys::Oid) -> bool {
    is_plain_at(type_oid, 0)
}

fn is_plain_at(type_oid: pg_sys::Oid, depth: u32) -> bool {
    if type_oid.to_u32() < FIRST_UNPINNED_OID {
        return true;
    }
    if depth > MAX_TYPE_DEPTH {
        return false;
    }
    // SAFETY: catalog look-ups by OID; they return invalid values for unknown types.
    unsafe {
        let element = pg_sys::get_element_type(type_oid);
        if element != pg_sys::InvalidOid {
            return is_plain_at(element, depth + 1);
        }
        match pg_sys::get_typtype(type_oid) as u8 {
            pg_sys::TYPTYPE_ENUM => true,
            pg_sys::TYPTYPE_DOMAIN => is_plain_at(pg_sys::getBaseType(type_oid), depth + 1),
            pg_sys::TYPTYPE_COMPOSITE => composite_is_plain(type_oid, depth),
            _ => false,
        }
    }
}

/// # Safety
/// `type_oid` must be a composite type.
unsafe fn composite_is_plain(type_oid: pg_sys::Oid, depth: u32) -> bool {
    // SAFETY: the descriptor is reference counted and released below; is_plain_at may raise, and
    // the resource owner releases the reference then.
    unsafe {
        let descriptor = pg_sys::lookup_rowtype_tupdesc(type_oid, -1);
        let mut plain = true;
        for index in 0..(*descriptor).natts as usize {
            let attribute = tuple_attribute(descriptor, index);
            if !(*attribute).attisdropped && !is_plain_at((*attribute).atttypid, depth + 1) {
                plain = false;
                break;
            }
        }
        if (*descriptor).tdrefcount >= 0 {
            pg_sys::DecrTupleDescRefCount(descriptor);
        }
        plain
    }
}

/// Attribute number `index`, from 0, of a row type.
///
/// # Safety
/// `descriptor` must be valid and have more than `index` attributes.
pub unsafe fn tuple_attribute(descriptor: pg_sys::TupleDesc, index: usize) -> *mut pg_sys::FormData_pg_attribute {
    // SAFETY: as the caller promises; pgrx knows the layout of each server version.
    unsafe { crate::compat::tuple_attribute(descriptor, index) }
}
