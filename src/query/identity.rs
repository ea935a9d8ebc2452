//! The identity of a rewritten query tree: two hashes, from one walk that reads no catalog, but for the functions
//! behind operators of a view that are asked about the time.
//!
//! The *form* is all of the tree but the values of its constants. Whether a query is eligible follows from the form and
//! the definitions in the catalogs; a query that reads a setting by a constant name is the one exception, and counts as
//! a form of its own; whether constants that become timestamps have words for the present time (`constant_texts`) is
//! part of the form. What was found out about one query therefore holds for all others of its form, until a definition
//! changes (`lookup`). What its plan reads does not follow from the form: constants decide which parts the planner
//! drops.
//!
//! The *tree* has the values as well, and goes into the key. It stands for the question, so the walk adds all fields
//! that the executor or the client could see: names of columns in the answer are among them, places in the text and
//! names that only EXPLAIN shows are not. A parse that raced with DDL does no harm: relations and views are protected
//! by their locks, and whatever else a stale catalog could have resolved differently (functions, operators, collations,
//! types, constants, numbers and names of attributes) gives another hash, so the answer is stored under the question
//! that was asked.
//!
//! The walk notes the query's clock expressions on its way (`clock`), so that they need no walk of their own.
//!
//! A node of a kind that is not known here stops the walk, and the query is not cached.

mod expressions_and_clauses;
mod hasher;

use std::cell::Cell;
use std::ffi::c_void;

use arrow_cache_core::{HashBuffer, Reason};
use pgrx::pg_sys::{self, NodeTag};

use super::clock::{ClockExpressions, ClockTrees, asks_for_time, has_dates, reads_time};
use super::function_table::has;
use super::function_table::properties::FROM_TODAY;
use super::handed_times::may_hand_on;
use super::hashes::{FormHash, TreeHash};
use super::name_resolution;
use super::unused_columns::is_unused;
use crate::pg::backend::WalkDepth;
use crate::pg::backend_local::Local;
use crate::pg::compat::tree::walkers;
use crate::pg::tree::{Tree, child, children, match_node};
pub use hasher::CURRENT_SETTING;
use hasher::{END, NOTHING, TreeHasher};

/// What a query is.
pub struct Identity {
    /// All but the values of constants.
    pub form: FormHash,
    /// All, values of constants included.
    pub tree: TreeHash,
    /// It calls functions that are not the server's own.
    pub calls_users: bool,
    /// A query without FROM hands times on to the one around it (`handed_times`).
    pub hands_times_on: bool,
    /// Whether it is eligible depends on values of constants: its form has them.
    pub reads_constants: bool,
    /// Its clock expressions.
    clock: ClockExpressions,
}

/// What a query is, with trees for its clock expressions. Plain data, so that an error may jump over it.
#[derive(Clone, Copy)]
pub struct Identified {
    /// All but the values of constants.
    pub form: FormHash,
    /// All, values of constants included.
    pub tree: TreeHash,
    /// The clock expressions.
    pub clock: ClockTrees,
}

/// Memory of the last walk, for the next one. Taken while it is in use.
static BUFFERS: Local<Cell<[HashBuffer; 2]>> = Local::new(Cell::new([const { HashBuffer::new() }; 2]));
/// What is kept of it at most, in bytes.
const KEPT: usize = 64 * 1024;

/// The identity of a query, or of an expression that belongs to none, under a secret.
///
/// # Errors
/// `TooComplex` for one that nests too deeply, or that has a node of a kind that is not known here; `OutOfMemory` for
/// one that there is no memory for.
pub fn of(node: Tree<'_, pg_sys::Node>, seed: u64) -> Result<Identity, Reason> {
    let here = 0u8;
    let mut buffers = BUFFERS.take();
    for buffer in &mut buffers {
        buffer.clear();
        buffer.seed(seed);
    }
    let mut hasher = TreeHasher::new(buffers, WalkDepth::from(&here));
    hasher.node(Some(node));
    let TreeHasher {
        form: mut shape,
        mut constants,
        reads_constants,
        too_complex,
        calls_users,
        hands_times_on,
        clock,
        ..
    } = hasher;
    shape.u8(u8::from(reads_constants));
    if reads_constants {
        shape.append(&constants);
    }
    let form = FormHash(shape.finish());
    constants.hash(form.0);
    let tree = TreeHash(constants.finish());
    let is_complete = shape.is_complete() && constants.is_complete();
    if shape.len() <= KEPT && constants.len() <= KEPT {
        BUFFERS.set([shape, constants]);
    }
    if too_complex {
        return Err(Reason::TooComplex);
    }
    let identity = Identity { form, tree, calls_users, hands_times_on, reads_constants, clock };
    if is_complete { Ok(identity) } else { Err(Reason::OutOfMemory) }
}

