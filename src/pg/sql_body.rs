//! The body of a function in SQL: the expression that it consists of. Read from the tree that the server has kept
//! (`BEGIN ATOMIC`, `RETURN`), or parsed and analysed from its text as the server does whenever it runs or inlines the
//! function. Then names stand for what they stand for at this moment. Keeps nothing, and gives back all locks.

use std::ffi::{CStr, c_void};

use arrow_cache_core::has_clock_word;
use pgrx::pg_sys::{self, NodeTag};

use super::catalog_row::CatalogRow;
use super::compat::tree::walkers;
use super::lists::{node_at, nodes};
use super::lone_expression::lone_expression;
use super::server;
use super::subtransaction;
use super::tree::Tree;

/// Longest body that is read, in bytes.
const LONGEST: usize = 64 * 1024;

/// A call of a function in SQL, whose row in pg_proc is `row`.
pub struct SqlCall<'t, 'r> {
    /// The row.
    pub row: &'r CatalogRow,
    /// The call.
    pub call: Tree<'t, pg_sys::FuncExpr>,
    /// The call shows the types of all arguments in their order, so that polymorphic ones may be told by it.
    pub shows_types: bool,
}

/// What a function computes. The parameters in it are the arguments of the function.
#[derive(Clone, Copy)]
pub struct Body {
    /// The expression, converted to the result's type.
    pub tree: *mut pg_sys::Node,
    /// It was analysed just now: the names in it may stand for something else another time.
    pub by_name: bool,
    /// A string in it has a word that stands for the time as a date or a timestamp: an analysis at another time may find another constant.
    pub has_clock_words: bool,
}

impl SqlCall<'_, '_> {
    /// The body of the function, in the current memory context. `None` if it is not one expression without relations
    /// and sub-queries, or if the server does not accept it at this moment.
    pub fn body(&self) -> Option<Body> {
        subtransaction::attempt(|| {
            // SAFETY: what the server raises is caught by `attempt`. The row is held meanwhile.
            unsafe {
                match self.row.text(pg_sys::Anum_pg_proc_prosqlbody as i16) {
                    Some(kept) => self.of_kept(kept),
                    None => self.of_text(self.row.text(pg_sys::Anum_pg_proc_prosrc as i16)?),
                }
            }
        })
    }

    /// # Safety
    /// The text must be a body that the server has written.
    unsafe fn of_kept(&self, text: &CStr) -> Option<Body> {
        if text.to_bytes().len() > LONGEST {
            return None;
        }
        // SAFETY: the server reads a tree from what it has written: a query (RETURN), or a list of lists of queries (BEGIN ATOMIC).
        unsafe {
            let mut body: *mut pg_sys::Node = kept!(pg_sys::stringToNode(text.as_ptr())).cast();
            for _ in 0..2 {
                if !body.is_null() && (*body).type_ == NodeTag::T_List {
                    let list: *const pg_sys::List = body.cast();
                    if nodes::<pg_sys::Node>(list).len() != 1 {
                        return None;
                    }
                    body = node_at(list, 0)?;
                }
            }
            if body.is_null() || (*body).type_ != NodeTag::T_Query {
                return None;
            }
            let tree = self.converted(expression_of(body.cast())?)?;
            Some(Body { tree, by_name: false, has_clock_words: false })
        }
    }

    /// # Safety
    /// The text must be the body of the function.
    unsafe fn of_text(&self, text: &CStr) -> Option<Body> {
        if text.to_bytes().len() > LONGEST {
            return None;
        }
        // SAFETY: the steps that the server takes with a body (optimizer/util/clauses.c, `inline_function`), with its own structures.
        unsafe {
            let statements = kept!(pg_sys::pg_parse_query(text.as_ptr()));
            if nodes::<pg_sys::RawStmt>(statements).len() != 1 {
                return None;
            }
            let statement: *mut pg_sys::RawStmt = node_at(statements, 0)?;
            let found = RawFindings::of((*statement).stmt)?;
            let call = if self.shows_types { self.call.as_ptr().cast() } else { std::ptr::null_mut() };
            let (row, collation) = (self.row.as_tuple(), self.call.inputcollid);
            let info = kept!(server::prepare_sql_fn_parse_info(row, call, collation));
            let state = kept!(pg_sys::make_parsestate(std::ptr::null_mut()));
            (*state).p_sourcetext = text.as_ptr();
            kept!(server::sql_fn_parser_setup(state, info));
            let query = kept!(pg_sys::transformTopLevelStmt(state, statement));
            kept!(pg_sys::free_parsestate(state));
            let tree = self.converted(expression_of(query)?)?;
            Some(Body { tree, by_name: true, has_clock_words: found.has_clock_words })
        }
    }

