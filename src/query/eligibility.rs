//! May the answer to a query be kept at all? Walks a rewritten query tree and finds the first reason not to. What it finds depends on the
//! query's form (`identity`) and the definitions in the catalogs alone, so it is done once for all queries of a form. A node of a kind that
//! is not known (`node_kinds`) is a reason too.

mod body_relations;
mod catalog_search;
mod checker;
mod coercions;
mod declared_functions;
mod failures;
mod join_columns;
mod kind_of_plan;
mod met_bodies;
mod node_kinds;
mod readings;
mod record_columns;
mod session_values;
mod set_operations;
mod sql_functions;

use std::ffi::c_void;

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::clock::{asks_for_time, counts_from_today, is_zero, makes_named_row};
use super::operator_families;
use super::ordering::{self, OrderedPrefix};
use super::repeatability;
use super::row_types_and_custom_settings::Extras;
use super::trusted_extensions::{self, is_trusted_function, is_trusted_operator};
use super::types::{Nature, nature};
use super::volatility::definition::{self, Definition};
use super::volatility::{self, FunctionVerdict};
use crate::pg::encoding;
use crate::pg::object_ids::FIRST_UNPINNED_OID;
use crate::pg::tree::{Tree, child, child_oids, children, match_node};
pub use checker::Blamed;
use checker::{ClockPlace, EligibilityChecker};
pub use declared_functions::{PURE, may_be_declared};
pub use failures::{expression_may_fail, node_may_fail};
pub use met_bodies::SqlBodies;
use node_kinds::{makes_a_type, names_collation, refusal_of, type_of};
use readings::lists_columns;
use session_values::SESSION_FUNCTIONS;

/// What an eligible query asks that its answer depends on.
#[derive(Clone, Copy, Debug)]
pub struct QueryTraits {
    /// Rows that are computed later may differ: they depend on settings, all of which are in the key, on who asks, or on
    /// definitions that no lock protects.
    pub reads_session: bool,
    /// Values of enums are in it, or may be.
    pub rests_on_enums: bool,
    /// What else the answer rests on.
    pub extras: Extras,
    /// What of the order of its rows is fixed. `None` if executing the query again may give other rows that are as right.
    pub repeatable: Option<OrderedPrefix>,
    /// Constants may decide which of the relations that it names its plan reads: it has sub-queries in expressions.
    pub may_drop_relations: bool,
    /// Computing it may raise an error, so that it shows which parts of it are computed.
    pub may_fail: bool,
    /// Its rows, or the types of its columns, may show whether it was planned for the values of its parameters.
    pub may_show_kind: bool,
    /// It has set operations.
    pub unites: bool,
    /// It calls aggregates, whose parts the server finds anew at each execution; or it converts enums to JSON, and the server looks for
    /// casts of them at each execution.
    pub aggregates: bool,
    /// How many clock expressions it has (`clock`).
    pub clocks: usize,
    /// Executing it may garble text if the client has another encoding than the database.
    pub receives_text: bool,
    /// It calls functions of users, which are written in SQL.
    pub bodies: Option<SqlBodies>,
    /// Some extensions were trusted when it was checked.
    pub trusts: bool,
}

impl QueryTraits {
    /// May executing the query in this session garble text? Then no answer of it is of use to others.
    pub fn may_garble_text(&self) -> bool {
        self.receives_text && encoding::client_differs()
    }

    /// Does it call functions that are declared pure, whose queries are seen when they run?
    pub fn calls_declared(&self) -> bool {
        self.bodies.is_some_and(|bodies| bodies.are_declared)
    }

    /// Does what it means rest on how names in bodies of functions are resolved?
    pub fn resolves_names(&self) -> bool {
        self.bodies.is_some_and(|bodies| bodies.by_name)
    }
}

/// What in a query is to blame for a refusal.
#[derive(Clone, Copy, Debug)]
pub enum Offender {
    /// A function that it calls.
    Function(Blamed),
    /// A relation that it names.
    Relation(pg_sys::Oid),
}

/// What checking a query came to.
pub struct Checked {
    /// Its traits, or the first reason found not to cache the answer.
    pub traits: Result<QueryTraits, Reason>,
    /// On a refusal, what is to blame, if it is a function or a relation.
    pub offender: Option<Offender>,
    /// The finding rests on how names in bodies of functions are resolved.
    pub resolves_names: bool,
}

