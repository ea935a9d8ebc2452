//! The clock expressions of a query, as a walk over it leaves them. Points into the query; keeps nothing.

use pgrx::pg_sys;

use super::expression::{Closed, closed, closed_above};
use super::split::{Comparison, Fixed, Split};
use crate::pg::tree::Tree;

/// Most clock expressions of a query.
pub const MOST: usize = 16;

/// The clock expressions of a query, in the order in which a walk has left them. Plain data.
#[derive(Clone, Copy, Debug)]
pub struct ClockExpressions {
    nodes: [*mut pg_sys::Node; MOST],
    /// What is known of each.
    found: [Closed; MOST],
    /// What the comparison splits that an expression is a side of.
    splits: [Option<Split>; MOST],
    /// The fixed columns beside these comparisons, if any has some: those of one relation, since every query that is
    /// hashed carries this.
    fixed: Fixed,
    count: usize,
    /// Texts become dates (`eligibility`, coercions), or ages are counted from today.
    reads_day: bool,
}

impl ClockExpressions {
    /// None yet.
    pub const NONE: Self = Self {
        nodes: [std::ptr::null_mut(); MOST],
        found: [Closed::NOTHING; MOST],
        splits: [None; MOST],
        fixed: Fixed::NONE,
        count: 0,
        reads_day: false,
    };

    /// Notes that texts become dates, which may be words such as `today`, or that ages are counted from today:
    /// CURRENT_DATE is one more expression.
    pub fn note_day(&mut self) {
        self.reads_day = true;
    }

    /// Returns true if CURRENT_DATE is one more expression.
    pub fn reads_day(&self) -> bool {
        self.reads_day
    }

    /// How many there are with that.
    pub fn total(&self) -> usize {
        self.count + usize::from(self.reads_day)
    }

    /// How many there are that stand in the query. There may be more than are kept.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Notes a node that the walk leaves: it asks for the time itself, or there were fewer expressions, `before`, when
    /// the walk came to it. If it is one expression with what was found below, it takes the place of that.
    #[inline(never)]
    pub fn leave(&mut self, node: Tree<'_, pg_sys::Node>, before: usize) {
        let below = before..self.count.min(MOST);
        let known = self.nodes.get(below.clone()).unwrap_or(&[]);
        let found = self.found.get(below).unwrap_or(&[]);
        if let Some(found) = closed_above(node, known, found).filter(|found| found.asks) {
            if before < MOST {
                self.nodes[before] = node.as_ptr();
                self.found[before] = found;
                self.splits[before] = None;
            }
            self.count = before + 1;
        }
    }

    /// Notes that the walk leaves a call of an operator, below which one expression was found and `before` elsewhere.
    /// If that is compared with a column, its value says no more than which rows it splits off. `query` tells the query
    /// as many levels up.
    #[inline(never)]
    pub fn compare<'t>(
        &mut self,
        call: Tree<'t, pg_sys::OpExpr>,
        before: usize,
        query: impl Fn(u32) -> Option<Tree<'t, pg_sys::Query>>,
    ) {
        if self.count == before + 1
            && let Some(expression) = self.nodes.get(before)
            && let Some(comparison) = Comparison::of(call, Some(*expression), &query)
            && comparison.has_known_interval()
        {
            let fixed = Fixed::beside(&comparison, &query);
            if self.fixed == Fixed::NONE {
                self.fixed = fixed;
            }
            let columns = if self.fixed == fixed { fixed.columns } else { Fixed::NONE.columns };
            self.splits[before] = Some(Split { fixed: columns, ..comparison.split });
            if comparison.by.is_some() {
                // The interval is needed, too.
                self.nodes[before] = comparison.call;
            }
        }
    }

    /// The fixed columns of those splits that have some.
    pub fn fixed(&self) -> &Fixed {
        &self.fixed
    }

    /// The expressions, if all of them were kept, each with what is known of it, and what it splits.
    pub(super) fn all(&self) -> Option<impl Iterator<Item = (*mut pg_sys::Node, Closed, Option<Split>)>> {
        let nodes = self.nodes.get(..self.count)?;
        Some(nodes.iter().zip(self.found).zip(self.splits).map(|((node, found), split)| (*node, found, split)))
    }
}

impl Comparison<'_> {
    /// Returns true if the interval beside the column, if there is one, is made of constants and parameters, so that it
    /// does not ask for the time.
    pub fn has_known_interval(&self) -> bool {
        self.by.is_none_or(|by| closed(by).is_some_and(|found| !found.asks))
    }
}
