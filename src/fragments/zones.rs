//! The parts of a plain table: one for each of its zones, ranges of blocks of equal size. A zone is a value that
//! writers note as they do those of columns (R10), so a change outdates the parts of those zones alone where rows were
//! before and after it.
//!
//! A zone is read by a scan of its blocks. If so many zones are to be read that it is quicker, the whole table is read
//! once instead, by other processes as well, and its rows are grouped by the zone. Keeps nothing.

use std::ffi::CStr;

use arrow_cache_core::versions::zones::{Zones, size_for, size_of_zones, zones_of};
use arrow_cache_core::{TrackedColumns, Wish};
use pgrx::pg_sys::{self, NodeTag};

use super::part_plan;
use super::recipe::ZoneParts;
use super::split_aggregates::merge_states;
use super::zone_stats::Telling;
use crate::invalidation::known_as::rows_of;
use crate::invalidation::registration;
use crate::lookup::Call;
use crate::pg::backend;
use crate::pg::catalog_row::CatalogRow;
use crate::pg::compat::may_execute;
use crate::pg::function_call::FunctionCall;
use crate::pg::lists::{node_at, nodes};
use crate::pg::object_ids::C_LANGUAGE;
use crate::pg::privileges::current_role;
use crate::pg::server;
use crate::pg::sql_function::sql_function;
use crate::pg::tree::{Tree, child};
use crate::pg::tree_making::copy;
use crate::pg::tree_search::entry_at;
use crate::query::decomposition::{NOT_BEFORE, Part, start_of};
use crate::query::opened_relations::plans_of;
use crate::settings;
use crate::shmem::SharedStore;

/// The most zones of a table, if it has not grown. Looking one up takes about 2 µs, and reading one at most a
/// five-hundredth of what reading the table takes.
const MOST_ZONES: u32 = 1024;
/// A table that has grown to so many times as many gets larger ones.
const GROWTH: u32 = 4;
/// The fewest blocks of a zone, by its binary logarithm: reading one takes longer than all that is done for it.
const LEAST_SIZE: u32 = 5;
/// See `group_size`. There are about as many groups in a table as zones in a group.
const GROUP_ZONES: u64 = 32;
/// Most zones that have a part together, since there are many groups of rows in each; and in a grain, in which there
/// are more.
const MOST_TOGETHER: u64 = 8;
const MOST_IN_GRAIN: u64 = 64;
/// So many rows should be in each group of rows of a part: computing all parts takes little longer than the answer. In
/// a grain fewer, since a part is computed for all who ask after a change: groups of parts are what has few rows.
const ROWS_OF_GROUP: f64 = 100.0;
const ROWS_IN_GRAIN: f64 = 10.0;
/// If there are fewer, parts have about as many rows as the table.
const LEAST_OF_GROUP: f64 = 5.0;
/// So many times as long as the answer may computing all parts take, by the costs of the planner.
const MOST_TIMES: f64 = 3.0;
/// The name of the tuplestore that the rows of zones lie in which are made one part.
pub const ZONES_NAME: &CStr = c"arrow_cache_zones";
/// The fewest blocks of a table with zones: 64 MB.
const LEAST_BLOCKS: u32 = 8192;

/// The fewest blocks that a table must have.
pub fn least_blocks() -> u32 {
    if settings::debug_force_fragments() { 1 } else { LEAST_BLOCKS }
}

/// How many blocks a table has now.
///
/// # Safety
/// The table must be locked.
pub unsafe fn blocks_of(relation: pg_sys::Oid) -> u32 {
    // SAFETY: the caller's promise.
    unsafe {
        let open = kept!(pg_sys::relation_open(relation, pg_sys::NoLock as _));
        let blocks = kept!(pg_sys::RelationGetNumberOfBlocksInFork(open, pg_sys::ForkNumber::MAIN_FORKNUM));
        kept!(pg_sys::relation_close(open, pg_sys::NoLock as _));
        blocks
    }
}

