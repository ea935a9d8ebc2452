//! Clock expressions as trees, which are carried inside a plan with the rest of the verdict (`plan_marker`), so that a
//! kept plan can have them computed at each start. They are the server's own nodes, ready to be executed. Copying a plan
//! copies them, but for what was made ready: where a copy lies, it is made ready once.

use std::cell::Cell;

use pgrx::pg_sys::{self, ParamKind, SQLValueFunctionOp};

use super::expression::{Closed, closed, joins, lacks_arguments};
use super::noted::ClockExpressions;
use super::sides::{Shift, Sides};
use super::split::Split;
use crate::pg::catalog_row::CatalogRow;
use crate::pg::computing::prepare;
use crate::pg::lists::nodes;
use crate::pg::lone_expression;
use crate::pg::tree::{Tree, child, match_node};
use crate::pg::tree_making::{call, copy, list_of, new_node, replaced};

/// The clock expressions of a query, which lie in server memory. Plain data.
#[derive(Clone, Copy, Debug)]
pub struct ClockTrees {
    first: *mut Carried,
    count: usize,
}

/// A clock expression, with what is known of it.
pub(super) struct Carried {
    /// Its value may stay the same for a minute or more.
    pub may_settle: bool,
    /// It asks for the arrival of the message.
    pub asks_for_message: bool,
    /// It, or something beside it, names parameters.
    pub has_params: bool,
    /// What its value splits.
    pub split: Option<Split>,
    expression: *mut pg_sys::Node,
    /// The interval beside the column that it is compared with; null if there is none.
    by: *mut pg_sys::Node,
    /// The conditions beside the comparison (`conditions`).
    pub conditions: *mut pg_sys::List,
    /// The expression, ready to be computed: null if making it ready has failed, `None` if nobody has tried.
    prepared: Cell<Option<*mut pg_sys::ExprState>>,
}

impl Carried {
    /// An expression of which this was found. `None` if a node beside it is no part of a clock expression.
    fn of(
        expression: Tree<'_, pg_sys::Node>,
        found: Closed,
        split: Option<Split>,
        by: Option<Tree<'_, pg_sys::Node>>,
        conditions: *mut pg_sys::List,
    ) -> Option<Self> {
        let Closed { may_settle, mut asks_for_message, mut has_params, .. } = found;
        let mut interval = std::ptr::null_mut();
        if let Some(by) = by {
            let found = closed(by)?;
            asks_for_message |= found.asks_for_message;
            has_params |= found.has_params;
            interval = executable(by, &found);
        }
        has_params |= !conditions.is_null();
        Some(Self {
            may_settle,
            asks_for_message,
            has_params,
            split,
            expression: executable(expression, &found),
            by: interval,
            conditions,
            prepared: Cell::new(None),
        })
    }

    /// The same with other nodes.
    ///
    /// # Safety
    /// As `ClockTrees::entries`; `other` must make a node of the same kind of null, a node or a list.
    #[inline(always)]
    unsafe fn with(&self, other: impl Fn(*mut pg_sys::Node) -> *mut pg_sys::Node) -> Self {
        Self {
            expression: other(self.expression),
            by: other(self.by),
            conditions: other(self.conditions.cast()).cast(),
            prepared: Cell::new(None),
            ..*self
        }
    }

    /// What computes it.
    pub fn expression(&self) -> Option<Tree<'_, pg_sys::Node>> {
        // SAFETY: made here; whoever has the entry vouches for its memory.
        unsafe { Tree::enter(self.expression) }
    }

    /// What computes the interval that the column is away from it, if the split has one.
    pub fn by(&self) -> Option<Tree<'_, pg_sys::Node>> {
        // SAFETY: as above.
        unsafe { Tree::enter(self.by) }
    }

    /// The expression, ready to be computed as long as it lives; `None` if that has failed. What it raises jumps over
    /// this frame.
    ///
    /// # Safety
    /// As `prepare`.
    pub unsafe fn prepared(&self) -> Option<*mut pg_sys::ExprState> {
        if self.prepared.get().is_none() {
            self.prepared.set(Some(std::ptr::null_mut()));
            // SAFETY: the node is a chunk of the context in which all of the entry lies; the caller's promise.
            unsafe {
                let own = pg_sys::GetMemoryChunkContext(self.expression.cast());
                let caller = pg_sys::MemoryContextSwitchTo(own);
                self.prepared.set(Some(prepare(self.expression)));
                pg_sys::MemoryContextSwitchTo(caller);
            }
        }
        self.prepared.get().filter(|state| !state.is_null())
    }
}

impl ClockTrees {
    /// Those of a query that does not ask for the time.
    pub const NONE: Self = Self { first: std::ptr::null_mut(), count: 0 };