impl Identity {
    /// The identity under the present way of resolving names: what is found out about a query that calls functions of
    /// users holds for that way alone, since names in their bodies may stand for something else under another.
    ///
    /// # Errors
    /// As `name_resolution::hash`.
    pub fn under_present_names(mut self, seed: u64) -> Result<Self, Reason> {
        if self.calls_users {
            let mut form = HashBuffer::new();
            form.hash(self.form.0);
            form.hash(name_resolution::hash(seed)?.0);
            self.form = FormHash(form.finish());
        }
        Ok(self)
    }

    /// What the query is, with trees for its clock expressions.
    ///
    /// # Errors
    /// `TooComplex` for more clock expressions than are kept.
    pub fn into_identified(self) -> Result<Identified, Reason> {
        let clock = ClockTrees::of(&self.clock).ok_or(Reason::TooComplex)?;
        Ok(Identified { form: self.form, tree: self.tree, clock })
    }
}

/// Called by the server's walkers for each part of a node that they take apart.
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, hasher: *mut c_void) -> bool {
    // SAFETY: the context is the hasher that `parts_of` or `query_and_below` passed, lent to nobody else while the
    // walker calls; the node is null or part of the tree that `of` was given.
    unsafe { (*hasher.cast::<TreeHasher>()).node(Tree::enter(node)) }
}

/// The walk. Each function returns true to stop it.
impl TreeHasher {
    /// Adds a node and all below it.
    fn node(&mut self, node: Option<Tree<'_, pg_sys::Node>>) -> bool {
        let here = 0u8;
        let Some(node) = node else {
            self.form.u32(NOTHING);
            return false;
        };
        if self.depth.is_passed(&here) {
            return self.stop();
        }
        self.form.u32(node.tag() as u32);
        match_node! { node;
            List(list) => {
                self.form.u32(list.length() as u32);
                list.items().any(|item| self.node(item))
            },
            Var(var) => {
                self.var(&var);
                false
            },
            Const(constant) => {
                self.constant(constant);
                false
            },
            RangeTblRef(reference) => {
                self.form.u32(reference.rtindex as u32);
                false
            },
            TargetEntry(target) => self.target_and_below(target),
            FromExpr(from) => self.list(child!(from.fromlist)) || self.node(child!(from.quals)),
            OpExpr | T_DistinctExpr | T_NullIfExpr (operator) => {
                self.oids([operator.opno, operator.opresulttype, operator.opcollid, operator.inputcollid]);
                self.arguments(node, child!(operator.args), false)
            },
            FuncExpr(call) => {
                self.call(call);
                if has(call.funcid, FROM_TODAY) {
                    self.clock.note_day();
                }
                self.arguments(node, child!(call.args), asks_for_time(call.funcid))
            },
            BoolExpr(expression) => {
                self.form.u32(expression.boolop);
                self.list(child!(expression.args))
            },
            SortGroupClause(clause) => {
                self.sorting(&clause);
                false
            },
            RangeTblEntry(entry) => {
                // The walker of the query descends into it by itself, right after this.
                self.range_table_entry(entry);
                false
            },
            Query(query) => self.query_and_below(query),
            _ => self.other_node(node),
        }
    }

    /// Adds the arguments of a call, which is a clock expression if it asks for the time, or may be one with those that
    /// do.
    #[inline]
    fn arguments(
        &mut self,
        call: Tree<'_, pg_sys::Node>,
        arguments: Option<Tree<'_, pg_sys::List>>,
        asks_for_time: bool,
    ) -> bool {
        let before = self.clock.count();
        let stopped = self.list(arguments);
        if self.clock.count() != before || asks_for_time {
            self.clock.leave(call, before);
            if let Some(operator) = call.as_a::<pg_sys::OpExpr>() {
                self.clock.compare(operator, before, &self.queries);
            }
        }
        stopped
    }

    /// Adds a column. What asks for the time in one that nothing uses is no clock expression.
    #[inline]
    fn target_and_below(&mut self, target: Tree<'_, pg_sys::TargetEntry>) -> bool {
        self.target(target);
        let before = self.clock.mark();
        let stopped = self.node(child!(target.expr).map(Tree::as_node));
        if self.clock.mark() != before {
            let queries = self.queries;
            if is_unused(target, queries) {
                self.clock.go_back(before);
            } else if let (Some(query), Some(around)) = (queries.innermost(), queries.above(1).innermost()) {
                self.hands_times_on |= may_hand_on(query, around);
            }
        }
        stopped
    }

