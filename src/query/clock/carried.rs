//! Clock expressions as trees, which are carried inside a plan with the rest of the verdict (`plan_marker`), so that a
//! kept plan can have them computed at each start. They are the server's own nodes, ready to be executed. Copying a
//! plan copies them, but for what was made ready: where a copy lies, it is made ready once.

use std::cell::Cell;

use pgrx::pg_sys::{self, SQLValueFunctionOp};

use super::conditions;
use super::cuts::MOST;
use super::expression::{closed, joins, lacks_arguments};
use super::noted::{ClockExpressions, Noted};
use crate::pg::catalog_row::CatalogRow;
use crate::pg::computing::prepare;
use crate::pg::lists::nodes;
use crate::pg::lone_expression;
use crate::pg::tree::{Tree, child, match_node};
use crate::pg::tree_making::{call, list_of, new_node, replaced};

/// The clock expressions of a query, which lie in server memory. Plain data.
#[derive(Clone, Copy, Debug)]
pub struct ClockTrees {
    first: *mut Carried,
    count: usize,
}

/// A clock expression, with what is known of it.
pub(super) struct Carried {
    /// The expression, and what it is compared with.
    pub noted: Noted,
    /// The conditions beside the comparison (`conditions`).
    pub conditions: *mut pg_sys::List,
    /// The expression and the interval, ready to be computed; each is null if there is none, or if making it ready has
    /// failed. `None` if nobody has tried.
    prepared: Cell<Option<[*mut pg_sys::ExprState; 2]>>,
    /// Where the comparison of a length last turned.
    pub turned: Cell<i64>,
}

impl Carried {
    fn new(noted: Noted, conditions: *mut pg_sys::List) -> Self {
        Self { noted, conditions, prepared: Cell::new(None), turned: Cell::new(0) }
    }

    /// The same with other nodes.
    ///
    /// # Safety
    /// As `ClockTrees::entries`; `other` must make a node of the same kind of null, a node or a list.
    #[inline(always)]
    unsafe fn with(&self, other: impl Fn(*mut pg_sys::Node) -> *mut pg_sys::Node) -> Self {
        let noted = Noted { expression: other(self.noted.expression), by: other(self.noted.by), ..self.noted };
        Self::new(noted, other(self.conditions.cast()).cast())
    }

    /// What computes it.
    pub fn expression(&self) -> Option<Tree<'_, pg_sys::Node>> {
        // SAFETY: made here; whoever has the entry vouches for its memory.
        unsafe { Tree::enter(self.noted.expression) }
    }

    /// The expression and the interval, ready to be computed as long as it lives. What it raises jumps over the frame.
    ///
    /// # Safety
    /// As `prepare`.
    pub unsafe fn prepared(&self) -> [*mut pg_sys::ExprState; 2] {
        if let Some(prepared) = self.prepared.get() {
            return prepared;
        }
        self.prepared.set(Some([std::ptr::null_mut(); 2]));
        // SAFETY: the node is a chunk of the context in which all of the entry lies; the caller's promise.
        unsafe {
            let own = pg_sys::GetMemoryChunkContext(self.noted.expression.cast());
            let caller = pg_sys::MemoryContextSwitchTo(own);
            let prepared = [prepare(self.noted.expression), prepare(self.noted.by)];
            pg_sys::MemoryContextSwitchTo(caller);
            self.prepared.set(Some(prepared));
            prepared
        }
    }
}

impl ClockTrees {
    /// Those of a query that does not ask for the time.
    pub const NONE: Self = Self { first: std::ptr::null_mut(), count: 0 };

    /// The trees for the clock expressions of a query, in the current memory context. `None` if they are too many.
    pub fn of(expressions: &ClockExpressions) -> Option<Self> {
        let ClockExpressions { noted, query, reads_day } = expressions;
        let total = noted.len() + usize::from(*reads_day);
        if total == 0 || total > MOST {
            return (total == 0).then_some(Self::NONE);
        }
        let today = new_node::<pg_sys::SQLValueFunction>();
        // SAFETY: a new node; the query that the expressions were found in, which is there as long as it is planned.
        let (today, query) = unsafe {
            let date = (SQLValueFunctionOp::SVFOP_CURRENT_DATE, pg_sys::DATEOID, -1);
            ((*today).op, (*today).type_, (*today).typmod) = date;
            (Tree::enter(today)?.as_node(), Tree::enter(*query))
        };
        let today = reads_day.then(|| closed(today).map(|found| Noted::of(today, found))).flatten();
        let entry = |noted: &Noted| {
            let conditions = query.filter(|_| noted.table > 0).map(|query| conditions::of_table(query, noted.table));
            let conditions = conditions.unwrap_or(std::ptr::null_mut());
            // SAFETY: nodes of that query, or a new one.
            unsafe { Carried::new(*noted, conditions).with(|node| executable(node)) }
        };
        Some(Self::made_of(noted.iter().chain(&today).map(entry).collect()))
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
}

/// textcat(text, text)
const TEXTCAT: u32 = 1258;

/// A copy of an expression, or of conditions, ready to be executed; null of null.
///
/// # Safety
/// Null, or a part of a valid tree.
pub unsafe fn executable(node: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: the caller's promise; a copy that nobody else knows.
    unsafe {
        let expression = Tree::enter(node).map_or(node, as_executed);
        kept!(pg_sys::fix_opfuncids(expression));
        expression
    }
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
