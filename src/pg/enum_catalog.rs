//! The labels of an enum as its catalog has them now. The caches of this backend, from which the type's output function takes them, may not have
//! heard of a change yet. Nothing is kept.

use arrow_cache_core::OutOfMemory;
use pgrx::pg_sys;

/// Gives each value of an enum and its label, in the encoding of the database, to `add`, as a snapshot sees them that is taken now. Stops at an error of
/// `add`. Raises what reading a catalog raises.
///
/// # Errors
/// Those of `add`.
pub fn read_labels(
    enum_type: pg_sys::Oid,
    mut add: impl FnMut(u32, &[u8]) -> Result<(), OutOfMemory>,
) -> Result<(), OutOfMemory> {
    const LOCK: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    let mut read = Ok(());
    // SAFETY: reads a catalog by an index that begins with the type. A row holds until the next one is asked for, and has the layout of its
    // catalog. After an error the server closes what is open.
    unsafe {
        // Scans of catalogs then take a new snapshot.
        pg_sys::InvalidateCatalogSnapshot();
        let mut key = pg_sys::ScanKeyData::default();
        pg_sys::ScanKeyInit(
            &raw mut key,
            pg_sys::Anum_pg_enum_enumtypid as pg_sys::AttrNumber,
            pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber,
            pg_sys::RegProcedure::from(pg_sys::F_OIDEQ),
            pg_sys::Datum::from(enum_type),
        );
        let catalog = pg_sys::table_open(pg_sys::EnumRelationId, LOCK);
        let index = pg_sys::Oid::from(pg_sys::EnumTypIdLabelIndexId);
        let scan = pg_sys::systable_beginscan(catalog, index, true, std::ptr::null_mut(), 1, &raw mut key);
        while read.is_ok() {
            let row = pg_sys::systable_getnext(scan);
            if row.is_null() {
                break;
            }
            let row = &*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_enum>();
            read = add(row.oid.to_u32(), std::ffi::CStr::from_ptr(row.enumlabel.data.as_ptr()).to_bytes());
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(catalog, LOCK);
    }
    read
}