    fn list(&mut self, list: Option<Tree<'_, pg_sys::List>>) -> bool {
        self.node(list.map(Tree::as_node))
    }

    /// Adds a node of a kind that does not stand in most queries: what it says by itself, then what is below it.
    fn other_node(&mut self, node: Tree<'_, pg_sys::Node>) -> bool {
        match node.tag() {
            NodeTag::T_MinMaxExpr => {
                self.add_call(node);
                return self.above_clock(node, false);
            }
            NodeTag::T_SQLValueFunction => {
                self.add_call(node);
                self.clock.leave(node, self.clock.count());
            }
            NodeTag::T_CoerceViaIO
            | NodeTag::T_CoalesceExpr
            | NodeTag::T_RelabelType
            | NodeTag::T_CollateExpr
            | NodeTag::T_SubLink => return self.coercion(node),
            NodeTag::T_SetOperationStmt | NodeTag::T_GroupingSet | NodeTag::T_IntList | NodeTag::T_OidList => {
                return self.unwalked(node);
            }
            _ => self.add_expression(node),
        }
        self.too_complex || self.parts_of(node)
    }

    /// Adds a coercion, a choice or a sub-query for a value, which may be part of a clock expression.
    fn coercion(&mut self, node: Tree<'_, pg_sys::Node>) -> bool {
        self.add_expression(node);
        let read = node.as_a::<pg_sys::CoerceViaIO>().map(|coercion| coercion.resulttype);
        let stopped = self.above_clock(node, read.is_some_and(reads_time));
        if read.is_some_and(has_dates) {
            self.clock.note_day();
        }
        stopped
    }

    /// Adds what is below a node, which may be one clock expression with what is found there, or by itself if it may
    /// ask for the time.
    fn above_clock(&mut self, node: Tree<'_, pg_sys::Node>, may_ask_for_time: bool) -> bool {
        let before = self.clock.count();
        let stopped = self.too_complex || self.parts_of(node);
        if self.clock.count() != before || may_ask_for_time {
            self.clock.leave(node, before);
        }
        stopped
    }

    /// Adds a node of a kind that the server's walker does not know, or does not take apart whole.
    fn unwalked(&mut self, node: Tree<'_, pg_sys::Node>) -> bool {
        match_node! { node;
            SetOperationStmt(operation) => {
                self.add_clause(node);
                children!(operation.groupClauses as Node).any(|clause| self.node(Some(clause))) || self.parts_of(node)
            },
            GroupingSet(set) => {
                // Numbers, or sets inside this one.
                self.add_clause(node);
                self.list(child!(set.content))
            },
            List | T_IntList | T_OidList (list) => {
                // A bare list of numbers or OIDs has nothing below it.
                self.integers(list.numbers());
                self.form.u32(END);
                false
            },
            _ => self.stop(),
        }
    }

    /// Adds what the server's walker finds below a node.
    fn parts_of(&mut self, node: Tree<'_, pg_sys::Node>) -> bool {
        let context = (&raw mut *self).cast();
        // SAFETY: a valid node that the server's walker knows; what it calls gets this hasher back.
        let stopped = unsafe { direct!(walkers::expression_tree_walker(node.as_ptr(), Some(visit), context)) };
        if !stopped {
            self.form.u32(END);
        }
        stopped
    }

    fn query_and_below(&mut self, query: Tree<'_, pg_sys::Query>) -> bool {
        let around = self.queries;
        // SAFETY: the walk is over before the tree is gone.
        self.queries = unsafe { Tree::enter(query.as_ptr()) }.map_or(around, |query| around.within(query));
        let stopped = self.parts_of_query(query);
        self.queries = around;
        stopped
    }

    fn parts_of_query(&mut self, query: Tree<'_, pg_sys::Query>) -> bool {
        self.query(query);
        if self.list(child!(query.groupingSets)) {
            return true;
        }
        let flags = (pg_sys::QTW_EXAMINE_RTES_BEFORE | pg_sys::QTW_EXAMINE_SORTGROUP) as i32;
        let context = (&raw mut *self).cast();
        // SAFETY: a valid query; what the walker calls, for each part and for null ones, gets this hasher back.
        let stopped = unsafe { direct!(walkers::query_tree_walker(query.as_ptr(), Some(visit), context, flags)) };
        if !stopped {
            self.form.u32(END);
        }
        stopped
    }
}