/// Checks a rewritten query before the planner takes it apart. `seed` is the secret of the store.
pub fn check_query(query: Tree<'_, pg_sys::Query>, seed: u64) -> Checked {
    if reads_nothing(query) {
        return Checked { traits: Err(Reason::NoRelation), offender: None, resolves_names: false };
    }
    let here = 0u8;
    let mut checker = EligibilityChecker::new((&raw const here) as usize, Some(seed));
    let _ = checker.check_all(query.as_node()) || checker.check_record_columns(query);
    checker.bodies.free();
    let mut offender = checker.offender.filter(|_| checker.reason != Some(Reason::MovingClock)).map(Offender::Function);
    let traits = checker.conclude().map_err(|reason| {
        // A query of catalogs is refused whatever else it does, so no other reason would help its author.
        let catalog = if reason == Reason::TooComplex { None } else { catalog_search::named_in(query) };
        catalog.map_or(reason, |catalog| {
            offender = Some(Offender::Relation(catalog));
            Reason::SystemCatalog
        })
    });
    let traits = traits.and_then(|()| {
        if !checker.reads_something {
            return Err(Reason::NoRelation);
        }
        let relations = checker.rests_on().ok_or(Reason::TooComplex)?;
        let bodies = checker.bodies.meaning();
        let trusts = trusted_extensions::fingerprint() != 0;
        Ok(QueryTraits {
            reads_session: checker.reads_session(),
            rests_on_enums: checker.types.enums,
            extras: Extras::keep(&relations, &checker.settings),
            repeatable: (!checker.may_vary).then(|| ordering::ordered_prefix(query)),
            may_drop_relations: checker.has_sublinks,
            may_fail: checker.may_fail && !fails_in_any_plan(query, seed),
            may_show_kind: checker.may_show_kind,
            unites: checker.unites,
            aggregates: checker.aggregates || (checker.converts_to_json && checker.types.enums),
            clocks: checker.clocks,
            receives_text: checker.receives_text,
            bodies,
            trusts,
        })
    });
    Checked { traits, offender, resolves_names: checker.bodies.resolves_names() }
}

/// Does computing a query fail in every kind of plan if it fails in one? Only the columns of its single row may fail (`failures::gives_one_row`):
/// the rows that these are made of are the same in all plans, and all of them are read before that row.
fn fails_in_any_plan(query: Tree<'_, pg_sys::Query>, seed: u64) -> bool {
    if !failures::gives_one_row(query) {
        return false;
    }
    let rest = pg_sys::Query { targetList: std::ptr::null_mut(), ..*query };
    let here = 0u8;
    let mut checker = EligibilityChecker::new((&raw const here) as usize, Some(seed));
    // SAFETY: a query like the one that it was copied from, but for its columns; it lives as long as this call.
    let stopped = unsafe { Tree::enter(&raw const rest) }.is_none_or(|rest| checker.check_all(rest.as_node()));
    checker.bodies.free();
    !stopped && !checker.may_fail
}

/// Checks an expression, or a list of expressions, that is part of no query: a constraint, say. Returns whether its value depends on
/// settings in the key, or on definitions that queries with the same types would rest on.
///
/// # Errors
/// The first reason found not to cache what rests on it.
pub fn check_expression(expression: Option<Tree<'_, pg_sys::Node>>) -> Result<bool, Reason> {
    let here = 0u8;
    let mut checker = EligibilityChecker::new((&raw const here) as usize, None);
    checker.clock = ClockPlace::Elsewhere;
    if let Some(expression) = expression {
        checker.check_all(expression);
    }
    checker.conclude()?;
    Ok(checker.reads_session())
}

/// Can it be told without a walk that the query reads nothing? Some clients send thousands of statements such as `SELECT 1`.
pub fn reads_nothing(query: Tree<'_, pg_sys::Query>) -> bool {
    query.rtable.is_null() && !query.hasSubLinks
}

/// Called by the server's walkers for each part of a node; true stops the walk.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: the context is the checker that `check_all` passed, lent to nobody else while the walker calls; the node is null or part of
    // the tree that is checked.
    unsafe { Tree::enter(node).is_some_and(|node| (*context.cast::<EligibilityChecker>()).check_all(node)) }
}

