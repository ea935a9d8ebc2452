//! The body of a function in SQL: the expression that it consists of, or its query with the conversions of its columns.
//! Read from the tree that the server has kept (`BEGIN ATOMIC`, `RETURN`), or parsed and analysed from its text as the
//! server does whenever it runs or inlines the function. Then names stand for what they stand for at this moment. Keeps
//! nothing, and gives back all locks.

use std::ffi::{CStr, c_void};

use arrow_cache_core::has_clock_word;
use pgrx::pg_sys::{self, NodeTag};

use super::catalog_row::CatalogRow;
use super::compat::tree::walkers;
use super::lists::{node_at, nodes};
use super::lone_expression::lone_expression;
use super::row_type::RowType;
use super::server;
use super::subtransaction;
use super::tree::Tree;
use super::tree_search::search;

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
    /// The expression, converted to the result's type; or a list of the query, rewritten for the present role, and of
    /// what converts its columns.
    pub tree: *mut pg_sys::Node,
    /// It is a query, which may read relations.
    pub is_query: bool,
    /// It was analysed just now: the names in it may stand for something else another time.
    pub by_name: bool,
    /// A string in it has a word that stands for the time as a date or a timestamp: an analysis at another time may find another constant.
    pub has_clock_words: bool,
}

/// Which bodies are read besides expressions.
pub struct Queries<'i> {
    /// They may name relations. If not, the body is refused before anything that it names is locked.
    pub may_read: bool,
    /// Asked about the query, as it is rewritten for the present role, while all that it names is locked. False refuses
    /// it.
    pub inspect: &'i mut dyn FnMut(Tree<'_, pg_sys::Query>) -> bool,
}

impl SqlCall<'_, '_> {
    /// The body of the function, in the current memory context: an expression, or one of these queries. `None` for any
    /// other, or if the server does not accept it at this moment.
    pub fn body(&self, mut queries: Option<Queries<'_>>) -> Option<Body> {
        subtransaction::attempt(|| {
            // SAFETY: what the server raises is caught by `attempt`. The row is held meanwhile.
            unsafe {
                match self.row.text(pg_sys::Anum_pg_proc_prosqlbody as i16) {
                    Some(kept) => self.of_kept(kept, queries.as_mut()),
                    None => self.of_text(self.row.text(pg_sys::Anum_pg_proc_prosrc as i16)?, queries.as_mut()),
                }
            }
        })
    }

    /// # Safety
    /// The text must be a body that the server has written.
    unsafe fn of_kept(&self, text: &CStr, queries: Option<&mut Queries<'_>>) -> Option<Body> {
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
            let query: *mut pg_sys::Query = body.cast();
            let expression = expression_of(query).and_then(|expression| self.converted(expression));
            let (tree, is_query) = match expression {
                Some(expression) => (expression, false),
                None => {
                    let queries = queries?;
                    if (*query).commandType != pg_sys::CmdType::CMD_SELECT
                        || (!queries.may_read && names_relation(query))
                    {
                        return None;
                    }
                    kept!(pg_sys::AcquireRewriteLocks(query, true, false));
                    (self.query(query, queries)?, true)
                }
            };
            Some(Body { tree, is_query, by_name: false, has_clock_words: false })
        }
    }

    /// # Safety
    /// The text must be the body of the function.
    unsafe fn of_text(&self, text: &CStr, queries: Option<&mut Queries<'_>>) -> Option<Body> {
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
            let is_accepted = queries.as_ref().is_some_and(|queries| queries.may_read || !found.names_relation);
            if found.is_query && !is_accepted {
                return None;
            }
            let call = if self.shows_types { self.call.as_ptr().cast() } else { std::ptr::null_mut() };
            let (row, collation) = (self.row.as_tuple(), self.call.inputcollid);
            let info = kept!(server::prepare_sql_fn_parse_info(row, call, collation));
            let state = kept!(pg_sys::make_parsestate(std::ptr::null_mut()));
            (*state).p_sourcetext = text.as_ptr();
            kept!(server::sql_fn_parser_setup(state, info));
            let query = kept!(pg_sys::transformTopLevelStmt(state, statement));
            kept!(pg_sys::free_parsestate(state));
            // Several columns, or a function that returns a set, make a query of what has no FROM.
            let expression = if found.is_query { None } else { expression_of(query) };
            let (tree, is_query) = match expression.and_then(|expression| self.converted(expression)) {
                Some(expression) => (expression, false),
                None => (self.query(query, queries?)?, true),
            };
            Some(Body { tree, is_query, by_name: true, has_clock_words: found.has_clock_words })
        }
    }

    /// A query as the function runs it, with what converts its columns to those that the call returns.
    ///
    /// # Safety
    /// It must be a query that was just analysed, or read, and what it names must be locked.
    unsafe fn query(&self, query: *mut pg_sys::Query, queries: &mut Queries<'_>) -> Option<*mut pg_sys::Node> {
        // SAFETY: the step that the server takes with the queries of a function (executor/functions.c).
        unsafe {
            if (*query).commandType != pg_sys::CmdType::CMD_SELECT || !(*query).utilityStmt.is_null() {
                return None;
            }
            let rewritten = kept!(pg_sys::QueryRewrite(query));
            if nodes::<pg_sys::Query>(rewritten).len() != 1 {
                return None;
            }
            let query: *mut pg_sys::Query = node_at(rewritten, 0)?;
            if !(queries.inspect)(Tree::enter(query)?) {
                return None;
            }
            let columns: Vec<*mut pg_sys::Node> = nodes::<pg_sys::TargetEntry>((*query).targetList)
                .filter(|column| !(**column).resjunk)
                .map(|column| (*column).expr.cast())
                .collect();
            let conversions = self.conversions(&columns)?;
            let list = conversions.into_iter().fold(rewritten, |list, one| kept!(pg_sys::lappend(list, one.cast())));
            Some(list.cast())
        }
    }

    /// What converts the columns of a query to those of the result (executor/functions.c, `check_sql_fn_retval`).
    /// `None` if they do not fit.
    ///
    /// # Safety
    /// They must be expressions of a valid query.
    unsafe fn conversions(&self, columns: &[*mut pg_sys::Node]) -> Option<Vec<*mut pg_sys::Node>> {
        let whole = (self.call.funcresulttype, -1);
        // SAFETY: expressions, and a call of a function that exists. The server copies the descriptor into the current
        // memory context.
        unsafe {
            if let [column] = columns
                && let Some(conversion) = conversion(*column, whole)
            {
                return Some(vec![conversion]);
            }
            let mut descriptor = std::ptr::null_mut();
            kept!(pg_sys::get_expr_result_type(self.call.as_ptr().cast(), std::ptr::null_mut(), &raw mut descriptor));
            if descriptor.is_null() {
                return None;
            }
            let returned: Vec<_> = RowType::of(descriptor)
                .attributes()
                .filter(|attribute| !attribute.attisdropped)
                .map(|attribute| (attribute.atttypid, attribute.atttypmod))
                .collect();
            if returned.len() != columns.len() {
                return None;
            }
            columns.iter().zip(returned).map(|(column, to)| conversion(*column, to)).collect()
        }
    }

    /// The expression as a value of the type that the call returns (executor/functions.c, `coerce_fn_result_column`).
    ///
    /// # Safety
    /// It must be an expression of a valid tree.
    unsafe fn converted(&self, expression: *mut pg_sys::Node) -> Option<*mut pg_sys::Node> {
        // SAFETY: the caller's promise.
        unsafe { converted_to(expression, (self.call.funcresulttype, -1)) }
    }
}