/// Tells SERIALIZABLE transactions that a table is read, as a sequential scan does. TID range scans tell nothing.
///
/// # Safety
/// The table must be locked, and the snapshot be that of the statement that reads it.
unsafe fn tell_of_reading(relation: pg_sys::Oid, snapshot: pg_sys::Snapshot) {
    // SAFETY: the caller's promise.
    unsafe {
        let open = kept!(pg_sys::relation_open(relation, pg_sys::NoLock as _));
        kept!(server::PredicateLockRelation(open, snapshot));
        kept!(pg_sys::relation_close(open, pg_sys::NoLock as _));
    }
}

/// So many parts that follow each other are a group, if each is of so many zones. A power of two.
pub fn group_size(unit: u64) -> u64 {
    let zones = if settings::debug_force_fragments() { 4 } else { GROUP_ZONES };
    (zones / unit).max(2)
}

/// How the parts of a table's zones are computed; `None` if they cannot be, or the server would not read the whole
/// table. `without`: the part without the grain, if it is in one, since that is what the server would read.
pub fn plan(store: &SharedStore, part: &Part, without: Option<&Part>, call: &Call<'_>) -> Option<ZoneParts> {
    // The server refuses unlogged tables, which have no file in recovery, only when it plans.
    if !settings::precise_invalidation() || !registration::can_be_tracked(part.relation.to_u32()) {
        return None;
    }
    let function = function()?;
    // SAFETY: a table of the query that is planned.
    let blocks = unsafe { blocks_of(part.relation) };
    if blocks < least_blocks() {
        return None;
    }
    let column = zones_for(store, part.relation, blocks);
    let size = size_of_zones(column)?;
    let parts_of = |zones: u64| Zones::of_table(column, blocks).count.div_ceil(zones);
    let one_of = |unit: u64| {
        let _telling = Telling::of(part.relation, parts_of(unit), false);
        part_plan::make(call, || part.of_blocks(Zones { column, first: 0, count: unit }.blocks()).ok())
    };
    let mut one = one_of(1)?;
    // SAFETY: a plan just made.
    let unit = unsafe { unit_of(one, part.relation, without.is_some()) };
    if unit > 1 {
        one = one_of(unit)?;
    }
    // SAFETY: as above.
    if unsafe { rows_of_group(one, part.relation) } < LEAST_OF_GROUP && !settings::debug_force_fragments() {
        return None;
    }
    let all_of = |zones: u64| {
        let _telling = Telling::of(part.relation, parts_of(zones), true);
        part_plan::make(call, || part.of_all_zones((function, size + zones.ilog2())).ok())
    };
    let (all, groups) = (all_of(unit)?, all_of(unit * group_size(unit))?);
    let whole = part_plan::make(call, || without.unwrap_or(part).of_leaf(part.relation).ok())?;
    // SAFETY: plans just made.
    let is_worth = unsafe {
        let scans_by = |plan, tag| scan_of(plan, part.relation).is_some_and(|scan| (*scan).type_ == tag);
        let [of_all, of_one, of_whole] = [all, one, whole].map(|plan| (*(*plan).planTree).total_cost);
        let of_parts = of_all.min(of_one * parts_of(unit) as f64);
        scans_by(whole, NodeTag::T_SeqScan)
            && scans_by(all, NodeTag::T_SeqScan)
            && scans_by(groups, NodeTag::T_SeqScan)
            && scans_by(one, NodeTag::T_TidRangeScan)
            && (settings::debug_force_fragments() || of_parts <= of_whole * MOST_TIMES)
    };
    let merging = part_plan::make(call, || Some(part.merging(ZONES_NAME)))?;
    // SAFETY: as above; nobody else knows the plan.
    unsafe { merge_states(merging) };
    (is_worth && are_tracked(store, part.relation, column)).then_some(ZoneParts {
        column,
        unit,
        all,
        groups,
        one,
        merging,
    })
}

