//! What a clock expression is made of, and how one is told from other expressions. Reads trees, and of catalogs which
//! function stands behind an operator of a view; keeps nothing.

use pgrx::pg_sys::{self, BOOLOID, BPCHAROID, DATEOID, FLOAT8OID, INT2OID, INT4OID, INT8OID, Oid};
use pgrx::pg_sys::{TIMEOID, TIMETZOID};

use super::leaf::Leaf;
use super::types;
use crate::pg::built_in_functions::is_called_by_number;
use crate::pg::compat::tree::walkers;
use crate::pg::lone_expression;
use crate::pg::tree::{Tree, child, children, match_node};
use crate::query::function_table::has;
use crate::query::function_table::properties::{CLEAN, CLOCK, COARSE, GATHERING, JOINING, READING, SETTINGS};

/// Deepest nesting of a clock expression.
pub const DEEPEST: usize = 24;

/// The node below those that have the same value: what takes it as one of another type or collation, and sub-queries
/// that compute it.
pub(super) fn bare(node: Tree<'_, pg_sys::Node>) -> Tree<'_, pg_sys::Node> {
    let mut node = node.without_relabelling();
    loop {
        let below = match_node! { node;
            CollateExpr(collated) => child!(collated.arg).map(Tree::as_node),
            SubLink(link) => lone_expression::of_sub_query(link),
            _ => None,
        };
        let Some(below) = below else { return node };
        node = below.without_relabelling();
    }
}

/// The function behind an operator. The parser has looked it up; the text of a view does not say it.
pub(super) fn behind(call: Tree<'_, pg_sys::OpExpr>) -> Oid {
    // SAFETY: reads a catalog about an operator of the tree.
    if call.opfuncid == pg_sys::InvalidOid { unsafe { kept!(pg_sys::get_opcode(call.opno)) } } else { call.opfuncid }
}

/// Returns true if an operator joins a text and a value, by functions in SQL (textanycat, anytextcat).
pub(super) fn joins(call: Tree<'_, pg_sys::OpExpr>) -> bool {
    has(behind(call), JOINING)
}

/// make_interval(int, int, int, int, int, int, double precision), whose arguments may be left out.
const MAKE_INTERVAL: u32 = 3464;

/// Returns true if a call may have fewer arguments than its function, or others than in their order.
pub(super) fn lacks_arguments(call: Tree<'_, pg_sys::FuncExpr>) -> bool {
    let is_named = |one: Tree<'_, pg_sys::Node>| one.tag() == pg_sys::NodeTag::T_NamedArgExpr;
    call.funcid.to_u32() == MAKE_INTERVAL || children!(call.args as Node).any(is_named)
}

/// The type of an expression's values.
pub(super) fn type_of(expression: Tree<'_, pg_sys::Node>) -> Oid {
    // SAFETY: an expression of a valid tree.
    unsafe { walkers::exprType(expression.as_ptr()) }
}

/// Both arguments of a call.
pub(super) fn both(
    arguments: Option<Tree<'_, pg_sys::List>>,
) -> Option<(Tree<'_, pg_sys::Node>, Tree<'_, pg_sys::Node>)> {
    let mut items = arguments?.items();
    match (items.next().flatten(), items.next().flatten(), items.next()) {
        (Some(left), Some(right), None) => Some((left, right)),
        _ => None,
    }
}

/// What is known of an expression that could be a clock expression, or part of one.
#[derive(Clone, Copy, Debug)]
pub struct Closed {
    /// It asks for the time.
    pub asks: bool,
    /// It asks for the arrival of a message.
    pub asks_for_message: bool,
    /// It names parameters of the statement.
    pub has_params: bool,
    /// Its value may stay the same for a minute or more: whatever asks for the time in it is CURRENT_DATE, or lies
    /// below something coarse.
    pub may_settle: bool,
}

impl Closed {
    /// It says nothing.
    const NOTHING: Self = Self { asks: false, asks_for_message: false, has_params: false, may_settle: true };

    /// What is known of both together.
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            asks: self.asks || other.asks,
            asks_for_message: self.asks_for_message || other.asks_for_message,
            has_params: self.has_params || other.has_params,
            may_settle: self.may_settle && other.may_settle,
        }
    }
}

/// What is known of an expression that is made of nothing but clock leaves, constants, parameters of the statement and
/// functions that may stand in clock expressions; `None` for any other.
pub fn closed(node: Tree<'_, pg_sys::Node>) -> Option<Closed> {
    closed_at(node, 0)
}

