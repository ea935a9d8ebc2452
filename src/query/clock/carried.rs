//! Clock expressions as trees, which are carried inside a plan like the rest of the verdict (`plan_marker`), so that a
//! kept plan can have them computed at each start. They are the server's own nodes, ready to be executed: copying a
//! plan copies them. Where they lie, they are made ready once.
//!
//! It is a list with one list for each expression: first what is known of it, as a constant whose value is a struct;
//! then the expression, the interval beside the column that it is compared with, if there is one, and the values of the
//! fixed columns.

use std::cell::Cell;

use pgrx::pg_sys::{self, Datum, SQLValueFunctionOp};

use super::expression::{Closed, Pace, Part, behind, closed, closed_by, part};
use super::functions::{self, TEXTCAT};
use super::noted::ClockExpressions;
use super::shifted::Shift;
use super::split::{Comparison, MOST_FIXED, Split};
use crate::pg::computing::prepare;
use crate::pg::lists::nodes;
use crate::pg::lone_expression;
use crate::pg::tree::{Tree, child, match_node};
use crate::pg::tree_making::{call, copy, list_of, new_node, replaced};

/// The clock expressions of a query, which lie in server memory. Plain data.
#[derive(Clone, Copy, Debug)]
pub struct ClockTrees {
    list: *mut pg_sys::List,
}

/// What is known of a clock expression. It is copied byte for byte, with the plan that carries it.
pub(super) struct Facts {
    /// How long it keeps its value, whatever the parameters are.
    pub pace: Pace,
    /// It asks for the arrival of the message.
    pub asks_for_message: bool,
    /// It, or something beside it, names parameters.
    pub has_params: bool,
    /// What its value splits.
    pub split: Option<Split>,
    /// It is ready to be computed.
    prepared: Cell<Prepared>,
}

/// An expression that is ready to be computed. So is none that was copied.
#[derive(Clone, Copy)]
struct Prepared {
    /// The expression that was made ready.
    of: *const Facts,
    /// Null if that has failed.
    state: *mut pg_sys::ExprState,
}

impl Prepared {
    /// Nothing is ready.
    const NONE: Self = Self { of: std::ptr::null(), state: std::ptr::null_mut() };
}

/// A clock expression, with what is known of it.
#[derive(Clone, Copy)]
pub(super) struct Carried<'t> {
    facts: &'t Facts,
    list: Tree<'t, pg_sys::List>,
}

impl<'t> Carried<'t> {
    /// What is known of it.
    pub fn facts(&self) -> &'t Facts {
        self.facts
    }

    /// What computes it.
    pub fn expression(&self) -> Option<Tree<'t, pg_sys::Node>> {
        self.list.items().nth(1)?
    }

    /// What computes the interval that the column is away from it, if the split has one.
    pub fn by(&self) -> Option<Tree<'t, pg_sys::Node>> {
        self.list.items().nth(2).filter(|_| self.is_shifted())?
    }

    /// What computes the values of the fixed columns.
    pub fn fixed(&self) -> impl Iterator<Item = Option<Tree<'t, pg_sys::Node>>> {
        self.list.items().skip(2 + usize::from(self.is_shifted()))
    }

    /// The expression, ready to be computed as long as it lives; `None` if that has failed. What it raises jumps over
    /// this frame.
    ///
    /// # Safety
    /// As `prepare`.
    pub unsafe fn prepared(&self) -> Option<*mut pg_sys::ExprState> {
        let of = std::ptr::from_ref(self.facts);
        let mut found = self.facts.prepared.get();
        if found.of != of {
            self.facts.prepared.set(Prepared { of, state: std::ptr::null_mut() });
            let expression = self.expression()?.as_ptr();
            // SAFETY: the list lies in the context that the whole of it was made in, as every copy does; the caller's
            // promise.
            unsafe {
                let own = pg_sys::GetMemoryChunkContext(self.list.as_ptr().cast());
                let caller = pg_sys::MemoryContextSwitchTo(own);
                found = Prepared { of, state: prepare(expression) };
                pg_sys::MemoryContextSwitchTo(caller);
            }
            self.facts.prepared.set(found);
        }
        (!found.state.is_null()).then_some(found.state)
    }

    fn is_shifted(&self) -> bool {
        self.facts.split.is_some_and(|split| split.shift != Shift::None)
    }
}

impl ClockTrees {
    /// Those of a query that does not ask for the time.
    pub const NONE: Self = Self { list: std::ptr::null_mut() };

