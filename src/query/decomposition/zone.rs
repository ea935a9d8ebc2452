//! A part's query, asked of some blocks of the table (a zone), or of all zones at once. Rows are told apart by their
//! `ctid`, which each version of a row has for as long as it is there.

use pgrx::pg_sys::{self, RTEKind};

use super::obstacle::{NO_TABLE, Obstacle};
use crate::pg::lists::nodes;
use crate::pg::tree_making::{list_of, new_node};

/// The operators `>=` and `<` of `tid` (pg_operator.dat).
pub const NOT_BEFORE: u32 = 2802;
const BEFORE: u32 = 2799;

/// The level of a query, or of a sub-query in its FROM, that reads the table, and the number of the table there.
///
/// # Safety
/// A valid query.
unsafe fn place_of(query: *mut pg_sys::Query, table: pg_sys::Oid) -> Option<(*mut pg_sys::Query, i32)> {
    // SAFETY: the caller's promise.
    unsafe {
        nodes::<pg_sys::RangeTblEntry>((*query).rtable).zip(1..).find_map(|(entry, number)| match (*entry).rtekind {
            RTEKind::RTE_RELATION => ((*entry).relid == table).then_some((query, number)),
            RTEKind::RTE_SUBQUERY if !(*entry).subquery.is_null() => place_of((*entry).subquery, table),
            _ => None,
        })
    }
}

/// The place of a row among those of a relation of a query level.
fn ctid_of(number: i32) -> *mut pg_sys::Node {
    let (column, none) = (pg_sys::SelfItemPointerAttributeNumber as i16, pg_sys::InvalidOid);
    // SAFETY: a new node.
    unsafe { kept!(pg_sys::makeVar(number as _, column, pg_sys::TIDOID, -1, none, 0)).cast() }
}

/// The place before the first row of a block, as a datum in the current memory context.
pub fn start_of(block: u32) -> pg_sys::Datum {
    // SAFETY: room for what is written.
    unsafe {
        let place: *mut pg_sys::ItemPointerData = kept!(pg_sys::palloc(size_of::<pg_sys::ItemPointerData>())).cast();
        let block = pg_sys::BlockIdData { bi_hi: (block >> 16) as u16, bi_lo: block as u16 };
        place.write(pg_sys::ItemPointerData { ip_blkid: block, ip_posid: 0 });
        pg_sys::Datum::from(place)
    }
}

/// Lets a query read the rows of the table that lie in these blocks alone.
///
/// # Errors
/// The query does not read the table.
///
/// # Safety
/// A valid query that the caller may change, and that reads the table once.
pub(super) unsafe fn read_blocks(
    query: *mut pg_sys::Query,
    table: pg_sys::Oid,
    blocks: std::ops::Range<u32>,
) -> Result<(), Obstacle> {
    let none = pg_sys::InvalidOid;
    // SAFETY: the caller's promise; new nodes.
    unsafe {
        let (level, number) = place_of(query, table).ok_or(NO_TABLE)?;
        for (operator, block) in [(NOT_BEFORE, blocks.start), (BEFORE, blocks.end)] {
            let length = size_of::<pg_sys::ItemPointerData>();
            let end = kept!(pg_sys::makeConst(pg_sys::TIDOID, -1, none, length as i32, start_of(block), false, false));
            let condition = kept!(pg_sys::make_opclause(
                operator.into(),
                pg_sys::BOOLOID,
                false,
                ctid_of(number).cast(),
                end.cast(),
                none,
                none
            ));
            let quals = &raw mut (*(*level).jointree).quals;
            let all = kept!(pg_sys::lappend(kept!(pg_sys::make_ands_implicit((*quals).cast())), condition.cast()));
            *quals = kept!(pg_sys::make_ands_explicit(all)).cast();
        }
    }
    Ok(())
}

