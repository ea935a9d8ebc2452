//! Walks a rewritten query tree and finds the first reason not to cache its answer. What it finds depends on the query's form
//! (`identity`) and the definitions in the catalogs alone, so it is done once for all queries of a form (`known`).

mod session_values;

use std::collections::HashSet;
use std::ffi::{CString, c_void};

use arrow_cache_core::Reason;
use pgrx::pg_sys::{self, NodeTag};

use super::ordering::{self, OrderedPrefix};
use super::repeatability;
use super::row_types_and_settings::Extras;
use super::types::{Nature, TypeFacts, nature};
use super::volatility::definition::{self, Definition};
use super::volatility::{self, FunctionVerdict};
use crate::pg::compat::tree;
use crate::pg::lists::{nodes, oids};
use crate::pg::object_ids::FIRST_UNPINNED_OID;
use session_values::{SESSION_FUNCTIONS, judge_session_value, reads_custom_setting};

/// What a query means, as far as its answer can depend on it.
#[derive(Clone, Copy, Debug)]
pub struct Meaning {
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
    /// It has set operations.
    pub unites: bool,
    /// It calls aggregates, whose parts are looked up at each execution.
    pub aggregates: bool,
}

/// System column that is not tied to a tuple's physical place (access/sysattr.h).
const TABLE_OID_ATTRIBUTE: i16 = pg_sys::TableOidAttributeNumber as i16;

struct Walk {
    reason: Option<Reason>,
    /// The function that is to blame, if it is one.
    offender: Option<pg_sys::Oid>,
    /// A function was met that calls output functions of its arguments' types.
    calls_output: bool,
    /// A function was met that converts its arguments to JSON, by a user's cast if there is one.
    converts_to_json: bool,
    /// A function was met whose result depends on settings.
    reads_settings: bool,
    /// Functions whose definitions have been looked at.
    defined: HashSet<pg_sys::Oid>,
    /// A sub-query was met in an expression.
    has_sublinks: bool,
    /// A set operation was met.
    unites: bool,
    /// An aggregate was met.
    aggregates: bool,
    /// The types met.
    types: TypeFacts,
    /// Custom settings that the query reads by name.
    settings: Vec<CString>,
    /// A node was met that leaves the answer open.
    may_vary: bool,
    /// Address of a local of `judge_tree`, to see how much stack the walk has used.
    stack_base: usize,
    /// How much it may use, in bytes.
    stack_limit: usize,
    /// The query reads something: a relation, a function in FROM, or VALUES.
    reads_something: bool,
}

impl Walk {
    /// A walk that has not begun, at this address of the stack.
    fn new(stack_base: usize) -> Self {
        Self {
            reason: None,
            offender: None,
            calls_output: false,
            converts_to_json: false,
            reads_settings: false,
            defined: HashSet::new(),
            has_sublinks: false,
            unites: false,
            aggregates: false,
            types: TypeFacts::NONE,
            settings: Vec::new(),
            may_vary: false,
            stack_base,
            // SAFETY: a plain global of the backend, in kilobytes. The server's own check would raise at this depth; the
            // walk must not, and leaves most of the stack to the planner, which needs less per level.
            stack_limit: unsafe { pg_sys::max_stack_depth } as usize * 1024 / 4,
            reads_something: false,
        }
    }

    /// What only shows when all was seen.
    fn conclude(&self) -> Result<(), Reason> {
        if let Some(reason) = self.reason {
            return Err(reason);
        }
        let unseen_calls = (self.calls_output && self.types.nature == Nature::Foreign)
            || (self.converts_to_json && self.types.nature > Nature::BuiltIn);
        for (found, reason) in [
            (unseen_calls, Reason::StableFunction),
            (self.types.too_complex, Reason::TooComplex),
            (self.types.temporary, Reason::TemporaryRelation),
            (self.types.compared_unseen, Reason::UserDefinedFunction),
        ] {
            if found {
                return Err(reason);
            }
        }
        Ok(())
    }

    /// Stops the walk for `reason`.
    fn refuse(&mut self, reason: Reason) -> bool {
        self.reason.get_or_insert(reason);
        true
    }

