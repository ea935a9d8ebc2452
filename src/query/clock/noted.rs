//! The clock expressions of a query, as a walk over it leaves them. Points into the query; keeps nothing.

use pgrx::pg_sys;

use super::column_comparisons::{Comparison, Split};
use super::expression::{Closed, closed};
use crate::pg::tree::Tree;
use crate::query::enclosing::Enclosing;

/// A clock expression. Plain data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noted {
    pub expression: *mut pg_sys::Node,
    /// What is known of it, and of the interval.
    pub found: Closed,
    /// What is split by the comparison of which it is one side.
    pub split: Option<Split>,
    /// The interval that the column is away from it, or the comparison that turns at one (`lengths`); null if there is
    /// none.
    pub by: *mut pg_sys::Node,
    /// The number of the table of the outermost query that has the column; 0 if there is none.
    pub table: i32,
}

impl Noted {
    /// An expression that nothing is known to be compared with.
    pub fn of(expression: Tree<'_, pg_sys::Node>, found: Closed) -> Self {
        Self { expression: expression.as_ptr(), found, split: None, by: std::ptr::null_mut(), table: 0 }
    }
}

/// The clock expressions of a query, in the order in which a walk has left them.
#[derive(Debug)]
pub struct ClockExpressions {
    pub(super) noted: Vec<Noted>,
    /// The outermost query, if a column of it is compared; null otherwise.
    pub(super) query: *mut pg_sys::Query,
    /// Texts become dates (`eligibility`, coercions), or ages are counted from today.
    pub(super) reads_day: bool,
}

/// How much had been noted at some moment of a walk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ClockMark {
    count: usize,
    reads_day: bool,
}

impl ClockExpressions {
    /// None yet.
    pub const NONE: Self = Self { noted: Vec::new(), query: std::ptr::null_mut(), reads_day: false };

    /// Notes that texts become dates, which may be words such as `today`, or that ages are counted from today:
    /// CURRENT_DATE is one more expression.
    pub fn note_day(&mut self) {
        self.reads_day = true;
    }

    /// How many there are that stand in the query.
    pub fn count(&self) -> usize {
        self.noted.len()
    }

    /// How much has been noted so far.
    pub fn mark(&self) -> ClockMark {
        ClockMark { count: self.count(), reads_day: self.reads_day }
    }

    /// Forgets what was noted since: the walk leaves a column of a sub-query that nothing uses.
    pub fn go_back(&mut self, before: ClockMark) {
        self.noted.truncate(before.count);
        self.reads_day = before.reads_day;
    }

    /// Notes a node that the walk leaves: it asks for the time itself, or there were fewer expressions, `before`, when
    /// the walk came to it. If it is one expression with what was found below, it takes the place of that.
    #[inline(never)]
    pub fn leave(&mut self, node: Tree<'_, pg_sys::Node>, before: usize) {
        if let Some(found) = closed(node).filter(|found| found.asks) {
            self.noted.truncate(before);
            self.noted.push(Noted::of(node, found));
        }
    }

    /// Notes that the walk leaves a call of an operator, below which one expression was found and `before` elsewhere.
    /// If that is compared with a column, its value says no more than which rows it splits off. `queries` are those
    /// around the call.
    #[inline(never)]
    pub fn compare<'t>(&mut self, call: Tree<'t, pg_sys::OpExpr>, before: usize, queries: &Enclosing<'t>) {
        let [noted] = self.noted.get_mut(before..).unwrap_or(&mut []) else { return };
        let Some(found) = Comparison::of(call, |node| node.as_ptr() == noted.expression, queries) else { return };
        noted.split = Some(found.split);
        let divisor = found.length.as_ref().and_then(|length| length.divided).map(|(_, by)| by);
        for by in [found.by, divisor].into_iter().flatten() {
            noted.by = found.length.as_ref().map_or(by.as_ptr(), |length| length.of_interval(call));
            noted.found = closed(by).map_or(noted.found, |constant| noted.found.with(constant));
        }
        if let Some(outermost) = queries.innermost().filter(|_| queries.above(1).innermost().is_none()) {
            self.query = outermost.as_ptr();
            noted.table = found.table;
        }
    }
}
