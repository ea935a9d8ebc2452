//! Which scans of a table give one row at most, because their conditions name all columns of a unique index. Reads
//! catalogs; keeps nothing.
//!
//! The index tells of the rows of a snapshot only if the snapshot sees who made it: an older snapshot may see rows that
//! were deleted before that.

use pgrx::pg_sys;

use crate::pg::catalog_row::CatalogRow;
use crate::pg::index_list::indexes_of;
use crate::pg::tree::{Tree, children};

/// A comparison of a column with a value that is the same for all rows.
struct Comparison {
    column: i16,
    operator: pg_sys::Oid,
    collation: pg_sys::Oid,
}

/// Types whose values are compared as values of one of them, where different ones stay different.
const CONVERTED_EXACTLY: [&[pg_sys::Oid]; 4] = [
    &[pg_sys::INT2OID, pg_sys::INT4OID, pg_sys::INT8OID],
    &[pg_sys::FLOAT4OID, pg_sys::FLOAT8OID],
    &[pg_sys::TEXTOID, pg_sys::NAMEOID],
    &[pg_sys::DATEOID, pg_sys::TIMESTAMPOID],
];

/// The key of a unique index, as far as it can prove something.
struct UniqueKey {
    columns: Vec<i16>,
    families: Vec<pg_sys::Oid>,
    collations: Vec<pg_sys::Oid>,
}

/// Do conditions on the columns of this index, which a scan searches for, find one row at most that the snapshot sees?
pub fn finds_one(index: pg_sys::Oid, conditions: *const pg_sys::List, snapshot: &pg_sys::SnapshotData) -> bool {
    let Some(key) = UniqueKey::of(index, snapshot) else { return false };
    // The columns of an index that is searched are numbered by their places in it.
    let places: Vec<i16> = (1..).take(key.columns.len()).collect();
    let searched: Vec<_> =
        expressions(conditions).filter_map(|one| Comparison::of(one, pg_sys::INDEX_VAR as u32)).collect();
    key.is_named_by(&places, &searched)
}

/// Returns true if these conditions, all of which a scan checks for each row, let one row of a table through at most
/// that the snapshot sees.
pub fn lets_one_through(
    table: pg_sys::Oid,
    place: u32,
    conditions: &[*const pg_sys::List],
    snapshot: &pg_sys::SnapshotData,
) -> bool {
    let compared: Vec<_> =
        conditions.iter().flat_map(|list| expressions(*list)).filter_map(|one| Comparison::of(one, place)).collect();
    !compared.is_empty()
        && unique_keys(table, snapshot)
            .iter()
            .any(|key| key.columns.iter().all(|column| *column > 0) && key.is_named_by(&key.columns, &compared))
}

fn expressions<'t>(list: *const pg_sys::List) -> impl Iterator<Item = Tree<'t, pg_sys::Node>> {
    // SAFETY: null, or a list of conditions of a plan, as the callers say.
    unsafe { Tree::enter(list) }.into_iter().flat_map(Tree::items).flatten()
}

/// The keys of the unique indexes of a table, which is open, that hold for the rows that the snapshot sees.
fn unique_keys(table: pg_sys::Oid, snapshot: &pg_sys::SnapshotData) -> Vec<UniqueKey> {
    indexes_of(table).into_iter().filter_map(|index| UniqueKey::of(index, snapshot)).collect()
}

impl UniqueKey {
    /// The key of an index that has all rows of its table, none of them twice at any moment since the snapshot.
    fn of(index: pg_sys::Oid, snapshot: &pg_sys::SnapshotData) -> Option<Self> {
        let row = CatalogRow::find(pg_sys::SysCacheIdentifier::INDEXRELID, index)?;
        let form = row.index()?;
        let proves = form.indisunique
            && form.indimmediate
            && form.indisvalid
            && form.indisready
            && form.indislive
            && !form.indisexclusion
            && is_btree(index)
            && row.is_null(pg_sys::Anum_pg_index_indpred as i16)
            && row.is_null(pg_sys::Anum_pg_index_indexprs as i16)
            && row.is_seen_by(snapshot);
        let length = usize::try_from(form.indnkeyatts).ok().filter(|_| proves)?;
        let families = row.oids(pg_sys::Anum_pg_index_indclass as i16)?.into_iter().take(length).map(family).collect();
        let mut columns = row.small_integers(pg_sys::Anum_pg_index_indkey as i16)?;
        columns.truncate(length);
        Some(Self { columns, families, collations: row.oids(pg_sys::Anum_pg_index_indcollation as i16)? })
    }

