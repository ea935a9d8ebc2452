//! One partitioned table: its partitions, and what conditions mean for each of them, by the planner's own pruning.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::bound::AboutTable;
use crate::pg::compat::tree::columns_in;
use crate::pg::computing::Unshown;
use crate::pg::tree_making::{list_of, new_node};
use crate::query::trusted_extensions::{is_family_of_user, is_of_user};

/// What a query asks of a table, whose columns are those of relation 1.
pub struct Asked {
    /// The bounds; `None` for one whose value is not known.
    pub bounds: Vec<Option<AboutTable>>,
    /// Other conditions: a list.
    pub others: *mut pg_sys::List,
}

/// A partition of the table.
pub struct Partition {
    /// Its OID.
    pub relation: pg_sys::Oid,
    /// It has no row that fulfils all conditions.
    pub is_empty: bool,
    /// The bounds, as bits, that all of its rows pass.
    pub implied: u64,
}

/// The partitions of a partitioned table, which the caller has locked, in the order that the planner reads them in.
/// `asked` is about the columns of `root`.
///
/// A bound is true for all rows of a partition if none can have a row for which it is false or NULL.
///
/// # Errors
/// `TooComplex` if the partitions are made by code of users.
///
/// # Safety
/// The tables must be there, and the conditions be valid ones of `root`.
pub unsafe fn partitions(table: pg_sys::Oid, root: pg_sys::Oid, asked: &Asked) -> Result<Vec<Partition>, Reason> {
    // SAFETY: the relations are open until the end, and with them the key and what describes the partitions. An error
    // leaves them to the resource owner. Partitions that are being detached are left out if the active snapshot sees
    // that, as the planner does.
    unsafe {
        let relation = kept!(pg_sys::relation_open(table, pg_sys::NoLock as _));
        let parent = kept!(pg_sys::relation_open(root, pg_sys::NoLock as _));
        let described = &*kept!(pg_sys::RelationGetPartitionDesc(relation, true));
        let map = columns_in((*relation).rd_att, (*parent).rd_att);
        let global = new_node::<pg_sys::PlannerGlobal>();
        let found = pruned_by(planned(table, global), described, map, asked);
        kept!(pg_sys::DestroyPartitionDirectory((*global).partition_directory));
        kept!(pg_sys::relation_close(parent, pg_sys::NoLock as _));
        kept!(pg_sys::relation_close(relation, pg_sys::NoLock as _));
        found.ok_or(Reason::TooComplex)
    }
}

/// A partitioned table as the planner knows it, with its columns as those of relation 1, and without conditions.
///
/// # Safety
/// The table must be there and partitioned, and `global` a new node. Its directory of partitions is to be destroyed.
unsafe fn planned(table: pg_sys::Oid, global: *mut pg_sys::PlannerGlobal) -> *mut pg_sys::RelOptInfo {
    let (root, planned) = (new_node::<pg_sys::PlannerInfo>(), new_node::<pg_sys::RelOptInfo>());
    let entry = new_node::<pg_sys::RangeTblEntry>();
    // SAFETY: new nodes, which say of the table what those of a query would say; room for two entries, from 0.
    unsafe {
        (*entry).rtekind = pg_sys::RTEKind::RTE_RELATION;
        (*entry).relid = table;
        (*entry).relkind = pg_sys::RELKIND_PARTITIONED_TABLE as _;
        (*entry).rellockmode = pg_sys::AccessShareLock as _;
        (*entry).inh = true;
        let room = size_of::<[*mut pg_sys::RangeTblEntry; 2]>();
        let entries: *mut [*mut pg_sys::RangeTblEntry; 2] = kept!(pg_sys::palloc0(room)).cast();
        (*entries)[1] = entry;
        (*root).parse = new_node::<pg_sys::Query>();
        (*root).glob = global;
        (*root).simple_rte_array = entries.cast();
        (*root).simple_rel_array_size = 2;
        (*planned).relid = 1;
        let _unshown = Unshown::new();
        kept!(pg_sys::get_relation_info(root, table, true, planned));
    }
    planned
}

/// # Safety
/// As `partitions`; `map` says which columns the table has in the place of those of the root, null for the same.
unsafe fn pruned_by(
    planned: *mut pg_sys::RelOptInfo,
    described: &pg_sys::PartitionDescData,
    map: *mut pg_sys::AttrMap,
    asked: &Asked,
) -> Option<Vec<Partition>> {
    let is_asked = !asked.others.is_null() || asked.bounds.iter().any(Option::is_some);
    // SAFETY: the planner has noted the key of the table, whose arrays have as many items as it has columns.
    let is_known = |column: usize| unsafe {
        let key = &*(*planned).part_scheme;
        let function = (*key.partsupfunc.add(column)).fn_oid;
        is_ordered_by_server(*key.partopfamily.add(column), *key.partopcintype.add(column), function)
    };
    // SAFETY: as above.
    if is_asked && !(0..unsafe { (*(*planned).part_scheme).partnatts } as usize).all(is_known) {
        return None;
    }
    let count = described.nparts as usize;
    // SAFETY: the caller's promise; the conditions are copied where they are changed.
    let partitions_with = |conditions: *mut pg_sys::List| unsafe {
        (*planned).baserestrictinfo = in_columns_of(map, conditions);
        let found = kept!(pg_sys::prune_append_rel_partitions(planned));
        (0..count).map(|number| kept!(pg_sys::bms_is_member(number as i32, found))).collect::<Vec<bool>>()
    };
    // Each time by itself: the planner makes less of a key of several columns if it finds more conditions.
    let by_others = partitions_with(asked.others);
    let by_bounds = partitions_with(list_of(asked.bounds.iter().flatten().map(|bound| bound.holds)));
    let partition = |number: usize| Partition {
        // SAFETY: the partition description has so many.
        relation: unsafe { *described.oids.add(number) },
        is_empty: !(by_others[number] && by_bounds[number]),
        implied: 0,
    };
    let mut partitions: Vec<Partition> = (0..count).map(partition).collect();
    for (number, bound) in asked.bounds.iter().enumerate() {
        let Some(AboutTable { fails, .. }) = bound.filter(|bound| !bound.fails.is_null()) else { continue };
        for (partition, may_fail) in partitions.iter_mut().zip(partitions_with(list_of([fails]))) {
            partition.implied |= u64::from(!may_fail) << number;
        }
    }
    Some(partitions)
}

/// Conditions on the columns of the root, as conditions on those of a partition.
///
/// # Safety
/// As `pruned_by`.
unsafe fn in_columns_of(map: *mut pg_sys::AttrMap, conditions: *mut pg_sys::List) -> *mut pg_sys::List {
    if map.is_null() {
        return conditions;
    }
    let mut whole_row = false;
    // SAFETY: the caller's promise. The server works on a copy.
    unsafe {
        kept!(pg_sys::map_variable_attnos(conditions.cast(), 1, 0, map, pg_sys::InvalidOid, &raw mut whole_row)).cast()
    }
}

/// Returns true if values of this type are ordered, or hashed, by code of the server alone (or of extensions that the
/// DBA trusts): the family, and the function. Values that hold others are compared by whatever orders those.
fn is_ordered_by_server(family: pg_sys::Oid, type_oid: pg_sys::Oid, function: pg_sys::Oid) -> bool {
    let holds_others =
        matches!(type_oid, pg_sys::ANYARRAYOID | pg_sys::ANYRANGEOID | pg_sys::ANYMULTIRANGEOID | pg_sys::RECORDOID);
    !holds_others && !is_family_of_user(family) && !is_of_user(function)
}