/// How many zones should have a part together, by what the planner expects of one.
///
/// # Safety
/// A valid plan of one zone of the table.
unsafe fn unit_of(one: *mut pg_sys::PlannedStmt, relation: pg_sys::Oid, in_grain: bool) -> u64 {
    let (rows, most) = if in_grain { (ROWS_IN_GRAIN, MOST_IN_GRAIN) } else { (ROWS_OF_GROUP, MOST_TOGETHER) };
    // SAFETY: the caller's promise.
    let wanted = rows / unsafe { rows_of_group(one, relation) };
    (wanted as u64).clamp(1, most).next_power_of_two()
}

/// How many rows of the table the planner expects in each row of a part.
///
/// # Safety
/// A valid plan of a part of the table.
unsafe fn rows_of_group(one: *mut pg_sys::PlannedStmt, relation: pg_sys::Oid) -> f64 {
    // SAFETY: the caller's promise.
    unsafe {
        let rows = scan_of(one, relation).map_or(1.0, |scan| (*scan).plan_rows);
        rows.max(1.0) / (*(*one).planTree).plan_rows.max(1.0)
    }
}

/// The column that stands for the zones of a table with so many blocks: those that are tracked, or should be.
fn zones_for(store: &SharedStore, relation: pg_sys::Oid, blocks: u32) -> i16 {
    let rows = rows_of(relation.to_u32());
    let columns = rows.and_then(|rows| store.registry().columns_of(backend::database(), rows));
    let (most, least) = if settings::debug_force_fragments() { (16, 0) } else { (MOST_ZONES, LEAST_SIZE) };
    columns.and_then(|columns| fitting(&columns, blocks)).unwrap_or_else(|| zones_of(size_for(blocks, most, least)))
}

/// Returns true if writers note these zones of a table, from now on.
fn are_tracked(store: &SharedStore, relation: pg_sys::Oid, column: i16) -> bool {
    let (database, relation) = (backend::database(), relation.to_u32());
    let columns = rows_of(relation).and_then(|rows| store.registry().settled_columns_of(database, rows));
    let is_known = columns.is_some_and(|columns| columns.has(column));
    is_known || registration::take_in(store, &Wish { database, relation, column, set: 0 })
}

/// The smallest zones of which a table with so many blocks does not have too many.
fn fitting(columns: &TrackedColumns, blocks: u32) -> Option<i16> {
    let fits = |column: &i16| {
        size_of_zones(*column).is_some_and(|size| blocks >> size <= MOST_ZONES * GROWTH && 1 << size <= blocks.max(1))
    };
    columns.iter().filter(fits).min()
}

/// Returns true if a plan reads a table by a sequential scan.
pub fn is_read_whole(plan: Tree<'_, pg_sys::PlannedStmt>, relation: pg_sys::Oid) -> bool {
    // SAFETY: a valid plan.
    unsafe { scan_of(plan.as_ptr(), relation).is_some_and(|scan| (*scan).type_ == NodeTag::T_SeqScan) }
}

/// The scan of a relation in a plan, if there is one.
///
/// # Safety
/// A valid plan.
pub unsafe fn scan_of(plan: *mut pg_sys::PlannedStmt, relation: pg_sys::Oid) -> Option<*mut pg_sys::Plan> {
    // SAFETY: the caller's promise.
    let plan = unsafe { Tree::enter(plan) }?;
    let mut waiting: Vec<_> = child!(plan.planTree).into_iter().collect();
    while let Some(node) = waiting.pop() {
        if let Some(scanned) = scanned_by(node)
            && entry_at(child!(plan.rtable), scanned as i32).is_some_and(|entry| entry.relid == relation)
        {
            return Some(node.as_ptr());
        }
        let below = match node.as_node().as_a::<pg_sys::Append>() {
            Some(append) => child!(append.appendplans),
            None => None,
        };
        let of_query = node.as_node().as_a::<pg_sys::SubqueryScan>().and_then(|scan| child!(scan.subplan));
        let sides = [child!(node.lefttree), child!(node.righttree), of_query];
        waiting.extend(sides.into_iter().flatten().chain(plans_of(below)));
    }
    None
}