/// Lets a query that groups, or aggregates, do so within each zone of the table. The number of the zone is its last
/// column, and that by which its rows are sorted. `function` gives it for a `ctid` and the size of zones.
///
/// # Errors
/// The query does not read the table.
///
/// # Safety
/// A valid query that the caller may change, and that reads the table once; the function must take these and return
/// `int4`.
pub(super) unsafe fn group_by_zone(
    query: *mut pg_sys::Query,
    table: pg_sys::Oid,
    (function, size): (pg_sys::Oid, u32),
) -> Result<(), Obstacle> {
    let none = pg_sys::InvalidOid;
    // SAFETY: the caller's promise; new nodes.
    unsafe {
        let ctid = handed_on(query, table).ok_or(NO_TABLE)?;
        let size = pg_sys::Datum::from(size.cast_signed());
        let size = kept!(pg_sys::makeConst(pg_sys::INT4OID, -1, none, 4, size, false, true)).cast();
        let form = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
        let zone = kept!(pg_sys::makeFuncExpr(function, pg_sys::INT4OID, list_of([ctid, size]), none, none, form));
        let number = nodes::<pg_sys::TargetEntry>((*query).targetList).count() + 1;
        let target = added(&raw mut (*query).targetList, zone.cast());
        // No other target has it: the others have their own numbers.
        (*target).ressortgroupref = number as pg_sys::Index;
        let clause = new_node::<pg_sys::SortGroupClause>();
        (*clause).tleSortGroupRef = number as pg_sys::Index;
        let types = kept!(pg_sys::lookup_type_cache(
            pg_sys::INT4OID,
            (pg_sys::TYPECACHE_LT_OPR | pg_sys::TYPECACHE_EQ_OPR) as i32
        ));
        ((*clause).eqop, (*clause).sortop, (*clause).hashable) = ((*types).eq_opr, (*types).lt_opr, true);
        (*query).groupClause = kept!(pg_sys::lcons(clause.cast(), (*query).groupClause));
        (*query).sortClause = list_of([clause]);
    }
    Ok(())
}

/// The `ctid` of a row of the table as an expression of a query, which the sub-queries on the way hand on.
///
/// # Safety
/// As `group_by_zone`.
unsafe fn handed_on(query: *mut pg_sys::Query, table: pg_sys::Oid) -> Option<*mut pg_sys::Node> {
    let none = pg_sys::InvalidOid;
    // SAFETY: the caller's promise; new nodes.
    unsafe {
        nodes::<pg_sys::RangeTblEntry>((*query).rtable).zip(1..).find_map(|(entry, number)| match (*entry).rtekind {
            RTEKind::RTE_RELATION => ((*entry).relid == table).then(|| ctid_of(number)),
            RTEKind::RTE_SUBQUERY if !(*entry).subquery.is_null() => {
                let below = handed_on((*entry).subquery, table)?;
                let target = added(&raw mut (*(*entry).subquery).targetList, below);
                let names = &raw mut (*(*entry).eref).colnames;
                let name = kept!(pg_sys::makeString(kept!(pg_sys::pstrdup(c"place".as_ptr()))));
                *names = kept!(pg_sys::lappend(*names, name.cast()));
                let column = kept!(pg_sys::makeVar(number as _, (*target).resno, pg_sys::TIDOID, -1, none, 0));
                Some(column.cast())
            }
            _ => None,
        })
    }
}

/// Adds a target to a list.
///
/// # Safety
/// A list of targets, and a valid expression.
unsafe fn added(targets: *mut *mut pg_sys::List, expression: *mut pg_sys::Node) -> *mut pg_sys::TargetEntry {
    // SAFETY: the caller's promise; new nodes.
    unsafe {
        let number = nodes::<pg_sys::TargetEntry>(*targets).count() as i16 + 1;
        let name = kept!(pg_sys::pstrdup(c"zone".as_ptr()));
        let target = kept!(pg_sys::makeTargetEntry(expression.cast(), number, name, false));
        *targets = kept!(pg_sys::lappend(*targets, target.cast()));
        target
    }
}