    fn note_type(&mut self, type_oid: pg_sys::Oid) {
        self.types.note(type_oid);
    }
}

/// Judges `query`.
///
/// # Errors
/// The first reason found not to cache the answer.
///
/// # Safety
/// `query` must be a valid rewritten query tree.
pub unsafe fn judge_tree(query: *mut pg_sys::Query) -> Result<Meaning, Reason> {
    // SAFETY: as the caller promises.
    unsafe { judge_tree_naming(query, &mut None) }
}

/// As `judge_tree`; on a refusal, `offender` is the function to blame, if it is one.
///
/// # Errors
/// As `judge_tree`.
///
/// # Safety
/// As `judge_tree`.
pub unsafe fn judge_tree_naming(
    query: *mut pg_sys::Query,
    offender: &mut Option<pg_sys::Oid>,
) -> Result<Meaning, Reason> {
    // SAFETY: as the caller promises.
    if unsafe { reads_nothing(query) } {
        return Err(Reason::NoRelation);
    }
    let here = 0u8;
    let mut walk = Walk::new((&raw const here) as usize);
    // SAFETY: the walker is given the tree the caller vouches for, and our own context.
    unsafe { visit(query.cast(), (&raw mut walk).cast()) };
    if let Err(reason) = walk.conclude() {
        *offender = walk.offender;
        return Err(reason);
    }
    if !walk.reads_something {
        return Err(Reason::NoRelation);
    }
    Ok(Meaning {
        reads_session: walk.reads_settings
            || walk.types.enums
            || walk.types.text_search
            || !walk.types.row_types.is_empty(),
        rests_on_enums: walk.types.enums,
        extras: Extras::keep(&walk.types.row_types, &walk.settings),
        // SAFETY: as the caller promises.
        repeatable: (!walk.may_vary).then(|| unsafe { ordering::ordered_prefix(query) }),
        may_drop_relations: walk.has_sublinks,
        unites: walk.unites,
        aggregates: walk.aggregates,
    })
}

/// Judges an expression, or a list of such, that is part of no query: a constraint, say. Returns whether its value depends on settings in the
/// key, or on definitions that queries with the same types would rest on.
///
/// # Errors
/// The first reason found not to cache what rests on it.
///
/// # Safety
/// `expression` must be valid.
pub unsafe fn judge_expression(expression: *mut pg_sys::Node) -> Result<bool, Reason> {
    let here = 0u8;
    let mut walk = Walk::new((&raw const here) as usize);
    // SAFETY: the walker is given the tree the caller vouches for, and our own context.
    unsafe { visit(expression, (&raw mut walk).cast()) };
    walk.conclude()?;
    let types = &walk.types;
    Ok(walk.reads_settings || types.enums || types.text_search || !types.row_types.is_empty())
}

/// Can it be told without a walk that the query reads nothing? `SELECT 1` and the like come by the thousand.
///
/// # Safety
/// `query` must be valid.
pub unsafe fn reads_nothing(query: *const pg_sys::Query) -> bool {
    // SAFETY: as the caller promises.
    unsafe { (*query).rtable.is_null() && !(*query).hasSubLinks }
}

/// Walker in the form that PostgreSQL's tree walkers call: true stops the walk.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    if node.is_null() {
        return false;
    }
    let here = 0u8;
    // SAFETY: `context` is the Walk of `judge_tree`, borrowed by nobody else while we are called;
    // the borrow ends before the walk goes deeper.
    unsafe {
        let walk = &mut *context.cast::<Walk>();
        if walk.stack_base.abs_diff((&raw const here) as usize) > walk.stack_limit {
            return walk.refuse(Reason::TooComplex);
        }
        if judge_node(node, &mut *context.cast::<Walk>()) {
            return true;
        }
        match (*node).type_ {
            NodeTag::T_Query => pg_sys::query_tree_walker(
                node.cast(),
                Some(visit),
                context,
                (pg_sys::QTW_EXAMINE_RTES_BEFORE | pg_sys::QTW_EXAMINE_SORTGROUP) as i32,
            ),
            // The walker above descends into it by itself.
            NodeTag::T_RangeTblEntry => false,
            _ => pg_sys::expression_tree_walker(node, Some(visit), context),
        }
    }
}