/// Called by the server for each function that a node calls, operators' and casts' included.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn visit_function(function: pg_sys::Oid, context: *mut c_void) -> bool {
    // SAFETY: the context is the checker that `check_functions_in` passed, for the time of the call.
    unsafe { (*context.cast::<EligibilityChecker>()).check_function(function) }
}

/// The walk. Each function returns true to stop it.
impl EligibilityChecker {
    /// Checks a node and all below it.
    fn check_all(&mut self, node: Tree<'_, pg_sys::Node>) -> bool {
        let here = 0u8;
        if self.is_too_deep(&here) {
            return self.refuse(Reason::TooComplex);
        }
        let enters = self.enters_clock(node);
        let kept = self.enters_kept(node);
        let stopped = self.reason.is_some() || self.check_node(node) || self.check_below(node);
        self.bodies.kept = kept;
        if enters {
            self.clock = ClockPlace::Outside;
        }
        stopped
    }

    /// Checks what is below a node.
    fn check_below(&mut self, node: Tree<'_, pg_sys::Node>) -> bool {
        let context = (&raw mut *self).cast();
        match_node! { node;
            Query(query) => {
                // Which columns of a join the query uses, its column references tell (`join_columns`).
                let flags =
                    pg_sys::QTW_EXAMINE_RTES_BEFORE | pg_sys::QTW_EXAMINE_SORTGROUP | pg_sys::QTW_IGNORE_JOINALIASES;
                self.queries.push(query.as_ptr());
                // SAFETY: a valid query; what the walker calls gets this checker back.
                let stopped = unsafe { pg_sys::query_tree_walker(query.as_ptr(), Some(visit), context, flags as i32) };
                self.queries.pop();
                stopped
            },
            // The walker above descends into it by itself.
            RangeTblEntry(_entry) => false,
            // SAFETY: a valid node of a kind that the server's walker knows; what it calls gets this checker back.
            _ => unsafe { pg_sys::expression_tree_walker(node.as_ptr(), Some(visit), context) },
        }
    }

    /// Checks one node alone.
    fn check_node(&mut self, node: Tree<'_, pg_sys::Node>) -> bool {
        self.may_vary = self.may_vary || repeatability::leaves_open(node);
        self.may_fail = self.may_fail || failures::may_fail(node, &self.queries);
        self.may_show_kind = self.may_show_kind || kind_of_plan::may_show(node, &self.queries);
        if makes_a_type(node) {
            self.note_type(type_of(node));
        }
        self.collates_by_name = self.collates_by_name || names_collation(node);
        for function in definition::unseen_casts(node) {
            // `clock` computes such a text by the type's output function.
            if self.clock == ClockPlace::Inside || self.check_function(function) {
                return self.blame(function, Reason::UserDefinedFunction);
            }
        }
        match_node! { node;
            Query(query) => self.check_query_itself(&query),
            RangeTblEntry(entry) => self.check_range_table_entry(&entry),
            Var(var) => self.check_var(&var) || self.check_join_column(&var),
            SortGroupClause(clause) => self.check_clause(&clause),
            SetOperationStmt(operation) => {
                self.unites = true;
                self.check_conversions(operation)
                    || children!(operation.groupClauses as SortGroupClause).any(|clause| self.check_clause(&clause))
            },
            WindowClause(window) => [window.startInRangeFunc, window.endInRangeFunc]
                .into_iter()
                .any(|function| function != pg_sys::InvalidOid && self.check_function(function)),
            FuncExpr(call) => self.check_call(call),
            WindowFunc(call) => {
                self.aggregates |= call.winagg;
                self.check_function(call.winfnoid) || self.check_missing_arguments(call.winfnoid, child!(call.args))
            },
            SQLValueFunction(value) => self.check_session_value(&value),
            OpExpr | T_DistinctExpr | T_NullIfExpr (operator) => {
                self.compares_with_time(operator)
                    || self.is_not_as_listed(operator.opno)
                    || self.joins_otherwise(operator)
                    || self.check_operator(operator.opno)
                    || self.check_functions_in(node)
            },
            ScalarArrayOpExpr(operator) => self.check_operator(operator.opno) || self.check_functions_in(node),
            RowCompareExpr(row) => {
                child_oids!(row.opnos).any(|operator| self.check_operator(operator)) || self.check_functions_in(node)
            },
            MinMaxExpr(expression) => {
                // Its comparison function is found through the type, not named by the tree.
                self.types.note_contained(expression.minmaxtype);
                (nature(expression.minmaxtype) > Nature::BuiltIn && self.refuse(Reason::UserDefinedFunction))
                    || (self.clock == ClockPlace::Inside && self.check_comparison_in_clock(expression.minmaxtype))
            },
            SubscriptingRef(subscript) => {
                // SAFETY: reads a catalog about a type of the tree.
                let handler = unsafe { pg_sys::get_typsubscript(subscript.refcontainertype, std::ptr::null_mut()) };
                self.check_function(handler)
            },
            _ => self.check_other_node(node),
        }
    }

