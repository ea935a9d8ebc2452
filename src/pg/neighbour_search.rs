//! The value of a column that stands next to a time, on one side of it, among the rows that a snapshot sees: a query of
//! the server's, planned and run as any other, `SELECT at FROM t WHERE at < $1 ORDER BY at DESC LIMIT 1`. It asks for
//! no rights to tables, since nobody is shown the value. Keeps nothing.
//!
//! What is raised here is what any plan over the table may raise: it is cancelled, or a page cannot be read. It passes
//! unchanged.

use pgrx::pg_sys::{self, Datum, Oid, RTEKind};

use super::compat::{ask_for_no_rights, may_execute, order_clause, start_unshown};
use super::computing::Unshown;
use super::error_passing::keeping;
use super::own_execution;
use super::server;
use super::tree::{Tree, children};
use super::tree_making::{alias, copy, list_of, new_node};

/// A side of a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The values before it.
    Before,
    /// The time itself, and the values behind it.
    Behind,
}

/// A column of dates or timestamps, and the operators of the server that compare its values.
#[derive(Clone, Copy, Debug)]
pub struct TimeColumn {
    /// The table.
    pub table: Oid,
    /// The number of the column.
    pub number: i16,
    /// Its type, whose values are passed by value.
    pub type_oid: Oid,
    /// The length of its values.
    pub length: i32,
    /// `<`
    pub less: Oid,
    /// `>`
    pub greater: Oid,
    /// `>=`
    pub not_less: Oid,
    /// `=`
    pub equal: Oid,
}

/// A search that was planned. Lives in the memory context in which it was.
#[derive(Clone, Copy)]
pub struct Planned {
    plan: *mut pg_sys::PlannedStmt,
    params: pg_sys::ParamListInfo,
}

/// Plans the search for the value next to a time, in the current memory context. `conditions` name the table as the
/// first relation, and restrict what is searched. `None` if a foreign table would be read, or if the role may not
/// execute the comparisons of the column.
///
/// # Safety
/// A time of the type of the column, valid conditions, and null or valid parameters.
pub unsafe fn plan(
    column: &TimeColumn,
    time: Datum,
    side: Side,
    conditions: *mut pg_sys::List,
    params: pg_sys::ParamListInfo,
) -> Option<Planned> {
    let calls = [column.less, column.greater, column.not_less, column.equal];
    // SAFETY: reads a catalog about an operator of the server.
    let is_allowed = |one: Oid| unsafe { may_execute(server::GetUserId(), kept!(pg_sys::get_opcode(one))) };
    if !calls.into_iter().all(is_allowed) {
        return None;
    }
    // SAFETY: the caller's promise. A query like those of the parser.
    let plan = unsafe {
        let query = query(column, time, side, conditions);
        let plan = kept!(server::standard_planner(query, c"".as_ptr(), 0, params));
        Tree::enter(plan)?
    };
    let is_foreign = |entry: Tree<'_, pg_sys::RangeTblEntry>| entry.relkind as u8 == pg_sys::RELKIND_FOREIGN_TABLE;
    let reads_foreign = children!(plan.rtable as RangeTblEntry).any(is_foreign);
    (!reads_foreign).then_some(Planned { plan: plan.as_ptr(), params })
}

/// The query of a search.
///
/// # Safety
/// As `plan`.
unsafe fn query(column: &TimeColumn, time: Datum, side: Side, conditions: *mut pg_sys::List) -> *mut pg_sys::Query {
    const RELATION: i32 = 1;
    let none = pg_sys::InvalidOid;
    let (type_oid, length) = (column.type_oid, column.length);
    let (compares, sorts) =
        if side == Side::Before { (column.less, column.greater) } else { (column.not_less, column.less) };
    // SAFETY: new nodes, of which each stands in one place; the caller's promise.
    unsafe {
        let entry = new_node::<pg_sys::RangeTblEntry>();
        (*entry).rtekind = RTEKind::RTE_RELATION;
        (*entry).relid = column.table;
        (*entry).relkind = kept!(pg_sys::get_rel_relkind(column.table));
        (*entry).rellockmode = pg_sys::AccessShareLock as i32;
        (*entry).inh = true;
        (*entry).inFromCl = true;
        (*entry).eref = alias(c"searched", []);
        let named = || -> *mut pg_sys::Expr {
            kept!(pg_sys::makeVar(RELATION as _, column.number, type_oid, -1, none, 0)).cast()
        };
        let time = kept!(pg_sys::makeConst(type_oid, -1, none, length, time, false, true));
        let condition =
            kept!(pg_sys::make_opclause(compares, pg_sys::BOOLOID, false, named(), time.cast(), none, none));
        let all = kept!(pg_sys::list_concat(copy(conditions), list_of([condition])));
        let reference = new_node::<pg_sys::RangeTblRef>();
        (*reference).rtindex = RELATION;
        let target = kept!(pg_sys::makeTargetEntry(named(), 1, std::ptr::null_mut(), false));
        (*target).ressortgroupref = 1;
        let (from, where_) = (list_of([reference]), kept!(pg_sys::make_ands_explicit(all)));
        let query = new_node::<pg_sys::Query>();
        (*query).commandType = pg_sys::CmdType::CMD_SELECT;
        (*query).canSetTag = true;
        (*query).rtable = list_of([entry]);
        ask_for_no_rights(query, entry);
        (*query).jointree = kept!(pg_sys::makeFromExpr(from, where_.cast()));
        (*query).targetList = list_of([target]);
        (*query).sortClause = list_of([order_clause(1, column.equal, sorts, side == Side::Before)]);
        (*query).limitOption = pg_sys::LimitOption::LIMIT_OPTION_COUNT;
        let one = kept!(pg_sys::makeConst(pg_sys::INT8OID, -1, none, 8, Datum::from(1i64), false, true));
        (*query).limitCount = one.cast();
        query
    }
}

impl Planned {
    /// What the planner takes the search to cost.
    pub fn cost(&self) -> f64 {
        // SAFETY: a plan that was just made has a tree.
        unsafe { (*(*self.plan).planTree).total_cost }
    }

    /// Runs it. `None` if there is no row on that side.
    ///
    /// # Safety
    /// It must still be in memory; an MVCC snapshot that is registered or active.
    pub unsafe fn value(&self, snapshot: *const pg_sys::SnapshotData) -> Option<Datum> {
        let (plan, params, none) = (self.plan, self.params, std::ptr::null_mut());
        let _unshown = Unshown::new();
        // SAFETY: the frames below have no destructors. What is open when something is raised is closed by the server.
        let (found, value) = unsafe {
            keeping(|| {
                let (text, receiver) = (c"".as_ptr(), pg_sys::None_Receiver);
                let snapshot = snapshot.cast_mut();
                let desc =
                    direct!(pg_sys::CreateQueryDesc(plan, text, snapshot, none, receiver, params, none.cast(), 0));
                start_unshown(desc, 0);
                let caller = pg_sys::MemoryContextSwitchTo((*(*desc).estate).es_query_cxt);
                let slot = own_execution::next(desc, pg_sys::ScanDirection::ForwardScanDirection);
                let found = !slot.is_null();
                let value = if found { *(*slot).tts_values } else { Datum::null() };
                pg_sys::MemoryContextSwitchTo(caller);
                own_execution::end(desc);
                (found, value)
            })
        };
        found.then_some(value)
    }
}