/// Looks at one node alone. True stops the walk.
///
/// # Safety
/// `node` must be a valid node of a query tree.
unsafe fn judge_node(node: *mut pg_sys::Node, walk: &mut Walk) -> bool {
    // SAFETY: each cast follows the node's tag.
    unsafe {
        let tag = (*node).type_;
        walk.may_vary = walk.may_vary || repeatability::leaves_open(node);
        if makes_a_type(tag) {
            walk.note_type(pg_sys::exprType(node));
        }
        for function in definition::unseen_casts(node) {
            if judge_function(function, (walk as *mut Walk).cast()) {
                return true;
            }
        }
        match tag {
            NodeTag::T_Query => return judge_query(node.cast(), walk),
            NodeTag::T_RangeTblEntry => return judge_range_table_entry(node.cast(), walk),
            NodeTag::T_Var => return judge_var(node.cast(), walk),
            NodeTag::T_Const => walk.note_type((*node.cast::<pg_sys::Const>()).consttype),
            NodeTag::T_Param => {
                let param: *mut pg_sys::Param = node.cast();
                walk.note_type((*param).paramtype);
            }
            // Rows without a name are compared column by column.
            NodeTag::T_RowExpr => {
                for column in nodes::<pg_sys::Node>((*node.cast::<pg_sys::RowExpr>()).args) {
                    walk.types.note_contained(pg_sys::exprType(column));
                }
            }
            NodeTag::T_RelabelType => {
                walk.note_type((*node.cast::<pg_sys::RelabelType>()).resulttype);
            }
            NodeTag::T_CoerceViaIO => {
                walk.calls_output = true;
                walk.reads_settings = true;
                walk.note_type((*node.cast::<pg_sys::CoerceViaIO>()).resulttype);
            }
            NodeTag::T_SubLink => walk.has_sublinks = true,
            NodeTag::T_OpExpr | NodeTag::T_DistinctExpr | NodeTag::T_NullIfExpr
                if judge_operator((*node.cast::<pg_sys::OpExpr>()).opno, walk) =>
            {
                return true;
            }
            NodeTag::T_ScalarArrayOpExpr if judge_operator((*node.cast::<pg_sys::ScalarArrayOpExpr>()).opno, walk) => {
                return true;
            }
            NodeTag::T_RowCompareExpr => {
                for operator in oids((*node.cast::<pg_sys::RowCompareExpr>()).opnos) {
                    if judge_operator(operator, walk) {
                        return true;
                    }
                }
            }
            NodeTag::T_Aggref => walk.aggregates = true,
            NodeTag::T_SortGroupClause => {
                return judge_clause(node.cast(), walk);
            }
            NodeTag::T_SetOperationStmt => {
                walk.unites = true;
                let operation: *mut pg_sys::SetOperationStmt = node.cast();
                for clause in nodes::<pg_sys::SortGroupClause>((*operation).groupClauses) {
                    if judge_clause(clause, walk) {
                        return true;
                    }
                }
            }
            // Its comparison function is found through the type, not named by the tree.
            NodeTag::T_MinMaxExpr => {
                let expression: *mut pg_sys::MinMaxExpr = node.cast();
                walk.types.note_contained((*expression).minmaxtype);
                if nature((*expression).minmaxtype) > Nature::BuiltIn {
                    return walk.refuse(Reason::UserDefinedFunction);
                }
            }
            NodeTag::T_WindowClause => {
                let window = &*node.cast::<pg_sys::WindowClause>();
                for function in [window.startInRangeFunc, window.endInRangeFunc] {
                    if function != pg_sys::InvalidOid && judge_function(function, (walk as *mut Walk).cast()) {
                        return true;
                    }
                }
            }
            NodeTag::T_SQLValueFunction => return judge_session_value(node.cast(), walk),
            NodeTag::T_FuncExpr if reads_custom_setting(node.cast(), walk) => {
                if walk.reason.is_some() {
                    return true;
                }
                let function = (*node.cast::<pg_sys::FuncExpr>()).funcid;
                return judge_definition(function, definition::of(function), walk);
            }
            NodeTag::T_FuncExpr => {
                let call: *mut pg_sys::FuncExpr = node.cast();
                return judge_function((*call).funcid, (walk as *mut Walk).cast())
                    || judge_missing_arguments((*call).funcid, (*call).args, walk);
            }
            NodeTag::T_WindowFunc => {
                let call: *mut pg_sys::WindowFunc = node.cast();
                walk.aggregates |= (*call).winagg;
                return judge_function((*call).winfnoid, (walk as *mut Walk).cast())
                    || judge_missing_arguments((*call).winfnoid, (*call).args, walk);
            }
            NodeTag::T_SubscriptingRef => {
                let container = (*node.cast::<pg_sys::SubscriptingRef>()).refcontainertype;
                let handler = pg_sys::get_typsubscript(container, std::ptr::null_mut());
                if judge_function(handler, (walk as *mut Walk).cast()) {
                    return true;
                }
            }
            NodeTag::T_NextValueExpr => return walk.refuse(Reason::VolatileFunction),
            NodeTag::T_CurrentOfExpr => return walk.refuse(Reason::SystemColumn),
            NodeTag::T_CoerceToDomain => return walk.refuse(Reason::DomainConstraint),
            NodeTag::T_XmlExpr | NodeTag::T_TableFunc => {
                return walk.refuse(Reason::XmlExpression);
            }
            _ if tree::is_unjudged_node(tag) => return walk.refuse(Reason::StableFunction),
            _ => {}
        }
        pg_sys::check_functions_in_node(node, Some(judge_function), (walk as *mut Walk).cast())
    }
}