    /// The trees for the clock expressions of a query, in the current memory context. `None` if they are too many.
    pub fn of(expressions: &ClockExpressions) -> Option<Self> {
        if expressions.total() == 0 {
            return Some(Self::NONE);
        }
        let mut list = std::ptr::null_mut();
        for (node, found, split) in expressions.all()? {
            // SAFETY: a node of the query that the expressions were found in, which is there as long as it is planned.
            let node = unsafe { Tree::enter(node) }?;
            let (expression, by) = match split.filter(|split| split.shift != Shift::None) {
                None => (node, None),
                Some(_) => Comparison::shifted_sides(node.as_a::<pg_sys::OpExpr>()?)?,
            };
            let mut beside = [by, None, None, None, None];
            let fixed = expressions.fixed();
            for (place, value) in
                beside[1..].iter_mut().zip(fixed.values).filter(|_| split.is_some_and(|split| split.fixed[0] != 0))
            {
                // SAFETY: as above; null where there is no column.
                *place = unsafe { Tree::enter(value) };
            }
            list = appended(list, entry(expression, found, split, beside)?);
        }
        if expressions.reads_day() {
            let today = new_node::<pg_sys::SQLValueFunction>();
            // SAFETY: a new node.
            let today = unsafe {
                let date = (SQLValueFunctionOp::SVFOP_CURRENT_DATE, pg_sys::DATEOID, -1);
                ((*today).op, (*today).type_, (*today).typmod) = date;
                Tree::enter(today)
            }?;
            list = appended(list, entry(today.as_node(), closed(today.as_node())?, None, [None; 1 + MOST_FIXED])?);
        }
        Some(Self { list })
    }

    /// The tree of an expression that `closed` knows.
    pub(super) fn of_one(expression: Tree<'_, pg_sys::Node>) -> Option<Self> {
        Some(Self {
            list: appended(
                std::ptr::null_mut(),
                entry(expression, closed_by(expression, None)?, None, [None; 1 + MOST_FIXED])?,
            ),
        })
    }

    /// Those that a plan carries: a list that `list` has returned, or a copy of it; null for none.
    pub fn from_list(list: *mut pg_sys::List) -> Self {
        Self { list }
    }

    /// The list to be carried; null if there are no clock expressions. What was made ready while the query was planned
    /// is forgotten: a copy of the plan may outlive it.
    ///
    /// # Safety
    /// As `entries`.
    pub unsafe fn list(self) -> *mut pg_sys::List {
        // SAFETY: the caller's promise.
        for one in unsafe { self.entries() }.flatten() {
            one.facts.prepared.set(Prepared::NONE);
        }
        self.list
    }

    /// Returns true if there are no clock expressions.
    pub fn is_none(self) -> bool {
        self.list.is_null()
    }

    /// The expressions.
    ///
    /// # Safety
    /// The memory context in which they lie must still be there, for `'t`.
    pub(super) unsafe fn entries<'t>(self) -> impl ExactSizeIterator<Item = Option<Carried<'t>>> + Clone {
        // SAFETY: a list of lists, as `of` makes it; the caller promises that it is still there.
        unsafe {
            nodes::<pg_sys::List>(self.list).map(|one| {
                let list = Tree::enter(one)?;
                let facts = list.items().next()??.as_a::<pg_sys::Const>()?;
                Some(Carried { facts: &*facts.constvalue.cast_mut_ptr::<Facts>(), list })
            })
        }
    }

    /// How many expressions there are.
    ///
    /// # Safety
    /// As `entries`.
    pub unsafe fn count(self) -> usize {
        // SAFETY: the caller's promise.
        unsafe { self.entries() }.len()
    }

    /// Returns true if an expression is compared with a column, so that a canonical bound may stand for it.
    ///
    /// # Safety
    /// As `entries`.
    pub unsafe fn splits(self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.entries() }.flatten().any(|one| one.facts.split.is_some())
    }

    /// The same with NULL in the place of all parameters, in the current memory context.
    ///
    /// # Safety
    /// As `entries`.
    pub(super) unsafe fn without_params(self) -> Self {
        // SAFETY: the caller's promise.
        let list = unsafe {
            replaced(self.list.cast(), &mut |node, _depth| {
                if node.as_a::<pg_sys::Const>().is_some_and(|known| known.consttype == pg_sys::INTERNALOID) {
                    // The mutator leaves what a constant points to where it is.
                    return Some(copy(node.as_ptr()));
                }
                let param = node.as_a::<pg_sys::Param>()?;
                Some(kept!(pg_sys::makeNullConst(param.paramtype, param.paramtypmod, param.paramcollid)).cast())
            })
        };
        Self { list: list.cast() }
    }
}

/// Appends a list to a list.
fn appended(list: *mut pg_sys::List, one: *mut pg_sys::List) -> *mut pg_sys::List {
    // SAFETY: NIL, or a list of nodes that is made here.
    unsafe { kept!(pg_sys::lappend(list, one.cast())) }
}

