//! What the planner's pruning asks of a partitioned table: a `RelOptInfo` made of the partition key of the open
//! relation, whose head differs between 15 and later versions.

#[cfg(feature = "pg15")]
use std::ffi::c_char;

use pgrx::pg_sys;

use crate::pg::lists::nodes;
use crate::pg::tree_making::{list_of, new_node};

/// The head of `PartitionKeyData` (utils/partcache.h). pgrx does not bind it.
#[repr(C)]
struct KeyOfServer {
    #[cfg(feature = "pg15")]
    strategy: c_char,
    #[cfg(not(feature = "pg15"))]
    strategy: pg_sys::PartitionStrategy::Type,
    columns: i16,
    column_numbers: *mut pg_sys::AttrNumber,
    expressions: *mut pg_sys::List,
    families: *mut pg_sys::Oid,
    input_types: *mut pg_sys::Oid,
    support: *mut pg_sys::FmgrInfo,
    collations: *mut pg_sys::Oid,
    types: *mut pg_sys::Oid,
    modifiers: *mut i32,
    lengths: *mut i16,
    are_by_value: *mut bool,
    alignments: *mut std::ffi::c_char,
    own_collations: *mut pg_sys::Oid,
}

unsafe extern "C-unwind" {
    /// utils/partcache.h; makes the key if the relation has none yet.
    fn RelationGetPartitionKey(relation: pg_sys::Relation) -> *const KeyOfServer;
    /// utils/partcache.h; the condition that all rows of a partition fulfil, null for none.
    fn RelationGetPartitionQual(relation: pg_sys::Relation) -> *mut pg_sys::List;
}

/// A partitioned table as the planner's pruning sees it. Good as long as the relation is open.
pub struct PrunedTable {
    /// With the columns of the relation numbered as those of relation 1, and without conditions.
    pub planned: *mut pg_sys::RelOptInfo,
    /// The families of operators and the functions that order, or hash, the columns of the key, and the types that these
    /// take.
    pub orders: Vec<(pg_sys::Oid, pg_sys::Oid, pg_sys::Oid)>,
}

/// What the planner's pruning asks of a partitioned table, as the server finds it out itself
/// (`set_relation_partition_info`), in the current memory context.
///
/// # Safety
/// The relation must be open, partitioned and described by this.
pub unsafe fn pruned_table(relation: pg_sys::Relation, described: &pg_sys::PartitionDescData) -> Option<PrunedTable> {
    let (planned, place) = (new_node::<pg_sys::RelOptInfo>(), size_of::<pg_sys::PartitionSchemeData>());
    // SAFETY: an open partitioned table has a key, whose arrays have as many items as it has columns, and live as long
    // as it is open. As many bytes as are written.
    unsafe {
        let key = kept!(RelationGetPartitionKey(relation)).as_ref()?;
        let count = usize::try_from(key.columns).ok()?;
        let scheme: *mut pg_sys::PartitionSchemeData = kept!(pg_sys::palloc(place)).cast();
        scheme.write(pg_sys::PartitionSchemeData {
            strategy: key.strategy as _,
            partnatts: key.columns,
            partopfamily: key.families,
            partopcintype: key.input_types,
            partcollation: key.collations,
            parttyplen: key.lengths,
            parttypbyval: key.are_by_value,
            partsupfunc: key.support,
        });
        let expressions: *mut *mut pg_sys::List = kept!(pg_sys::palloc0(size_of::<*mut pg_sys::List>() * count)).cast();
        let mut others = nodes::<pg_sys::Node>(key.expressions);
        for column in 0..count {
            let number = *key.column_numbers.add(column);
            let expression = if number == 0 {
                others.next()?
            } else {
                let (type_oid, modifier) = (*key.types.add(column), *key.modifiers.add(column));
                kept!(pg_sys::makeVar(1, number, type_oid, modifier, *key.own_collations.add(column), 0)).cast()
            };
            *expressions.add(column) = list_of([expression]);
        }
        (*planned).relid = 1;
        (*planned).part_scheme = scheme;
        (*planned).boundinfo = described.boundinfo;
        (*planned).nparts = described.nparts;
        (*planned).partexprs = expressions;
        // Asked of a default partition alone.
        if described.boundinfo.as_ref().is_some_and(|bounds| bounds.default_index >= 0) {
            let condition = kept!(RelationGetPartitionQual(relation));
            (*planned).partition_qual = kept!(pg_sys::expression_planner(condition.cast())).cast();
        }
        let order =
            |column| (*key.families.add(column), (*key.support.add(column)).fn_oid, *key.input_types.add(column));
        Some(PrunedTable { planned, orders: (0..count).map(order).collect() })
    }
}
