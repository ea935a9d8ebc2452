//! Texts that are constants of the statement, and pass through VALUES, sub-queries, WITH queries or `unnest` before
//! they are read as timestamps. All of them are in the key. What they become follows from that, and from settings in
//! the key, unless a word for the present time is among them. Reads trees, and no catalog; keeps nothing.

use arrow_cache_core::has_clock_word;
use pgrx::pg_sys::{self, RTEKind};

use super::enclosing::{Enclosing, joined};
use crate::pg::tree::{Tree, child, children, match_node};
use crate::pg::tree_search::column_at;

/// unnest(anyarray)
const UNNEST: u32 = 2331;
/// text[], varchar[] and bpchar[]
const ARRAYS_OF_TEXTS: [u32; 3] = [1009, 1015, 1014];
/// Most constants and columns that are looked at for one expression.
const MOST: u32 = 20_000;
/// Most queries and expressions that a column is handed on by.
const DEEPEST: u32 = 32;

/// Returns true if a text that becomes a value of this type tells the time by its words alone. `time` reads zones by
/// their present offset, too.
pub fn is_timestamp(type_oid: pg_sys::Oid) -> bool {
    matches!(type_oid, pg_sys::TIMESTAMPOID | pg_sys::TIMESTAMPTZOID)
}

/// Returns true if all values of an expression are texts that are constants of the statement, and none of them has a
/// word for the present time. `queries` are those around the expression.
pub fn tell_no_time<'t>(expression: Tree<'t, pg_sys::Node>, queries: &Enclosing<'t>) -> bool {
    Search { left: MOST, depth: 0 }.is_fixed(expression, queries)
}

struct Search {
    left: u32,
    depth: u32,
}

impl Search {
    fn is_fixed<'t>(&mut self, expression: Tree<'t, pg_sys::Node>, queries: &Enclosing<'t>) -> bool {
        if self.left == 0 || self.depth == DEEPEST {
            return false;
        }
        self.left -= 1;
        self.depth += 1;
        let found = match_node! { expression;
            Const(constant) => is_fixed_constant(&constant),
            Var(column) => self.is_fixed_column(column, queries),
            RelabelType(relabelled) => self.is_fixed_part(child!(relabelled.arg), queries),
            CollateExpr(collated) => self.is_fixed_part(child!(collated.arg), queries),
            ArrayExpr(array) => children!(array.elements as Node).all(|element| self.is_fixed(element, queries)),
            FuncExpr(call) => {
                call.funcid.to_u32() == UNNEST
                    && children!(call.args as Node).all(|array| self.is_fixed(array, queries))
            },
            _ => false,
        };
        self.depth -= 1;
        found
    }

    fn is_fixed_part<'t>(&mut self, part: Option<Tree<'t, pg_sys::Expr>>, queries: &Enclosing<'t>) -> bool {
        part.is_some_and(|part| self.is_fixed(part.as_node(), queries))
    }

    fn is_fixed_column<'t>(&mut self, column: Tree<'t, pg_sys::Var>, queries: &Enclosing<'t>) -> bool {
        let Some(entry) = queries.entry(&column) else { return false };
        let Some(place) = usize::try_from(column.varattno).ok().and_then(|number| number.checked_sub(1)) else {
            return false;
        };
        let queries = queries.above(column.varlevelsup);
        match entry.rtekind {
            RTEKind::RTE_VALUES => children!(entry.values_lists as List)
                .all(|row| row.items().nth(place).flatten().is_some_and(|value| self.is_fixed(value, &queries))),
            RTEKind::RTE_FUNCTION => {
                children!(entry.functions as RangeTblFunction).all(|one| one.funccolcount == 1)
                    && children!(entry.functions as RangeTblFunction)
                        .nth(place)
                        .and_then(|function| child!(function.funcexpr))
                        .is_some_and(|call| self.is_fixed(call, &queries))
            }
            RTEKind::RTE_JOIN => {
                joined(&column, entry).is_some_and(|mut columns| columns.all(|column| self.is_fixed(column, &queries)))
            }
            _ => queries.inside(entry).is_some_and(|inner| self.is_fixed_output(column.varattno, &inner)),
        }
    }

    /// As `is_fixed`, for the column with this number of the innermost query.
    fn is_fixed_output(&mut self, number: i16, queries: &Enclosing<'_>) -> bool {
        let Some(query) = queries.innermost().filter(|_| self.left > 0 && self.depth < DEEPEST) else { return false };
        self.left -= 1;
        if !query.setOperations.is_null() {
            // The entries of such a query are its branches.
            self.depth += 1;
            let found = children!(query.rtable as RangeTblEntry).all(|branch| {
                branch.rtekind == RTEKind::RTE_SUBQUERY
                    && queries.inside(branch).is_some_and(|inner| self.is_fixed_output(number, &inner))
            });
            self.depth -= 1;
            return found;
        }
        column_at(query, number).is_some_and(|column| self.is_fixed(column, queries))
    }
}

/// Returns true for NULL, and for a text or an array of texts without a word for the present time.
fn is_fixed_constant(constant: &pg_sys::Const) -> bool {
    let is_text = matches!(constant.consttype, pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID)
        || ARRAYS_OF_TEXTS.contains(&constant.consttype.to_u32());
    if !is_text || constant.constisnull {
        return is_text;
    }
    let value = constant.constvalue.cast_mut_ptr::<pg_sys::varlena>();
    // SAFETY: a constant of such a type that is not NULL is of variable length, and lives as long as its tree. What
    // lies elsewhere, or is compressed, is not read.
    unsafe {
        !pgrx::varlena::varatt_is_1b_e(value)
            && !pgrx::varlena::varatt_is_4b_c(value)
            && !has_clock_word(pgrx::varlena_to_byte_slice(value))
    }
}
