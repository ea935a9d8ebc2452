//! The body of a function in SQL, as an expression: the one that it consists of, or a sub-query in its place. Read from the tree that the server
//! has kept (`BEGIN ATOMIC`, `RETURN`), or parsed and analysed from its text as the server does whenever it runs or inlines the function. Then
//! names stand for what they stand for at this moment. Keeps nothing, and gives back all locks.

use std::ffi::{CStr, c_void};

use pgrx::pg_sys::{self, NodeTag};

use super::catalog_row::CatalogRow;
use super::compat::tree::walkers;
use super::error_passing::guarded;
use super::lists::{node_at, nodes};
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

/// A body that computes one value.
#[derive(Clone, Copy)]
pub struct Body {
    /// The expression, converted to the result's type. Its parameters are the arguments of the function.
    pub expression: *mut pg_sys::Node,
    /// It is a query, which may read relations: the expression is a sub-query, rewritten for the present role.
    pub is_query: bool,
    /// It was analysed just now: the names in it may stand for something else another time.
    pub by_name: bool,
    /// A string in it has a word that stands for the time as a date or a timestamp: an analysis at another time may find another constant.
    pub has_clock_words: bool,
}

/// Words that date and time types read as the present time (utils/adt/datetime.c).
const CLOCK_WORDS: [&[u8]; 4] = [b"now", b"today", b"tomorrow", b"yesterday"];

/// Asked about the query that a body is, as it is rewritten for the present role, while all that it names is locked. False refuses it.
pub type Inspect<'i> = &'i mut dyn FnMut(Tree<'_, pg_sys::Query>) -> bool;

impl SqlCall<'_, '_> {
    /// The body of the function, in the current memory context. Without `inspect`, only one that is an expression. `None` for any other, or if the
    /// server does not accept it at this moment, or if it would have to wait for a lock.
    pub fn body(&self, mut inspect: Option<Inspect<'_>>) -> Option<Body> {
        subtransaction::attempt(|| {
            // SAFETY: what the server raises is caught by `attempt`. The row is held meanwhile.
            unsafe {
                match self.row.text(pg_sys::Anum_pg_proc_prosqlbody as i16) {
                    Some(kept) => self.of_kept(kept, &mut inspect),
                    None => self.of_text(self.row.text(pg_sys::Anum_pg_proc_prosrc as i16)?, &mut inspect),
                }
            }
        })
    }

    /// # Safety
    /// The text must be a body that the server has written.
    unsafe fn of_kept(&self, text: &CStr, inspect: &mut Option<Inspect<'_>>) -> Option<Body> {
        if text.to_bytes().len() > LONGEST {
            return None;
        }
        // SAFETY: the server reads a tree from what it has written: a query (RETURN), or a list of lists of queries (BEGIN ATOMIC).
        unsafe {
            let mut body: *mut pg_sys::Node = pg_sys::stringToNode(text.as_ptr()).cast();
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
            let (expression, is_query) = match expression_of(&*query) {
                Some(expression) => (expression, false),
                None => {
                    pg_sys::AcquireRewriteLocks(query, true, false);
                    (sub_query(query, inspect.as_mut()?)?, true)
                }
            };
            Some(Body { expression: self.converted(expression)?, is_query, by_name: false, has_clock_words: false })
        }
    }

    /// # Safety
    /// The text must be the body of the function.
    unsafe fn of_text(&self, text: &CStr, inspect: &mut Option<Inspect<'_>>) -> Option<Body> {
        if text.to_bytes().len() > LONGEST {
            return None;
        }
        // SAFETY: the steps that the server takes with a body (optimizer/util/clauses.c, `inline_function`), with its own structures.
        unsafe {
            let statements = guarded!(server::pg_parse_query(text.as_ptr()));
            if nodes::<pg_sys::RawStmt>(statements).len() != 1 {
                return None;
            }
            let statement: *mut pg_sys::RawStmt = node_at(statements, 0)?;
            let found = RawFindings::of((*statement).stmt)?;
            if found.is_query && inspect.is_none() {
                return None;
            }
            let call = if self.shows_types { self.call.as_ptr().cast() } else { std::ptr::null_mut() };
            let (row, collation) = (self.row.as_tuple(), self.call.inputcollid);
            let info = guarded!(server::prepare_sql_fn_parse_info(row, call, collation));
            let state = pg_sys::make_parsestate(std::ptr::null_mut());
            (*state).p_sourcetext = text.as_ptr();
            guarded!(server::sql_fn_parser_setup(state, info));
            let query = pg_sys::transformTopLevelStmt(state, statement);
            pg_sys::free_parsestate(state);
            let expression =
                if found.is_query { sub_query(query, inspect.as_mut()?)? } else { expression_of(&*query)? };
            let (is_query, has_clock_words) = (found.is_query, found.has_clock_words);
            Some(Body { expression: self.converted(expression)?, is_query, by_name: true, has_clock_words })
        }
    }

    /// The expression as a value of the type that the call returns (executor/functions.c, `coerce_fn_result_column`).
    ///
    /// # Safety
    /// It must be an expression of a valid tree.
    unsafe fn converted(&self, expression: *mut pg_sys::Node) -> Option<*mut pg_sys::Node> {
        // SAFETY: an expression; the server returns null if there is no such conversion.
        unsafe {
            let (no_state, modifier, place) = (std::ptr::null_mut(), -1, -1);
            let converted = pg_sys::coerce_to_target_type(
                no_state,
                expression,
                pg_sys::exprType(expression),
                self.call.funcresulttype,
                modifier,
                pg_sys::CoercionContext::COERCION_ASSIGNMENT,
                pg_sys::CoercionForm::COERCE_IMPLICIT_CAST,
                place,
            );
            if converted.is_null() {
                return None;
            }
            pg_sys::assign_expr_collations(no_state, converted);
            Some(converted)
        }
    }
}

/// What a tree says before it is analysed.
#[derive(Default)]
struct RawFindings {
    /// It is more than one expression: it reads a relation, or has a sub-query.
    is_query: bool,
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
            guarded!(walkers::raw_expression_tree_walker(statement, Some(visit_raw), context));
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
            NodeTag::T_SubLink | NodeTag::T_RangeVar | NodeTag::T_SelectStmt => found.is_query = true,
            NodeTag::T_TypeName => found.names_column_types |= (*node.cast::<pg_sys::TypeName>()).pct_type,
            NodeTag::T_A_Const => found.has_clock_words |= has_clock_word(&*node.cast::<pg_sys::A_Const>()),
            _ => {}
        }
        found.names_column_types
            || super::error_passing::direct!(walkers::raw_expression_tree_walker(node, Some(visit_raw), context))
    }
}

