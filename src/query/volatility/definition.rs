//! What a built-in function, or an aggregate of a trusted extension, consists of today. Its number tells what initdb
//! made it, but a superuser may give it another body, and an aggregate other parts. Code of the server's own is called
//! by its number, whatever its row in the catalog says. The rest is read from the catalogs: the body of a function in
//! SQL, the parts of an aggregate, and what the planner adds for arguments that are left out.

use pgrx::pg_sys;

use crate::pg::built_in_functions::is_called_by_number;
use crate::pg::catalog_row::CatalogRow;
use crate::pg::object_ids::{FIRST_UNPINNED_OID, INTERNAL_LANGUAGE, SQL_LANGUAGE};
use crate::pg::server;
use crate::pg::tree::{Tree, child, match_node};
use crate::pg::type_catalog::input_function;

/// The text of each function that initdb makes from one, and that is accepted: where the arguments may be of any type,
/// there is no tree.
const BORN_AS_TEXT: &[(u32, &[u8])] = &[
    (1285, b"select pg_catalog.quote_literal($1::pg_catalog.text)"),
    (1290, b"select pg_catalog.quote_nullable($1::pg_catalog.text)"),
    (2003, b"select $1 operator(pg_catalog.||) $2::pg_catalog.text"),
    (2004, b"select $1::pg_catalog.text operator(pg_catalog.||) $2"),
];

/// Columns of pg_aggregate (catalog/pg_aggregate.h) that hold functions: transition to final, and those of moving
/// windows.
const PARTS: std::ops::RangeInclusive<i16> = 4..=11;
const SORT_OPERATOR: i16 = 16;
/// Columns with the type of a state, each with the one of its first value.
const STATES: [(i16, i16); 2] = [(17, 21), (19, 22)];

/// What a call comes to besides the function itself. All of it is to be checked.
#[derive(Default)]
pub struct Definition {
    /// Functions that are called.
    pub functions: Vec<pg_sys::Oid>,
    /// Expressions and queries that are computed.
    pub trees: Vec<*mut pg_sys::Node>,
}

/// Returns true if the function consists of the server's own code alone.
pub fn is_own_code(function: pg_sys::Oid) -> bool {
    of(function).is_some_and(|own| own.functions.is_empty() && own.trees.is_empty())
}

/// What the built-in function consists of. `None` if nobody can tell, or if it is none of the server's.
pub fn of(function: pg_sys::Oid) -> Option<Definition> {
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::PROCOID, function)?;
    let form = row.function()?;
    // It may put any expression in the place of a call.
    if form.prosupport.to_u32() >= FIRST_UNPINNED_OID {
        return None;
    }
    if form.prokind as u8 == pg_sys::PROKIND_AGGREGATE {
        return of_aggregate(function);
    }
    match form.prolang.to_u32() {
        INTERNAL_LANGUAGE => is_called_by_number(function).then(Definition::default),
        // One that changes settings, or its role, is no expression.
        SQL_LANGUAGE if !form.prosecdef && row.is_null(column(pg_sys::Anum_pg_proc_proconfig)) => {
            of_body(function, &row)
        }
        _ => None,
    }
}

/// A number of a column as the server's functions want it.
const fn column(number: u32) -> i16 {
    number as i16
}

fn of_body(function: pg_sys::Oid, row: &CatalogRow) -> Option<Definition> {
    let Some(text) = row.text(column(pg_sys::Anum_pg_proc_prosqlbody)) else {
        let (_, born) = BORN_AS_TEXT.iter().find(|(number, _)| *number == function.to_u32())?;
        let is_as_born = row.text(column(pg_sys::Anum_pg_proc_prosrc))?.to_bytes() == *born;
        return is_as_born.then(Definition::default);
    };
    // SAFETY: what the server has written for a body; of several statements it is a list.
    unsafe {
        let body: *mut pg_sys::Node = kept!(pg_sys::stringToNode(text.as_ptr())).cast();
        if body.is_null() || (*body).type_ != pg_sys::NodeTag::T_Query {
            return None;
        }
        // What reads relations is not put in the place of the call, so that no plan would show them.
        let query = &*body.cast::<pg_sys::Query>();
        if !query.rtable.is_null() || query.hasSubLinks {
            return None;
        }
        Some(Definition { trees: vec![body], ..Definition::default() })
    }
}

/// The functions that such a text calls to make texts of its arguments: whoever owns their types may have given them
/// casts.
pub fn unseen_casts(node: Tree<'_, pg_sys::Node>) -> Vec<pg_sys::Oid> {
    let (function, arguments) = match_node! { node;
        FuncExpr(call) => (call.funcid, child!(call.args)),
        OpExpr(call) => {
            // A tree that was read leaves the function open.
            // SAFETY: reads a catalog about an operator of the tree.
            (unsafe { kept!(pg_sys::get_opcode(call.opno)) }, child!(call.args))
        },
        _ => return Vec::new(),
    };
    if !BORN_AS_TEXT.iter().any(|(number, _)| *number == function.to_u32()) {
        return Vec::new();
    }
    let arguments = arguments.into_iter().flat_map(Tree::items).flatten();
    // SAFETY: an expression of the tree, and a read of a catalog about its type.
    let types = arguments.map(|argument| unsafe { kept!(pg_sys::getBaseType(server::exprType(argument.as_ptr()))) });
    types.filter_map(cast_to_text).collect()
}

/// The function that makes a text of a type, if it is another than the type's output function.
fn cast_to_text(type_oid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    /// Column of pg_cast (catalog/pg_cast.h).
    const FUNCTION: i16 = 4;
    CatalogRow::find_cast(type_oid, pg_sys::TEXTOID)?.oid(FUNCTION)
}

fn of_aggregate(function: pg_sys::Oid) -> Option<Definition> {
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::AGGFNOID, function)?;
    let mut functions: Vec<pg_sys::Oid> = PARTS.filter_map(|part| row.oid(part)).collect();
    if let Some(operator) = row.oid(SORT_OPERATOR) {
        // SAFETY: reads a catalog; InvalidOid for what is no operator.
        functions.push(unsafe { kept!(pg_sys::get_opcode(operator)) });
    }
    for (state, first) in STATES {
        let Some(state) = row.oid(state) else { continue };
        if !row.is_null(first) {
            // Of an array, its elements are read.
            // SAFETY: reads a catalog about a type that the aggregate names.
            let element = unsafe { kept!(pg_sys::get_element_type(state)) };
            functions.push(input_function(if element == pg_sys::InvalidOid { state } else { element }).0);
        }
    }
    Some(Definition { functions, ..Definition::default() })
}

/// What the planner adds for the arguments that a call leaves out; `given` is how many it has. `None` if it is not
/// known.
pub fn of_missing_arguments(function: pg_sys::Oid, given: usize) -> Option<Definition> {
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::PROCOID, function)?;
    if given >= usize::try_from(row.function()?.pronargs).ok()? {
        return Some(Definition::default());
    }
    let text = row.text(column(pg_sys::Anum_pg_proc_proargdefaults))?;
    // SAFETY: the server reads a valid tree from the text, or raises. What it has written for defaults is a list of
    // expressions.
    let defaults = unsafe { Tree::<pg_sys::Node>::enter(kept!(pg_sys::stringToNode(text.as_ptr())).cast()) }?;
    let trees = defaults.as_a::<pg_sys::List>()?.items().flatten().map(Tree::as_ptr).collect();
    Some(Definition { trees, ..Definition::default() })
}