/// Can an expression of this kind have a type that none of its parts has?
fn makes_a_type(tag: NodeTag) -> bool {
    matches!(
        tag,
        NodeTag::T_Aggref
            | NodeTag::T_WindowFunc
            | NodeTag::T_FuncExpr
            | NodeTag::T_OpExpr
            | NodeTag::T_SubLink
            | NodeTag::T_FieldSelect
            | NodeTag::T_SubscriptingRef
            | NodeTag::T_ArrayCoerceExpr
            | NodeTag::T_ConvertRowtypeExpr
            | NodeTag::T_ArrayExpr
            | NodeTag::T_RowExpr
            | NodeTag::T_CaseExpr
            | NodeTag::T_CoalesceExpr
    )
}

/// Judges how something is sorted or grouped: by operators, and by comparison and hash functions that are found through the type.
///
/// # Safety
/// `clause` must be valid.
unsafe fn judge_clause(clause: *const pg_sys::SortGroupClause, walk: &mut Walk) -> bool {
    // SAFETY: as the caller promises; a catalog look-up of an operator that the query uses.
    unsafe {
        let (mut left, mut right) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
        if (*clause).eqop != pg_sys::InvalidOid {
            pg_sys::op_input_types((*clause).eqop, &raw mut left, &raw mut right);
            walk.types.note_compared(left);
        }
        judge_operator((*clause).eqop, walk) || judge_operator((*clause).sortop, walk)
    }
}

/// Judges an operator and the function behind it; InvalidOid stands for none.
///
/// The planner may put its negator or its commutator in its place, which are whatever its owner has said. So those of users are refused
/// whatever their functions are, and so are built-in ones that a superuser has given one of a user's.
fn judge_operator(operator: pg_sys::Oid, walk: &mut Walk) -> bool {
    if operator == pg_sys::InvalidOid {
        return false;
    }
    // SAFETY: catalog look-ups, and the walker's own function with its own context.
    unsafe {
        for one in [operator, pg_sys::get_negator(operator), pg_sys::get_commutator(operator)] {
            if one.to_u32() >= FIRST_UNPINNED_OID {
                walk.offender = Some(pg_sys::get_opcode(one));
                return walk.refuse(Reason::UserDefinedFunction);
            }
            if one != pg_sys::InvalidOid && judge_function(pg_sys::get_opcode(one), (walk as *mut Walk).cast()) {
                return true;
            }
        }
    }
    false
}