/// The list for an expression of which this was found, with what is computed beside it. `None` if something beside it is
/// no part of a clock expression.
fn entry(
    expression: Tree<'_, pg_sys::Node>,
    found: Closed,
    split: Option<Split>,
    beside: [Option<Tree<'_, pg_sys::Node>>; 1 + MOST_FIXED],
) -> Option<*mut pg_sys::List> {
    let prepared = Cell::new(Prepared::NONE);
    let Closed { pace, asks_for_message, has_params, .. } = found;
    let mut facts = Facts { pace, asks_for_message, has_params, split, prepared };
    let known = new_node::<pg_sys::Const>();
    let mut list = list_of([known.cast(), executable(expression, &found)]);
    for one in beside.into_iter().flatten() {
        let found = closed(one)?;
        facts.asks_for_message |= found.asks_for_message;
        facts.has_params |= found.has_params;
        // SAFETY: a list of nodes that is made here.
        list = unsafe { kept!(pg_sys::lappend(list, executable(one, &found).cast())) };
    }
    // SAFETY: a new node, whose value is as long as it says.
    unsafe {
        let place: *mut Facts = kept!(pg_sys::palloc(size_of::<Facts>())).cast();
        place.write(facts);
        (*known).consttype = pg_sys::INTERNALOID;
        (*known).constlen = size_of::<Facts>() as i32;
        (*known).constvalue = Datum::from(place);
    }
    Some(list)
}

/// A copy of an expression, ready to be executed.
fn executable(node: Tree<'_, pg_sys::Node>, found: &Closed) -> *mut pg_sys::Node {
    if !found.is_other {
        // SAFETY: a node of a valid tree.
        return unsafe { copy(node.as_ptr()) };
    }
    let expression = as_executed(node);
    // SAFETY: a copy that nobody else knows.
    unsafe { kept!(pg_sys::fix_opfuncids(expression)) };
    expression
}

/// As `executable`, but for the functions behind operators. The planner makes the same of what the parser has left.
fn as_executed(node: Tree<'_, pg_sys::Node>) -> *mut pg_sys::Node {
    let mut replace = |node: Tree<'_, pg_sys::Node>, _depth: u32| {
        match_node! { node;
            SubLink(link) => lone_expression::of_sub_query(link).map(as_executed),
            CollateExpr(collated) => child!(collated.arg).map(|below| as_executed(below.as_node())),
            FuncExpr(call) => completed(call),
            OpExpr(call) => if functions::joins(behind(call)) { Some(joined(call)) } else { None },
            _ => None,
        }
    };
    // SAFETY: a node of a valid tree. What stands in the place of a node has the same value.
    unsafe { replaced(node.as_ptr(), &mut replace) }
}

/// A call with all of its arguments, in their order; `None` if it has them.
fn completed(call: Tree<'_, pg_sys::FuncExpr>) -> Option<*mut pg_sys::Node> {
    let Part::Call(_, arguments) = part(call.as_node())? else { return None };
    if arguments.are_plain() {
        return None;
    }
    // SAFETY: a zero of the type that `make_interval` takes in this place.
    let zero = |place: usize| unsafe {
        let (of_type, length) = if place == 6 { (pg_sys::FLOAT8OID, 8) } else { (pg_sys::INT4OID, 4) };
        kept!(pg_sys::makeConst(of_type, -1, pg_sys::InvalidOid, length, pg_sys::Datum::null(), false, true)).cast()
    };
    let ordered = arguments.ordered()?.enumerate();
    let arguments = list_of(ordered.map(|(place, argument)| argument.map_or_else(|| zero(place), as_executed)));
    // SAFETY: a call like the other one, with arguments of the same types.
    unsafe {
        let (result, collation) = (call.funcresulttype, call.inputcollid);
        let form = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
        Some(kept!(pg_sys::makeFuncExpr(call.funcid, result, arguments, call.funccollid, collation, form)).cast())
    }
}

/// A text and a value, or the other way round, both written as texts and joined.
fn joined(both: Tree<'_, pg_sys::OpExpr>) -> *mut pg_sys::Node {
    let written = |one: Tree<'_, pg_sys::Node>| {
        let coercion = new_node::<pg_sys::CoerceViaIO>();
        // SAFETY: a new node.
        unsafe {
            (*coercion).arg = as_executed(one).cast();
            (*coercion).resulttype = pg_sys::TEXTOID;
            (*coercion).resultcollid = both.opcollid;
            (*coercion).coerceformat = pg_sys::CoercionForm::COERCE_EXPLICIT_CAST;
        }
        coercion.cast()
    };
    let texts = child!(both.args).into_iter().flat_map(Tree::items).flatten().map(written);
    // SAFETY: the function takes two texts.
    unsafe { call(TEXTCAT, pg_sys::TEXTOID, texts) }
}