    /// The expression as a value of the type that the call returns (executor/functions.c, `coerce_fn_result_column`).
    ///
    /// # Safety
    /// It must be an expression of a valid tree.
    unsafe fn converted(&self, expression: *mut pg_sys::Node) -> Option<*mut pg_sys::Node> {
        // SAFETY: an expression; the server returns null if there is no such conversion.
        unsafe {
            let (no_state, place) = (std::ptr::null_mut(), -1);
            let converted = kept!(pg_sys::coerce_to_target_type(
                no_state,
                expression,
                server::exprType(expression),
                self.call.funcresulttype,
                -1,
                pg_sys::CoercionContext::COERCION_ASSIGNMENT,
                pg_sys::CoercionForm::COERCE_IMPLICIT_CAST,
                place,
            ));
            if converted.is_null() {
                return None;
            }
            kept!(pg_sys::assign_expr_collations(no_state, converted));
            Some(converted)
        }
    }
}

/// What a tree says before it is analysed.
#[derive(Default)]
struct RawFindings {
    /// It is more than one expression, or names the type of a column.
    is_refused: bool,
    has_clock_words: bool,
}

impl RawFindings {
    /// What a statement says; `None` if it is more than one expression.
    ///
    /// # Safety
    /// It must be a statement that was just parsed.
    unsafe fn of(statement: *mut pg_sys::Node) -> Option<Self> {
        let mut found = Self::default();
        // SAFETY: a valid tree; the walker gives the findings back to `visit_raw`.
        unsafe {
            if statement.is_null() || (*statement).type_ != NodeTag::T_SelectStmt {
                return None;
            }
            let select = &*statement.cast::<pg_sys::SelectStmt>();
            if !select.intoClause.is_null() || !select.lockingClause.is_null() {
                return None;
            }
            let lists = [select.fromClause, select.valuesLists];
            found.is_refused =
                lists.into_iter().any(|list| !list.is_null()) || !select.withClause.is_null() || !select.larg.is_null();
            let context: *mut c_void = (&raw mut found).cast();
            kept!(walkers::raw_expression_tree_walker(statement, Some(visit_raw), context));
        }
        (!found.is_refused).then_some(found)
    }
}

/// Called by the server's walker for each part of a tree that is not analysed.
unsafe extern "C-unwind" fn visit_raw(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: the context is the findings that `RawFindings::of` passed; the node is null or part of its tree. What the walker raises jumps over
    // this frame, which holds plain data.
    unsafe {
        if node.is_null() {
            return false;
        }
        let found = &mut *context.cast::<RawFindings>();
        match (*node).type_ {
            NodeTag::T_RangeVar | NodeTag::T_SubLink | NodeTag::T_SelectStmt => found.is_refused = true,
            NodeTag::T_TypeName => found.is_refused |= (*node.cast::<pg_sys::TypeName>()).pct_type,
            NodeTag::T_A_Const => found.has_clock_words |= tells_time(&*node.cast::<pg_sys::A_Const>()),
            _ => {}
        }
        found.is_refused || direct!(walkers::raw_expression_tree_walker(node, Some(visit_raw), context))
    }
}

fn tells_time(constant: &pg_sys::A_Const) -> bool {
    // SAFETY: a constant that is not null holds one of these nodes, which its tag tells.
    unsafe {
        if constant.isnull || constant.val.node.type_ != NodeTag::T_String {
            return false;
        }
        has_clock_word(CStr::from_ptr(constant.val.sval.sval).to_bytes())
    }
}

/// The one expression that a query without relations and sub-queries selects.
///
/// # Safety
/// A valid query, which outlives the use of the expression.
unsafe fn expression_of(query: *const pg_sys::Query) -> Option<*mut pg_sys::Node> {
    // SAFETY: the caller's promise.
    let query = unsafe { Tree::enter(query) }?;
    if query.hasSubLinks { None } else { lone_expression(query).map(Tree::as_ptr) }
}