    /// Checks a node of a kind that names no function, or shows it to the server's own walker of functions.
    fn check_other_node(&mut self, node: Tree<'_, pg_sys::Node>) -> bool {
        if let Some(reason) = refusal_of(node.tag()) {
            return self.refuse(reason);
        }
        match_node! { node;
            Const(constant) => {
                if self.check_constant(&constant) {
                    return true;
                }
            },
            Param(param) => self.note_type(param.paramtype),
            RelabelType(relabel) => self.note_type(relabel.resulttype),
            // Rows without a name are compared column by column.
            RowExpr(row) => {
                for column in children!(row.args as Node) {
                    self.types.note_contained(type_of(column));
                }
            },
            CoerceViaIO(coercion) => return self.check_coercion(node, coercion),
            RangeTblFunction(function) => {
                if self.check_listed_columns(function) {
                    return true;
                }
            },
            SubLink(_link) => self.has_sublinks = true,
            Aggref(_call) => self.aggregates = true,
            _ => {}
        }
        self.check_functions_in(node)
    }

    /// Checks how something is sorted or grouped: by operators, and by comparison and hash functions that are found through the type.
    fn check_clause(&mut self, clause: &pg_sys::SortGroupClause) -> bool {
        if clause.eqop != pg_sys::InvalidOid {
            let (mut left, mut right) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
            // SAFETY: reads a catalog about an operator that the query uses.
            unsafe { pg_sys::op_input_types(clause.eqop, &raw mut left, &raw mut right) };
            self.types.note_compared(left);
        }
        self.check_operator(clause.eqop) || self.check_operator(clause.sortop)
    }

    /// Checks an operator and the function behind it; InvalidOid stands for none.
    ///
    /// The planner may put its negator or its commutator in its place, which its owner names. Those of users are therefore refused whatever
    /// their functions are, and so are built-in ones that a superuser has given one of a user's, or code of a user to hash or sort by.
    fn check_operator(&mut self, operator: pg_sys::Oid) -> bool {
        if operator == pg_sys::InvalidOid {
            return false;
        }
        // SAFETY: reads catalogs about an operator that the query uses.
        let related = unsafe { [operator, pg_sys::get_negator(operator), pg_sys::get_commutator(operator)] };
        related.into_iter().filter(|one| *one != pg_sys::InvalidOid).any(|one| {
            // SAFETY: reads a catalog; InvalidOid for what is no operator.
            let function = unsafe { pg_sys::get_opcode(one) };
            let is_of_user = one.to_u32() >= FIRST_UNPINNED_OID && !is_trusted_operator(one);
            if is_of_user || operator_families::hash_or_sort_by_user(one) {
                return self.blame(function, Reason::UserDefinedFunction);
            }
            self.check_function(function)
        })
    }

    fn check_call(&mut self, call: Tree<'_, pg_sys::FuncExpr>) -> bool {
        if self.clock == ClockPlace::Inside && asks_for_time(call.funcid) {
            // One that is marked IMMUTABLE is computed when its query is planned, and a kept plan keeps that.
            if !volatility::is_stable(call.funcid) {
                return self.blame(call.funcid, Reason::SessionFunction);
            }
            return self.check_definition(call.funcid, definition::of(call.funcid));
        }
        if self.clock == ClockPlace::Outside && counts_from_today(call.funcid) && volatility::is_stable(call.funcid) {
            self.note_day();
            return self.check_definition_at(ClockPlace::FromToday, call.funcid, definition::of(call.funcid));
        }
        if call.funcid.to_u32() >= FIRST_UNPINNED_OID {
            return (!is_trusted_function(call.funcid) && self.check_call_of_user(call))
                || self.check_missing_arguments(call.funcid, child!(call.args));
        }
        if !self.bodies.immutable && self.reads_named_state(call) {
            return self.reason.is_some() || self.check_body_of(call.funcid);
        }
        if lists_columns(call.funcid) {
            return self.check_call_with_columns(call);
        }
        if makes_named_row(call.funcid) {
            return self.check_populating(call);
        }
        self.check_function(call.funcid) || self.check_missing_arguments(call.funcid, child!(call.args))
    }