    /// The trees for the clock expressions of a query, in the current memory context. `None` if they are too many.
    pub fn of(expressions: &ClockExpressions) -> Option<Self> {
        if expressions.total() == 0 {
            return Some(Self::NONE);
        }
        let mut entries = Vec::with_capacity(expressions.total());
        for (node, found, split) in expressions.all()? {
            // SAFETY: a node of the query that the expressions were found in, which is there as long as it is planned.
            let node = unsafe { Tree::enter(node) }?;
            let (expression, by) = match split.filter(|split| split.shift != Shift::None) {
                None => (node, None),
                Some(_) => {
                    let sides = Sides::shifted(node.as_a::<pg_sys::OpExpr>()?)?;
                    (sides.with, sides.by)
                }
            };
            let is_compared = split.is_some();
            let conditions =
                if is_compared { expressions.conditions_beside(node.as_ptr()) } else { std::ptr::null_mut() };
            entries.push(Carried::of(expression, found, split, by, conditions)?);
        }
        if expressions.reads_day() {
            let today = new_node::<pg_sys::SQLValueFunction>();
            // SAFETY: a new node.
            let today = unsafe {
                let date = (SQLValueFunctionOp::SVFOP_CURRENT_DATE, pg_sys::DATEOID, -1);
                ((*today).op, (*today).type_, (*today).typmod) = date;
                Tree::enter(today)
            }?;
            entries.push(Carried::of(today.as_node(), closed(today.as_node())?, None, None, std::ptr::null_mut())?);
        }
        Some(Self::made_of(entries))
    }

    fn made_of(entries: Vec<Carried>) -> Self {
        let count = entries.len();
        // SAFETY: as many bytes as are written.
        unsafe {
            let first: *mut Carried = kept!(pg_sys::palloc(count * size_of::<Carried>())).cast();
            for (place, entry) in entries.into_iter().enumerate() {
                first.add(place).write(entry);
            }
            Self { first, count }
        }
    }

    /// A copy in the current memory context. What the server raises jumps over the frame.
    ///
    /// # Safety
    /// As `entries`.
    pub unsafe fn copied(self) -> Self {
        if self.is_none() {
            return self;
        }
        // SAFETY: the caller's promise; as many bytes as are written. Entries have no destructors.
        unsafe {
            let first: *mut Carried = direct!(pg_sys::palloc0(self.count * size_of::<Carried>())).cast();
            for place in 0..self.count {
                let copy = |node: *mut pg_sys::Node| direct!(pg_sys::copyObjectImpl(node.cast())).cast();
                first.add(place).write((*self.first.add(place)).with(copy));
            }
            Self { first, ..self }
        }
    }

    /// Returns true if there are no clock expressions.
    pub fn is_none(self) -> bool {
        self.count == 0
    }

    /// The expressions.
    ///
    /// # Safety
    /// The memory context in which they lie must still be there, for `'t`.
    pub(super) unsafe fn entries<'t>(self) -> &'t [Carried] {
        if self.is_none() {
            return &[];
        }
        // SAFETY: `made_of` and `copied` have written so many; the caller promises that they are still there.
        unsafe { std::slice::from_raw_parts(self.first, self.count) }
    }

    /// How many expressions there are.
    pub fn count(self) -> usize {
        self.count
    }

    /// The same with NULL in the place of all parameters, in the current memory context.
    ///
    /// # Safety
    /// As `entries`.
    pub(super) unsafe fn without_params(self) -> Self {
        let nulls = |node: Tree<'_, pg_sys::Node>, _depth: u32| {
            let param = node.as_a::<pg_sys::Param>().filter(|param| param.paramkind == ParamKind::PARAM_EXTERN)?;
            // SAFETY: a node of the type of the parameter.
            Some(unsafe { kept!(pg_sys::makeNullConst(param.paramtype, param.paramtypmod, param.paramcollid)).cast() })
        };
        // SAFETY: the caller's promise.
        unsafe {
            let one = |entry: &Carried| entry.with(|node| replaced(node, &mut { nulls }));
            Self::made_of(self.entries().iter().map(one).collect())
        }
    }
}

/// textcat(text, text)
const TEXTCAT: u32 = 1258;

/// A copy of an expression of which this was found, ready to be executed.
pub(super) fn executable(node: Tree<'_, pg_sys::Node>, found: &Closed) -> *mut pg_sys::Node {
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
            OpExpr(call) => if joins(call) { Some(joined(call)) } else { None },
            _ => None,
        }
    };
    // SAFETY: a node of a valid tree. What stands in the place of a node has the same value.
    unsafe { replaced(node.as_ptr(), &mut replace) }
}

/// A call with all of its arguments, in their order; `None` if it has them.
fn completed(call: Tree<'_, pg_sys::FuncExpr>) -> Option<*mut pg_sys::Node> {
    let given = child!(call.args).filter(|_| lacks_arguments(call))?;
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::PROCOID, call.funcid)?;
    // SAFETY: a call of the function whose row is held; a list of expressions. The call that is made is like the other.
    unsafe {
        let all = kept!(pg_sys::expand_function_arguments(given.as_ptr(), false, call.funcresulttype, row.as_tuple()));
        let arguments = list_of(nodes(all).filter_map(|one| Tree::enter(one)).map(as_executed));
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