/// The place in the range table of the relation that a node scans.
fn scanned_by(node: Tree<'_, pg_sys::Plan>) -> Option<u32> {
    let tag = node.as_node().tag();
    let is_scan = matches!(
        tag,
        NodeTag::T_SeqScan
            | NodeTag::T_IndexScan
            | NodeTag::T_IndexOnlyScan
            | NodeTag::T_BitmapHeapScan
            | NodeTag::T_TidScan
            | NodeTag::T_TidRangeScan
    );
    // SAFETY: all scans begin alike.
    is_scan.then(|| unsafe { (*node.as_ptr().cast::<pg_sys::Scan>()).scanrelid })
}

/// A copy of the plan of one zone that reads others, in the current memory context. It is about to be run under a
/// snapshot.
///
/// # Safety
/// A plan of `ZoneParts::one` for the table, which the statement has locked, and the snapshot of the statement.
pub unsafe fn of_zones(
    plan: *const pg_sys::PlannedStmt,
    relation: pg_sys::Oid,
    zones: Zones,
    snapshot: pg_sys::Snapshot,
) -> Option<*mut pg_sys::PlannedStmt> {
    let blocks = zones.blocks();
    // SAFETY: the caller's promise; nobody else knows the copy.
    unsafe {
        tell_of_reading(relation, snapshot);
        let plan = copy(plan);
        let scan = scan_of(plan, relation)?.cast::<pg_sys::TidRangeScan>();
        for condition in nodes::<pg_sys::OpExpr>((*scan).tidrangequals) {
            let end: *mut pg_sys::Const = node_at((*condition).args, 1)?;
            let is_start = (*condition).opno.to_u32() == NOT_BEFORE;
            (*end).constvalue = start_of(if is_start { blocks.start } else { blocks.end });
        }
        Some(plan)
    }
}

/// `arrow_cache.zone`: the number of the zone in which a place lies.
fn zone(call: FunctionCall<'_>) -> Option<i32> {
    let (place, size) = (call.argument(0)?, call.argument(1)?);
    let place = place.word() as *const pg_sys::ItemPointerData;
    // SAFETY: the first argument is a place.
    let block = unsafe { (*place).ip_blkid };
    let block = u32::from(block.bi_hi) << 16 | u32::from(block.bi_lo);
    Some((block.unbounded_shr(size.word() as u32)).cast_signed())
}

sql_function!(zone, "arrow_cache_zone");

/// That function, if the database has the extension and the present role may call it.
pub fn function() -> Option<pg_sys::Oid> {
    // SAFETY: catalog searches by names; the arguments are a list of as many OIDs.
    unsafe {
        let schema = kept!(pg_sys::get_namespace_oid(c"arrow_cache".as_ptr(), true));
        let arguments = kept!(pg_sys::buildoidvector([pg_sys::TIDOID, pg_sys::INT4OID].as_ptr(), 2));
        let function = kept!(pg_sys::GetSysCacheOid(
            pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP as i32,
            pg_sys::Anum_pg_proc_oid as i16,
            pg_sys::Datum::from(c"zone".as_ptr()),
            pg_sys::Datum::from(arguments),
            pg_sys::Datum::from(schema),
            pg_sys::Datum::from(0)
        ));
        (function != pg_sys::InvalidOid && is_own(function) && may_execute(current_role(), function))
            .then_some(function)
    }
}

/// Returns true if a function is this one. Where the extension is not, anybody may make a function of its name. Only
/// superusers make functions in C.
fn is_own(function: pg_sys::Oid) -> bool {
    CatalogRow::find(pg_sys::SysCacheIdentifier::PROCOID, function).is_some_and(|row| {
        row.function().is_some_and(|form| form.prolang.to_u32() == C_LANGUAGE)
            && row.text(pg_sys::Anum_pg_proc_prosrc as i16) == Some(c"arrow_cache_zone")
    })
}
