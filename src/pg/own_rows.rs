//! What the present transaction has changed in rows of catalogs: the versions that it has found and ended, and those
//! that it leaves. Versions of rolled back subtransactions are neither. Reads catalogs; keeps nothing.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::catalog_row::columns_of;
use super::catalog_scan::{Catalog, Rows, scan_versions};
use super::object_ids::{
    PG_ATTRDEF, PG_ATTRIBUTE, PG_CLASS, PG_CONSTRAINT, PG_INDEX, PG_INHERITS, PG_PARTITIONED_TABLE, PG_POLICY,
    PG_REWRITE,
};
use super::search_path;

/// A catalog whose rows describe relations.
struct Description {
    catalog: u32,
    /// An index that begins with the relation.
    index: u32,
    /// The name of that column.
    relation: &'static CStr,
    /// Columns that no answer rests on.
    beside: &'static [&'static CStr],
}

const fn description(
    catalog: u32,
    index: u32,
    relation: &'static CStr,
    beside: &'static [&'static CStr],
) -> Description {
    Description { catalog, index, relation, beside }
}

/// All that tell what a query finds in a relation. Rights are asked for at each hit, and triggers are for those who
/// write. A foreign key says something about the table that has it. `layers/test_catalogs.py` judges the columns of
/// catalogs that name a relation.
const DESCRIPTIONS: [Description; 10] = [
    description(PG_CLASS, pg_sys::ClassOidIndexId, c"oid", &[c"relacl", c"relhastriggers"]),
    description(PG_ATTRIBUTE, pg_sys::AttributeRelidNumIndexId, c"attrelid", &[c"attacl"]),
    description(PG_INDEX, pg_sys::IndexIndrelidIndexId, c"indrelid", &[]),
    description(PG_CONSTRAINT, 2665, c"conrelid", &[]),
    description(PG_ATTRDEF, 2656, c"adrelid", &[]),
    description(PG_INHERITS, 2680, c"inhrelid", &[]),
    description(PG_INHERITS, 2187, c"inhparent", &[]),
    description(PG_REWRITE, 2693, c"ev_class", &[]),
    description(PG_POLICY, 3258, c"polrelid", &[]),
    description(PG_PARTITIONED_TABLE, 3351, c"partrelid", &[]),
];

/// Those of the catalogs that a transaction has changed, by their bits, which describe relations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Described(u16);

impl Described {
    /// All of them.
    pub const ALL: Self = Self(u16::MAX);

    /// Adds a catalog, if it is one of them.
    pub fn add(&mut self, catalog: u32) {
        for (bit, description) in DESCRIPTIONS.iter().enumerate() {
            self.0 |= u16::from(description.catalog == catalog) << bit;
        }
    }

    /// Leaves of these relations those of which the transaction has changed something that a query finds there, as far
    /// as these catalogs tell, and those of which that cannot be told.
    pub fn retain_changed(self, relations: &mut Vec<u32>) {
        if relations.is_empty() {
            return;
        }
        let changed = DESCRIPTIONS.iter().enumerate().filter(|(bit, _)| self.0 >> bit & 1 != 0);
        // They are looked up once, as there may be thousands of relations.
        let columns: Option<Vec<_>> = changed.map(|(_, description)| description.columns()).collect();
        if let Some(columns) = columns {
            relations.retain(|relation| !columns.iter().all(|own| own.are_same((*relation).into())));
        }
    }
}

const FUNCTIONS: Catalog = Catalog {
    table: pg_sys::ProcedureRelationId,
    index: pg_sys::ProcedureOidIndexId,
    column: pg_sys::Anum_pg_proc_oid,
};

/// What a version of a row is to the transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    /// It was there before, and the transaction has ended it.
    Found,
    /// The transaction has made it, and not ended it.
    Left,
    /// Anything else.
    Other,
}