/// What converts the values of a column to a type with a modifier: an expression of a placeholder for them.
///
/// # Safety
/// It must be an expression of a valid tree.
unsafe fn conversion(column: *mut pg_sys::Node, to: (pg_sys::Oid, i32)) -> Option<*mut pg_sys::Node> {
    // SAFETY: a zeroed node of the right size and tag, with the type of an expression, is a valid placeholder.
    unsafe {
        let value: *mut pg_sys::CaseTestExpr = kept!(pg_sys::palloc0(size_of::<pg_sys::CaseTestExpr>())).cast();
        (*value).xpr.type_ = NodeTag::T_CaseTestExpr;
        (*value).typeId = server::exprType(column);
        (*value).typeMod = server::exprTypmod(column);
        (*value).collation = server::exprCollation(column);
        converted_to(value.cast(), to)
    }
}

/// The expression as a value of a type with a modifier; `None` if there is no such conversion.
///
/// # Safety
/// It must be an expression of a valid tree.
unsafe fn converted_to(expression: *mut pg_sys::Node, (to, modifier): (pg_sys::Oid, i32)) -> Option<*mut pg_sys::Node> {
    // SAFETY: an expression; the server returns null if there is no such conversion.
    unsafe {
        let (no_state, place) = (std::ptr::null_mut(), -1);
        let converted = kept!(pg_sys::coerce_to_target_type(
            no_state,
            expression,
            server::exprType(expression),
            to,
            modifier,
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

/// What a tree says before it is analysed.
#[derive(Default)]
struct RawFindings {
    /// It is more than one expression: it reads a relation, or has a sub-query.
    is_query: bool,
    /// It names something in FROM: a relation, or a query of WITH.
    names_relation: bool,
    has_clock_words: bool,
    /// It names the type of a column.
    names_column_types: bool,
}

impl RawFindings {
    /// What a statement says; `None` if it is none that a body may consist of.
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
            found.is_query =
                lists.into_iter().any(|list| !list.is_null()) || !select.withClause.is_null() || !select.larg.is_null();
            let context: *mut c_void = (&raw mut found).cast();
            kept!(walkers::raw_expression_tree_walker(statement, Some(visit_raw), context));
        }
        (!found.names_column_types).then_some(found)
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
            NodeTag::T_RangeVar => (found.is_query, found.names_relation) = (true, true),
            NodeTag::T_SubLink | NodeTag::T_SelectStmt => found.is_query = true,
            NodeTag::T_TypeName => found.names_column_types |= (*node.cast::<pg_sys::TypeName>()).pct_type,
            NodeTag::T_A_Const => found.has_clock_words |= tells_time(&*node.cast::<pg_sys::A_Const>()),
            _ => {}
        }
        found.names_column_types || direct!(walkers::raw_expression_tree_walker(node, Some(visit_raw), context))
    }
}

/// Does an analysed query name a relation?
///
/// # Safety
/// A valid query.
unsafe fn names_relation(query: *mut pg_sys::Query) -> bool {
    // SAFETY: the caller's promise.
    let found = unsafe {
        search(query.cast(), 0, &mut |node| {
            node.as_a::<pg_sys::RangeTblEntry>().is_some_and(|entry| entry.rtekind == pg_sys::RTEKind::RTE_RELATION)
        })
    };
    // One that nests too deeply may.
    found.unwrap_or(true)
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