fn has_clock_word(constant: &pg_sys::A_Const) -> bool {
    // SAFETY: a constant that is not null holds one of these nodes, which its tag tells.
    unsafe {
        if constant.isnull || constant.val.node.type_ != NodeTag::T_String {
            return false;
        }
        let text = CStr::from_ptr(constant.val.sval.sval).to_bytes();
        CLOCK_WORDS.iter().any(|word| text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word)))
    }
}

/// A query in the place of an expression: what a function gives that runs it and returns the first row's only column.
///
/// # Safety
/// It must be a query that was just analysed, or read, and what it names must be locked.
unsafe fn sub_query(query: *mut pg_sys::Query, inspect: &mut Inspect<'_>) -> Option<*mut pg_sys::Node> {
    // SAFETY: the step that the server takes with the queries of a function (executor/functions.c). A zeroed node of the right size and tag,
    // with a query, is a valid sub-query.
    unsafe {
        if (*query).commandType != pg_sys::CmdType::CMD_SELECT || !(*query).utilityStmt.is_null() {
            return None;
        }
        let rewritten = guarded!(server::QueryRewrite(query));
        if nodes::<pg_sys::Query>(rewritten).len() != 1 {
            return None;
        }
        let query: *mut pg_sys::Query = node_at(rewritten, 0)?;
        let columns = nodes::<pg_sys::TargetEntry>((*query).targetList);
        let mut shown = columns.map(|column| !(*column).resjunk);
        if shown.next() != Some(true) || shown.any(|is_shown| is_shown) || !inspect(Tree::enter(query)?) {
            return None;
        }
        let link: *mut pg_sys::SubLink = pg_sys::palloc0(std::mem::size_of::<pg_sys::SubLink>()).cast();
        (*link).xpr.type_ = NodeTag::T_SubLink;
        (*link).subLinkType = pg_sys::SubLinkType::EXPR_SUBLINK;
        (*link).subselect = query.cast();
        (*link).location = -1;
        Some(link.cast())
    }
}

/// The one expression that a query without relations selects.
fn expression_of(query: &pg_sys::Query) -> Option<*mut pg_sys::Node> {
    let lists = [
        query.cteList,
        query.rtable,
        query.groupClause,
        query.groupingSets,
        query.windowClause,
        query.distinctClause,
        query.sortClause,
        query.rowMarks,
    ];
    let parts = [query.havingQual, query.limitOffset, query.limitCount, query.setOperations, query.utilityStmt];
    let has_more = query.commandType != pg_sys::CmdType::CMD_SELECT
        || query.hasAggs
        || query.hasWindowFuncs
        || query.hasTargetSRFs
        || query.hasSubLinks
        || lists.into_iter().any(|list| !list.is_null())
        || parts.into_iter().any(|part| !part.is_null());
    // SAFETY: a valid query, whose join tree is null or valid, and whose list holds its columns.
    unsafe {
        let reads = query.jointree.as_ref().is_some_and(|from| !from.fromlist.is_null() || !from.quals.is_null());
        if has_more || reads || nodes::<pg_sys::TargetEntry>(query.targetList).len() != 1 {
            return None;
        }
        let column: *mut pg_sys::TargetEntry = node_at(query.targetList, 0)?;
        Some((*column).expr.cast())
    }
}