/// What a version is to the transaction; `None` if several transactions have marked it.
///
/// # Safety
/// A row of a table.
unsafe fn version(row: pg_sys::HeapTuple) -> Option<Version> {
    const FROZEN: u16 = pg_sys::HEAP_XMIN_FROZEN as u16;
    const NO_END: u16 = (pg_sys::HEAP_XMAX_INVALID | pg_sys::HEAP_XMAX_LOCK_ONLY) as u16;
    const SEVERAL: u16 = pg_sys::HEAP_XMAX_IS_MULTI as u16;
    const LOCKED: u16 = (pg_sys::HEAP_XMAX_IS_MULTI | pg_sys::HEAP_LOCK_MASK) as u16;
    // SAFETY: the caller's promise. An id that is none of this transaction's is none of its subtransactions' either.
    unsafe {
        let head = (*row).t_data;
        let (marks, ids) = ((*head).t_infomask, (*head).t_choice.t_heap);
        let is_own = |xid| kept!(pg_sys::TransactionIdIsCurrentTransactionId(xid));
        let is_made = marks & FROZEN != FROZEN && is_own(ids.t_xmin);
        let is_locked = marks & LOCKED == pg_sys::HEAP_XMAX_EXCL_LOCK as u16;
        let may_be_ended = marks & NO_END == 0 && !is_locked;
        if may_be_ended && marks & SEVERAL != 0 {
            return None;
        }
        Some(match (is_made, may_be_ended && is_own(ids.t_xmax)) {
            (false, true) => Version::Found,
            (true, false) => Version::Left,
            _ => Version::Other,
        })
    }
}

impl Description {
    /// Where its columns are; `None` if it has not all of them.
    fn columns(&self) -> Option<Columns> {
        let table = pg_sys::Oid::from(self.catalog);
        // SAFETY: reads a catalog about a column, by its name.
        let number = |name: &CStr| match unsafe { kept!(pg_sys::get_attnum(table, name.as_ptr())) } {
            0 => None,
            number => Some(i32::from(number)),
        };
        let rows = Catalog { table, index: self.index, column: number(self.relation)? as u32 };
        Some(Columns { rows, beside: self.beside.iter().map(|name| number(name)).collect::<Option<_>>()? })
    }
}

/// Where the columns of a `Description` are.
struct Columns {
    rows: Catalog,
    beside: Vec<i32>,
}

impl Columns {
    /// Returns true if the rows of a relation that the transaction leaves are those that it has found.
    fn are_same(&self, relation: pg_sys::Oid) -> bool {
        let (mut found, mut left, mut is_known) = (Vec::new(), Vec::new(), true);
        // SAFETY: a catalog, with the column of its index, and rows of it.
        let scanned = unsafe {
            scan_versions(self.rows, Rows::With(relation), |row, columns| {
                match version(row) {
                    Some(Version::Found) => found.push(without(row, columns, &self.beside)),
                    Some(Version::Left) => left.push(without(row, columns, &self.beside)),
                    Some(Version::Other) => {}
                    None => is_known = false,
                }
                is_known
            })
        };
        found.sort_unstable();
        left.sort_unstable();
        scanned.is_some() && is_known && found == left
    }
}

/// The bytes of a row, as if some columns were null.
///
/// # Safety
/// A row of a table with these columns.
unsafe fn without(row: pg_sys::HeapTuple, columns: pg_sys::TupleDesc, null: &[i32]) -> Vec<u8> {
    let mut numbers = null.to_vec();
    let (mut values, mut are_null) = (vec![pg_sys::Datum::null(); null.len()], vec![true; null.len()]);
    // SAFETY: the caller's promise. The server makes a copy, in which nothing is left as it was in memory before.
    unsafe {
        let copy = kept!(pg_sys::heap_modify_tuple_by_cols(
            row,
            columns,
            null.len() as i32,
            numbers.as_mut_ptr(),
            values.as_mut_ptr(),
            are_null.as_mut_ptr()
        ));
        let bytes = columns_of(copy).to_vec();
        kept!(pg_sys::heap_freetuple(copy));
        bytes
    }
}

/// Returns true if all functions that the transaction has changed or dropped were temporary ones of this session. False
/// if that cannot be told. Reads all rows of functions, unless the session has no temporary objects: there may be many.
pub fn are_changed_functions_temporary() -> bool {
    let temporary = search_path::temporary_schema();
    if temporary == pg_sys::InvalidOid {
        return false;
    }
    let mut are_temporary = true;
    // SAFETY: rows of pg_proc.
    let scanned = unsafe {
        scan_versions(FUNCTIONS, Rows::All, |row, _| {
            let schema = || (*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_proc>()).pronamespace;
            are_temporary = match version(row) {
                Some(Version::Found) => schema() == temporary,
                Some(_) => true,
                None => false,
            };
            are_temporary
        })
    };
    scanned.is_some() && are_temporary
}