    /// Is each column equal to a value? `numbers` are the numbers by which the comparisons name the columns.
    fn is_named_by(&self, numbers: &[i16], comparisons: &[Comparison]) -> bool {
        numbers.len() == self.families.len()
            && self.collations.len() >= numbers.len()
            && numbers.iter().zip(&self.families).zip(&self.collations).all(|((number, family), collation)| {
                comparisons.iter().any(|one| one.column == *number && one.is_of(*family, *collation))
            })
    }
}

/// The family of an operator class.
fn family(class: pg_sys::Oid) -> pg_sys::Oid {
    // SAFETY: reads the catalogs about a class that an index names.
    unsafe { kept!(pg_sys::get_opclass_family(class)) }
}

/// Returns true if the index is a B-tree. Other kinds may be unique by something else than equality, such as keys WITHOUT OVERLAPS
/// (18).
pub fn is_btree(index: pg_sys::Oid) -> bool {
    CatalogRow::find(pg_sys::SysCacheIdentifier::RELOID, index)
        .is_some_and(|row| row.relation().is_some_and(|form| form.relam == pg_sys::BTREE_AM_OID))
}

impl Comparison {
    /// A condition as a comparison, if it compares a column of this place in the range table with a constant or a
    /// parameter.
    fn of(condition: Tree<'_, pg_sys::Node>, place: u32) -> Option<Self> {
        let comparison = condition.as_a::<pg_sys::OpExpr>()?;
        let mut arguments = children!(comparison.args as Node).map(Tree::without_relabelling);
        let (left, right) = (arguments.next()?, arguments.next()?);
        let is_value =
            |node: Tree<'_, pg_sys::Node>| matches!(node.tag(), pg_sys::NodeTag::T_Const | pg_sys::NodeTag::T_Param);
        let (var, operator) = if is_value(right) {
            (column_of(left, place)?, comparison.opno)
        } else if is_value(left) {
            // SAFETY: reads the catalogs about an operator of a plan.
            (column_of(right, place)?, unsafe { kept!(pg_sys::get_commutator(comparison.opno)) })
        } else {
            return None;
        };
        Some(Self { column: var.varattno, operator, collation: comparison.inputcollid })
    }

    /// Does it mean the equality of an index column of this family and collation?
    fn is_of(&self, family: pg_sys::Oid, collation: pg_sys::Oid) -> bool {
        // SAFETY: reads the catalogs about an operator and a family.
        let strategy = unsafe { kept!(pg_sys::get_op_opfamily_strategy(self.operator, family)) };
        strategy == pg_sys::BTEqualStrategyNumber as i32
            && (collation == pg_sys::InvalidOid || collation == self.collation)
            && self.is_equal_to_one()
    }

    /// Returns true if the value is equal to one value of the column at most. Not so across types where values are
    /// converted to others: 02:30 and 03:30 of the day when clocks go forward are one `timestamptz`, which is equal to
    /// both as a `timestamp`.
    fn is_equal_to_one(&self) -> bool {
        let (mut left, mut right) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
        // SAFETY: reads the catalogs about an operator of a plan that a family has.
        unsafe { kept!(pg_sys::op_input_types(self.operator, &raw mut left, &raw mut right)) };
        left == right || CONVERTED_EXACTLY.iter().any(|types| types.contains(&left) && types.contains(&right))
    }
}

/// A column of this place in the range table.
fn column_of<'t>(node: Tree<'t, pg_sys::Node>, place: u32) -> Option<Tree<'t, pg_sys::Var>> {
    node.as_a::<pg_sys::Var>().filter(|var| var.varno as u32 == place)
}