/// As `closed`, for a part that lies so deep in an expression.
fn closed_at(node: Tree<'_, pg_sys::Node>, depth: usize) -> Option<Closed> {
    if depth > DEEPEST {
        return None;
    }
    let bare = bare(node);
    let found = match_node! { bare;
        Const(_constant) => Closed::NOTHING,
        Param(param) => if param.paramkind == pg_sys::ParamKind::PARAM_EXTERN {
            Closed { has_params: true, ..Closed::NOTHING }
        } else {
            return None;
        },
        _ => match Leaf::of(bare) {
            Some(leaf) => Closed {
                asks: true,
                asks_for_message: leaf == Leaf::Statement,
                may_settle: leaf == Leaf::Transaction(DATEOID),
                ..Closed::NOTHING
            },
            None => return made_of(bare, depth + 1),
        },
    };
    // Whatever type a constant or a parameter has, such as a domain: what it is taken for counts.
    types::is_known(type_of(node)).then_some(found)
}

/// What is known of an expression by what it is made of.
fn made_of(node: Tree<'_, pg_sys::Node>, depth: usize) -> Option<Closed> {
    match_node! { node;
        FuncExpr(call) => {
            // The values of which a function makes a text may not be given as an array.
            if has(call.funcid, GATHERING) && !call.funcvariadic {
                return of_all(child!(call.args), depth);
            }
            if call.funcretset || call.funcvariadic {
                return None;
            }
            of_call(call.funcid, call.funcresulttype, child!(call.args), depth)
        },
        OpExpr(call) => of_operator(call, depth),
        CoerceViaIO(coercion) => {
            let value = child!(coercion.arg).filter(|_| types::is_known(coercion.resulttype))?;
            let text = of_text(value.as_node(), depth)?;
            // It may be a word for the time.
            Some(Closed { asks: text.asks || types::reads_time(coercion.resulttype), ..text })
        },
        MinMaxExpr(choice) => {
            let all = of_all(child!(choice.args).filter(|_| types::is_compared(choice.minmaxtype)), depth)?;
            // Of the time and something that does not move, it may be the latter.
            Some(Closed { may_settle: true, ..all })
        },
        CoalesceExpr(choice) => {
            let mut choices = child!(choice.args).filter(|_| types::is_known(choice.coalescetype))?.items();
            let first = closed_at(choices.next()??, depth)?;
            let all = choices.try_fold(first, |all, one| Some(all.with(closed_at(one?, depth)?)))?;
            // If the first one moves, so does its being chosen. If it does not, it may be what is chosen.
            Some(Closed { may_settle: first.may_settle, ..all })
        },
        _ => None,
    }
}

/// What is known of a call of a function, or of an operator with this function behind it.
fn of_call(function: Oid, result: Oid, arguments: Option<Tree<'_, pg_sys::List>>, depth: usize) -> Option<Closed> {
    let all = of_all(arguments, depth)?;
    // The planner computes it for constants, and a kept plan has what it gave under other settings.
    if !all.asks && has(function, READING) {
        return None;
    }
    // The server's code for dates, times, numbers and booleans computes, and does nothing else.
    let computes = || {
        has(function, CLEAN | SETTINGS | READING)
            && is_called_by_number(function)
            && types::is_compared(result)
            && arguments.into_iter().flat_map(Tree::items).flatten().all(|one| types::is_compared(type_of(one)))
    };
    let rounds = matches!(result, BOOLOID | DATEOID | INT2OID | INT4OID | INT8OID) || has(function, COARSE);
    (has(function, CLOCK) || computes()).then_some(Closed { may_settle: all.may_settle || rounds, ..all })
}

fn of_operator(call: Tree<'_, pg_sys::OpExpr>, depth: usize) -> Option<Closed> {
    if !joins(call) {
        return of_call(behind(call), call.opresulttype, child!(call.args), depth);
    }
    // The casts of `boolean` and `char(n)` to text are functions of their own.
    child!(call.args)?.items().try_fold(Closed::NOTHING, |all, one| {
        let one = one.filter(|one| !matches!(type_of(*one), BOOLOID | BPCHAROID))?;
        Some(all.with(of_text(one, depth)?))
    })
}

/// What is known of several expressions together, some of which may be given by their names.
fn of_all(list: Option<Tree<'_, pg_sys::List>>, depth: usize) -> Option<Closed> {
    list.into_iter().flat_map(Tree::items).try_fold(Closed::NOTHING, |all, one| {
        let one = one?;
        let one = one.as_a::<pg_sys::NamedArgExpr>().map_or(Some(one), |named| Some(child!(named.arg)?.as_node()));
        Some(all.with(closed_at(one?, depth)?))
    })
}

/// As `closed`, for a value that is written as a text. The planner may write a constant, and a kept plan has what
/// that gave under the settings of planning. So the types whose output functions read settings and are marked
/// IMMUTABLE must be asked about the time.
fn of_text(value: Tree<'_, pg_sys::Node>, depth: usize) -> Option<Closed> {
    let all = closed_at(value, depth)?;
    let reads_settings = matches!(type_of(value), TIMEOID | TIMETZOID | FLOAT8OID);
    (all.asks || !reads_settings).then_some(all)
}
