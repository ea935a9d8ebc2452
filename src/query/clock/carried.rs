//! Clock expressions as trees, which are carried inside a plan like the rest of the verdict (`plan_marker`), so that a
//! kept plan can have them computed at each start. They are the server's own nodes, ready to be executed: copying a plan
//! copies them.
//!
//! It is a list with one list for each expression: first numbers, then the expression, the interval beside the column that
//! it is compared with, if there is one, and the values of the fixed columns. The numbers are flags, and of a split the
//! relation, the column, its type, the shift and the fixed columns.

use pgrx::pg_sys::{self, NodeTag, Oid, SQLValueFunctionOp};

use super::expression::{Closed, Pace, Part, behind, closed, closed_by, part};
use super::functions::{self, TEXTCAT};
use super::noted::ClockExpressions;
use super::shifted::Shift;
use super::split::{Comparison, MOST_FIXED, Split};
use crate::pg::lists::nodes;
use crate::pg::lone_expression;
use crate::pg::tree::{Tree, child, match_node};
use crate::pg::tree_making::{call, copy, list_of, list_of_numbers, new_node, replaced};

/// Flag: it keeps its value for a minute or more, whatever the parameters are.
const SETTLED: i32 = 1;
/// Flag: it asks for the arrival of the message.
const ASKS_FOR_MESSAGE: i32 = 2;
/// Flag: it names parameters.
const HAS_PARAMS: i32 = 4;
/// Flag: the bound of its split belongs to the values above.
const BELOW: i32 = 8;
/// Numbers of an expression that splits something.
const NUMBERS: usize = 5 + MOST_FIXED;

/// The clock expressions of a query, which lie in server memory. Plain data.
#[derive(Clone, Copy, Debug)]
pub struct ClockTrees {
    list: *mut pg_sys::List,
}

/// A clock expression.
#[derive(Clone, Copy)]
pub(super) struct Carried<'t> {
    flags: i32,
    /// What computes it.
    pub expression: Tree<'t, pg_sys::Node>,
    /// What its value splits.
    pub split: Option<Split>,
    /// What computes the interval that the column is away from it, if the split has one, and the values of the fixed columns.
    pub beside: [Option<Tree<'t, pg_sys::Node>>; 1 + MOST_FIXED],
}

impl Carried<'_> {
    /// Returns true if it keeps its value for a minute or more, whatever the parameters are.
    pub fn is_settled(&self) -> bool {
        self.flags & SETTLED != 0
    }

    /// Returns true if it asks for the arrival of the message.
    pub fn asks_for_message(&self) -> bool {
        self.flags & ASKS_FOR_MESSAGE != 0
    }

    /// Returns true if it names parameters.
    pub fn has_params(&self) -> bool {
        self.flags & HAS_PARAMS != 0
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
        for (node, split) in expressions.all()? {
            // SAFETY: a node of the query that the expressions were found in, which is there as long as it is planned.
            let node = unsafe { Tree::enter(node) }?;
            let (expression, by) = match split.filter(|split| split.shift != Shift::None) {
                None => (node, None),
                Some(_) => Comparison::shifted_sides(node.as_a::<pg_sys::OpExpr>()?)?,
            };
            let mut beside = [by, None, None, None, None];
            let fixed = expressions.fixed();
            for (place, value) in beside[1..].iter_mut().zip(fixed.values).filter(|_| split.is_some_and(|split| split.fixed[0] != 0)) {
                // SAFETY: as above; null where there is no column.
                *place = unsafe { Tree::enter(value) };
            }
            list = appended(list, entry(expression, split, beside)?);
        }
        if expressions.reads_day() {
            let today = new_node::<pg_sys::SQLValueFunction>();
            // SAFETY: a new node.
            let today = unsafe {
                let date = (SQLValueFunctionOp::SVFOP_CURRENT_DATE, pg_sys::DATEOID, -1);
                ((*today).op, (*today).type_, (*today).typmod) = date;
                Tree::enter(today)
            }?;
            list = appended(list, entry(today.as_node(), None, [None; 1 + MOST_FIXED])?);
        }
        Some(Self { list })
    }

    /// The tree of an expression that `closed` knows.
    pub(super) fn of_one(expression: Tree<'_, pg_sys::Node>) -> Option<Self> {
        Some(Self { list: appended(std::ptr::null_mut(), entry(expression, None, [None; 1 + MOST_FIXED])?) })
    }

    /// Those that a plan carries: a list that `list` has returned, or a copy of it; null for none.
    pub fn from_list(list: *mut pg_sys::List) -> Self {
        Self { list }
    }

    /// The list to be carried; null if there are no clock expressions.
    pub fn list(self) -> *mut pg_sys::List {
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
        unsafe { nodes::<pg_sys::List>(self.list).map(|one| Tree::enter(one).and_then(carried)) }
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
        unsafe { self.entries() }.flatten().any(|one| one.split.is_some())
    }

    /// The same with NULL in the place of all parameters, in the current memory context.
    ///
    /// # Safety
    /// As `entries`.
    pub(super) unsafe fn without_params(self) -> Self {
        // SAFETY: the caller's promise. A list of numbers is copied like any other node.
        let list = unsafe {
            replaced(self.list.cast(), &mut |node, _depth| {
                if node.tag() == NodeTag::T_IntList {
                    return Some(node.as_ptr());
                }
                let param = node.as_a::<pg_sys::Param>()?;
                Some(pg_sys::makeNullConst(param.paramtype, param.paramtypmod, param.paramcollid).cast())
            })
        };
        Self { list: list.cast() }
    }
}

