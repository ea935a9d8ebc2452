//! The body of a function in SQL that is one expression: read from the tree that the server has kept (`BEGIN ATOMIC`,
//! `RETURN`), or parsed and analysed from its text, with the steps that the server takes when it puts the body in the
//! place of a call (optimizer/util/clauses.c, `inline_function`). Names in a text stand for what they stand for at this
//! moment. What the server raises unwinds as a panic; it tells nobody anything else, since it tells that itself when it
//! reads the body. Keeps nothing.

use pgrx::PgLogLevel;
use pgrx::pg_sys::{self, NodeTag};

use super::catalog_row::CatalogRow;
use super::lists::{node_at, nodes};
use super::lone_expression::lone_expression;
use super::object_ids::SQL_LANGUAGE;
use super::server;
use super::tree::Tree;

/// Returns true if this is the row of a function in SQL whose body the server might put in the place of a call: it
/// returns one value, and runs as its caller and under the settings of its caller. Code that supports a function may
/// decide otherwise, and so may libraries that hook functions.
pub fn may_stand_in(row: &CatalogRow) -> bool {
    // SAFETY: a plain global of the backend, which libraries set when they are loaded.
    let hook = unsafe { pg_sys::needs_fmgr_hook };
    row.function().is_some_and(|form| {
        hook.is_none()
            && form.prolang.to_u32() == SQL_LANGUAGE
            && form.prokind as u8 == pg_sys::PROKIND_FUNCTION
            && !form.proretset
            && !form.prosecdef
            && form.prosupport == pg_sys::InvalidOid
            && ![pg_sys::RECORDOID, pg_sys::VOIDOID].contains(&form.prorettype)
            && row.is_null(pg_sys::Anum_pg_proc_proconfig as i16)
    })
}

/// The body of a function, as an expression of the type that the call returns, in the current memory context. The
/// parameters in it are the arguments. `None` if it is not one expression without relations and sub-queries.
///
/// # Safety
/// A valid call of the function of this row, for which `may_stand_in` is true; with all arguments in their order, if
/// some types of the function follow from those of its arguments.
pub unsafe fn body_of(call: *mut pg_sys::FuncExpr, row: &CatalogRow) -> Option<*mut pg_sys::Node> {
    // SAFETY: the caller's promise; the server's functions get structures of its own.
    unsafe {
        let query = match row.text(pg_sys::Anum_pg_proc_prosqlbody as i16) {
            Some(kept) => {
                // A query (RETURN), or a list of lists of queries (BEGIN ATOMIC).
                let mut kept: *mut pg_sys::Node = kept!(pg_sys::stringToNode(kept.as_ptr())).cast();
                for _ in 0..2 {
                    if kept.as_ref().is_some_and(|node| node.type_ == NodeTag::T_List) {
                        kept = lone::<pg_sys::Node>(kept.cast())?;
                    }
                }
                kept.cast()
            }
            None => {
                let text = row.text(pg_sys::Anum_pg_proc_prosrc as i16)?.as_ptr();
                let _unheard = Unheard::new();
                let statement: *mut pg_sys::RawStmt = lone(kept!(pg_sys::pg_parse_query(text)))?;
                let info = kept!(server::prepare_sql_fn_parse_info(row.as_tuple(), call.cast(), (*call).inputcollid));
                let state = kept!(pg_sys::make_parsestate(std::ptr::null_mut()));
                (*state).p_sourcetext = text;
                kept!(server::sql_fn_parser_setup(state, info));
                let query = kept!(pg_sys::transformTopLevelStmt(state, statement));
                kept!(pg_sys::free_parsestate(state));
                query
            }
        };
        let query = Tree::<pg_sys::Query>::enter(query).filter(|query| !query.hasSubLinks)?;
        converted(lone_expression(query)?.as_ptr(), (*call).funcresulttype)
    }
}

/// Keeps warnings from the client and the log before this is dropped.
struct Unheard([i32; 2]);

impl Unheard {
    /// From now on.
    fn new() -> Self {
        // SAFETY: variables of the backend, which has one thread.
        let levels = unsafe { [pg_sys::client_min_messages, pg_sys::log_min_messages] };
        Self::set(levels.map(|level| level.max(PgLogLevel::ERROR as i32)));
        Self(levels)
    }

    fn set([client, log]: [i32; 2]) {
        // SAFETY: as above.
        unsafe { (pg_sys::client_min_messages, pg_sys::log_min_messages) = (client, log) };
    }
}

impl Drop for Unheard {
    fn drop(&mut self) {
        Self::set(self.0);
    }
}

/// The node of a list that has one.
///
/// # Safety
/// NIL, or a list of such nodes.
unsafe fn lone<T>(list: *const pg_sys::List) -> Option<*mut T> {
    // SAFETY: the caller's promise.
    unsafe { if nodes::<T>(list).len() == 1 { node_at(list, 0) } else { None } }
}

/// An expression as a value of a type (executor/functions.c, `coerce_fn_result_column`).
///
/// # Safety
/// An expression of a valid tree.
unsafe fn converted(expression: *mut pg_sys::Node, wanted: pg_sys::Oid) -> Option<*mut pg_sys::Node> {
    // SAFETY: the caller's promise; the server returns null if there is no such conversion.
    unsafe {
        let (no_state, place) = (std::ptr::null_mut(), -1);
        let converted = kept!(pg_sys::coerce_to_target_type(
            no_state,
            expression,
            server::exprType(expression),
            wanted,
            -1,
            pg_sys::CoercionContext::COERCION_ASSIGNMENT,
            pg_sys::CoercionForm::COERCE_IMPLICIT_CAST,
            place,
        ));
        if converted.is_null() || server::exprType(converted) != wanted {
            return None;
        }
        kept!(pg_sys::assign_expr_collations(no_state, converted));
        Some(converted)
    }
}