    /// Checks what the planner adds to a call that leaves arguments out.
    fn check_missing_arguments(&mut self, function: pg_sys::Oid, given: Option<Tree<'_, pg_sys::List>>) -> bool {
        let given = given.map_or(0, Tree::length);
        let added = definition::of_missing_arguments(function, given);
        if self.clock == ClockPlace::Inside
            // SAFETY: trees that the server has read into the current memory context, for this check alone.
            && added.iter().flat_map(|added| &added.trees).any(|tree| !unsafe { Tree::enter(*tree) }.is_some_and(is_zero))
        {
            return self.blame(function, Reason::UserDefinedFunction);
        }
        self.check_definition(function, added)
    }

    /// Checks the functions that a node names, as far as the server tells them.
    fn check_functions_in(&mut self, node: Tree<'_, pg_sys::Node>) -> bool {
        let context = (&raw mut *self).cast();
        // SAFETY: a valid node; what the server calls gets this checker back.
        unsafe { pg_sys::check_functions_in_node(node.as_ptr(), Some(visit_function), context) }
    }

    /// Checks a function, and what it consists of.
    fn check_function(&mut self, function: pg_sys::Oid) -> bool {
        let verdict = volatility::check(function);
        if self.may_be_forbidden(function) {
            return self.blame_because(function, Reason::UserDefinedFunction, sql_functions::FORBIDDEN);
        }
        if self.bodies.kept && !matches!(verdict, FunctionVerdict::Sound | FunctionVerdict::Unsound(_)) {
            return self.blame_because(function, Reason::StableFunction, sql_functions::KEPT_VALUE);
        }
        match verdict {
            FunctionVerdict::Sound => {}
            FunctionVerdict::ReadsSettings => self.reads_settings = true,
            FunctionVerdict::CallsOutputFunctions => {
                self.calls_output = true;
                self.reads_settings = true;
            }
            FunctionVerdict::ConvertsToJson => {
                self.calls_output = true;
                self.converts_to_json = true;
                self.reads_settings = true;
            }
            FunctionVerdict::Unsound(reason) => {
                let session = SESSION_FUNCTIONS.contains(&function.to_u32());
                return self.blame(function, if session { Reason::SessionFunction } else { reason });
            }
        }
        if self.bodies.immutable && !volatility::is_immutable(function) {
            return self.blame(function, Reason::StableFunction);
        }
        if function.to_u32() >= FIRST_UNPINNED_OID {
            // One that counts like a built-in one, and is no more than its code.
            return false;
        }
        self.receives_text |= volatility::receives_text(function);
        if volatility::searches_by_default(function) && self.reads_search_configuration() {
            return true;
        }
        self.defined.insert((function, self.bodies.immutable, self.bodies.kept))
            && self.check_definition(function, definition::of(function))
    }

    /// Checks what a function consists of, as if the query had it in its place.
    fn check_definition(&mut self, function: pg_sys::Oid, definition: Option<Definition>) -> bool {
        // What asks for the time there is in no clock expression of the query.
        self.check_definition_at(ClockPlace::Elsewhere, function, definition)
    }

    /// As `check_definition`, where of the time this much is in the key.
    fn check_definition_at(&mut self, at: ClockPlace, function: pg_sys::Oid, definition: Option<Definition>) -> bool {
        let Some(definition) = definition else { return self.blame(function, Reason::UserDefinedFunction) };
        let place = std::mem::replace(&mut self.clock, at);
        // How the function is declared whose parts these are, and under which snapshot they would read, is not asked: none may.
        let volatile = std::mem::replace(&mut self.bodies.volatile, true);
        let refused = definition.functions.iter().any(|part| self.check_function(*part))
            // SAFETY: trees that the server has read into the current memory context, for this check alone.
            || definition.trees.iter().filter_map(|tree| unsafe { Tree::enter(*tree) }).any(|tree| self.check_all(tree));
        self.clock = place;
        self.bodies.volatile = volatile;
        refused
    }
}