/// Called by PostgreSQL for each function that a node calls, operators' and casts' included.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn judge_function(function: pg_sys::Oid, context: *mut c_void) -> bool {
    // SAFETY: the context that `judge_node` passed, for the time of the call.
    let walk = unsafe { &mut *context.cast::<Walk>() };
    match volatility::judge(function) {
        FunctionVerdict::Sound => {}
        FunctionVerdict::ReadsSettings => walk.reads_settings = true,
        FunctionVerdict::CallsOutputFunctions => {
            walk.calls_output = true;
            walk.reads_settings = true;
        }
        FunctionVerdict::ConvertsToJson => {
            walk.calls_output = true;
            walk.converts_to_json = true;
            walk.reads_settings = true;
        }
        FunctionVerdict::Unsound(reason) => {
            let session = SESSION_FUNCTIONS.contains(&function.to_u32());
            return blame(function, if session { Reason::SessionFunction } else { reason }, walk);
        }
    }
    walk.defined.insert(function) && judge_definition(function, definition::of(function), walk)
}

/// Stops the walk because of a function.
fn blame(function: pg_sys::Oid, reason: Reason, walk: &mut Walk) -> bool {
    if walk.reason.is_none() {
        walk.offender = Some(function);
    }
    walk.refuse(reason)
}

/// Judges what a function consists of, as if the query had it in its place.
fn judge_definition(function: pg_sys::Oid, definition: Option<Definition>, walk: &mut Walk) -> bool {
    let Some(definition) = definition else { return blame(function, Reason::UserDefinedFunction, walk) };
    let context: *mut c_void = (walk as *mut Walk).cast();
    // SAFETY: the walker's own functions with its own context, and trees that the server has read.
    unsafe {
        definition.functions.iter().any(|part| judge_function(*part, context))
            || definition.trees.iter().any(|tree| visit(*tree, context))
    }
}

/// Judges what the planner adds to a call that leaves arguments out.
///
/// # Safety
/// `arguments` must be NIL or a list of nodes.
unsafe fn judge_missing_arguments(function: pg_sys::Oid, arguments: *const pg_sys::List, walk: &mut Walk) -> bool {
    // SAFETY: as the caller promises.
    let definition = unsafe { definition::of_missing_arguments(function, arguments) };
    judge_definition(function, definition, walk)
}

/// # Safety
/// `query` must be valid.
unsafe fn judge_query(query: *mut pg_sys::Query, walk: &mut Walk) -> bool {
    // SAFETY: as the caller promises.
    let query = unsafe { &*query };
    if query.commandType != pg_sys::CmdType::CMD_SELECT {
        return walk.refuse(Reason::DataModifyingCte);
    }
    if query.hasModifyingCTE {
        return walk.refuse(Reason::DataModifyingCte);
    }
    if !query.rowMarks.is_null() || query.hasForUpdate {
        return walk.refuse(Reason::RowLocks);
    }
    if !query.utilityStmt.is_null() {
        return walk.refuse(Reason::UtilityStatement);
    }
    false
}

/// # Safety
/// `entry` must be valid.
unsafe fn judge_range_table_entry(entry: *mut pg_sys::RangeTblEntry, walk: &mut Walk) -> bool {
    // SAFETY: as the caller promises.
    let entry = unsafe { &*entry };
    match entry.rtekind {
        pg_sys::RTEKind::RTE_RELATION => {
            walk.reads_something = true;
            if !entry.tablesample.is_null() {
                return walk.refuse(Reason::Tablesample);
            }
        }
        pg_sys::RTEKind::RTE_FUNCTION | pg_sys::RTEKind::RTE_VALUES => walk.reads_something = true,
        pg_sys::RTEKind::RTE_TABLEFUNC => return walk.refuse(Reason::XmlExpression),
        pg_sys::RTEKind::RTE_NAMEDTUPLESTORE => return walk.refuse(Reason::TransitionTable),
        _ => {}
    }
    false
}

/// # Safety
/// `var` must be valid.
unsafe fn judge_var(var: *mut pg_sys::Var, walk: &mut Walk) -> bool {
    // SAFETY: as the caller promises.
    let var = unsafe { &*var };
    walk.note_type(var.vartype);
    if var.varattno < 0 && var.varattno != TABLE_OID_ATTRIBUTE {
        return walk.refuse(Reason::SystemColumn);
    }
    false
}