/// Appends a list to a list.
fn appended(list: *mut pg_sys::List, one: *mut pg_sys::List) -> *mut pg_sys::List {
    // SAFETY: NIL, or a list of nodes that is made here.
    unsafe { pg_sys::lappend(list, one.cast()) }
}

/// The list for an expression, with what is computed beside it. `None` if it is no clock expression, or one of those is no
/// such part of one.
fn entry(
    expression: Tree<'_, pg_sys::Node>,
    split: Option<Split>,
    beside: [Option<Tree<'_, pg_sys::Node>>; 1 + MOST_FIXED],
) -> Option<*mut pg_sys::List> {
    let found = closed_by(expression, None)?;
    let mut flags = if found.pace == Pace::Settled { SETTLED } else { 0 };
    let mut all = found;
    let mut parts = vec![executable(expression, &found)];
    for one in beside.into_iter().flatten() {
        let found = closed(one)?;
        all = all.with(found);
        parts.push(executable(one, &found));
    }
    for (set, flag) in [(all.asks_for_message, ASKS_FOR_MESSAGE), (all.has_params, HAS_PARAMS), (split.is_some_and(|split| split.below), BELOW)] {
        flags |= if set { flag } else { 0 };
    }
    let mut numbers = vec![flags];
    if let Some(Split { relation, column, type_oid, shift, fixed, .. }) = split {
        let [relation, type_oid] = [relation, type_oid].map(|oid| oid.to_u32().cast_signed());
        numbers.extend([relation, i32::from(column), type_oid, shift as i32]);
        numbers.extend(fixed.map(i32::from));
    }
    Some(list_of(std::iter::once(list_of_numbers(numbers).cast()).chain(parts)))
}

/// What a list says; `None` if it is none of ours.
fn carried(list: Tree<'_, pg_sys::List>) -> Option<Carried<'_>> {
    let mut items = list.items();
    let mut found = [0; NUMBERS];
    let mut count = 0;
    match_node! { items.next()??;
        List | T_IntList (numbers) => for (place, number) in found.iter_mut().zip(numbers.numbers()) {
            *place = number;
            count += 1;
        },
        _ => return None,
    }
    let [flags, relation, column, type_oid, shift, ref fixed @ ..] = found;
    let split = if count < NUMBERS {
        None
    } else {
        let [relation, type_oid] = [relation, type_oid].map(|number| Oid::from(number.cast_unsigned()));
        let mut columns = [0; MOST_FIXED];
        for (place, column) in columns.iter_mut().zip(fixed) {
            *place = *column as i16;
        }
        let (column, shift, below) = (column as i16, Shift::numbered(shift.cast_unsigned())?, flags & BELOW != 0);
        Some(Split { relation, column, type_oid, below, shift, fixed: columns })
    };
    let expression = items.next()??;
    let mut beside = [None; 1 + MOST_FIXED];
    let skipped = usize::from(split.is_none_or(|split| split.shift == Shift::None));
    for (place, one) in beside[skipped..].iter_mut().zip(items) {
        *place = one;
    }
    Some(Carried { flags, expression, split, beside })
}

/// A copy of an expression, ready to be executed.
fn executable(node: Tree<'_, pg_sys::Node>, found: &Closed) -> *mut pg_sys::Node {
    if !found.is_other {
        // SAFETY: a node of a valid tree.
        return unsafe { copy(node.as_ptr()) };
    }
    let expression = as_executed(node);
    // SAFETY: a copy that nobody else knows.
    unsafe { pg_sys::fix_opfuncids(expression) };
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
        pg_sys::makeConst(of_type, -1, pg_sys::InvalidOid, length, pg_sys::Datum::null(), false, true).cast()
    };
    let ordered = arguments.ordered()?.enumerate();
    let arguments = list_of(ordered.map(|(place, argument)| argument.map_or_else(|| zero(place), as_executed)));
    // SAFETY: a call like the other one, with arguments of the same types.
    unsafe {
        let (result, collation) = (call.funcresulttype, call.inputcollid);
        let form = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
        Some(pg_sys::makeFuncExpr(call.funcid, result, arguments, call.funccollid, collation, form).cast())
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
