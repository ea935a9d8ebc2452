//! Functions that their owners have declared *pure*: written in PL/pgSQL, which nobody can check by its text. The owner
//! promises that what such a function returns depends on its arguments, on the settings in the key, and on what its
//! queries read. These queries are seen when it runs (`lookup::observation`). PL/pgSQL keeps for the session what it
//! has found out about a function when it first ran it. So the function sets `search_path` itself, by which names are
//! found out, and the owner promises that nothing else of the first run matters. Reading only.

use std::ffi::CStr;

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::checker::{ClockPlace, EligibilityChecker};
use crate::pg::catalog_row::CatalogRow;
use crate::pg::tree::Tree;
use crate::pg::type_catalog::kind_of;
use crate::query::relation_policy::PROVIDER;

/// The label of a function that is declared pure.
pub const PURE: &CStr = c"pure";

/// Why a function that is declared pure is not accepted, as the rest of the sentence "It calls …,".
const NOT_STABLE: &str = "which is declared pure but is not STABLE, or is called by another function";
const OTHER_RIGHTS: &str =
    "which is declared pure but is SECURITY DEFINER, has a support function, or is PARALLEL SAFE";
const OTHER_SETTINGS: &str = "which is declared pure but does not SET search_path, or sets something else";
const NO_VALUE: &str = "which is declared pure but does not return one value of a type that is no row and no domain";

/// Returns true if this function may be declared pure: it is a function in PL/pgSQL.
pub fn may_be_declared(function: pg_sys::Oid) -> bool {
    CatalogRow::find(pg_sys::SysCacheIdentifier::PROCOID, function).is_some_and(|row| is_procedural(&row))
}

fn is_procedural(row: &CatalogRow) -> bool {
    // SAFETY: reads a catalog by name; InvalidOid if there is no such language.
    let language = unsafe { kept!(pg_sys::get_language_oid(c"plpgsql".as_ptr(), true)) };
    row.function().is_some_and(|form| {
        form.prolang == language && language != pg_sys::InvalidOid && form.prokind as u8 == pg_sys::PROKIND_FUNCTION
    })
}

/// Returns true if its owner has declared this function, whose row is `row`, pure.
pub(super) fn is_declared(function: pg_sys::Oid, row: &CatalogRow) -> bool {
    if !is_procedural(row) {
        return false;
    }
    // SAFETY: reads a catalog by address; the label is a C string in the current context, or null.
    unsafe {
        let address =
            pg_sys::ObjectAddress { classId: pg_sys::ProcedureRelationId, objectId: function, objectSubId: 0 };
        let label = kept!(pg_sys::GetSecurityLabel(&address, PROVIDER.as_ptr()));
        !label.is_null() && CStr::from_ptr(label) == PURE
    }
}

impl EligibilityChecker {
    /// Checks a call of a function that is declared pure. True stops the walk.
    pub(super) fn check_declared(&mut self, call: Tree<'_, pg_sys::FuncExpr>, row: &CatalogRow) -> bool {
        let function = call.funcid;
        let (Some(form), Some(arguments)) = (row.function(), row.arguments()) else {
            return self.blame(function, Reason::UserDefinedFunction);
        };
        // The value of an IMMUTABLE one may be kept in a plan, and a VOLATILE one reads under snapshots of its own. So
        // may one that another function calls.
        let is_stable = form.provolatile as u8 == pg_sys::PROVOLATILE_STABLE;
        // Queries that another process runs are not seen.
        let has_others = form.prosecdef
            || form.prosupport != pg_sys::InvalidOid
            || form.proparallel as u8 == pg_sys::PROPARALLEL_SAFE;
        let kind = kind_of(call.funcresulttype);
        let is_value = !matches!(kind, pg_sys::TYPTYPE_COMPOSITE | pg_sys::TYPTYPE_PSEUDO | pg_sys::TYPTYPE_DOMAIN)
            && !call.funcretset
            && !arguments.iter().any(|argument| argument.is_output);
        for (is_wrong, because) in [
            (!is_stable || self.clock != ClockPlace::Outside, NOT_STABLE),
            (has_others, OTHER_RIGHTS),
            (!row.sets_search_path_alone(), OTHER_SETTINGS),
            (!is_value, NO_VALUE),
        ] {
            if is_wrong {
                return self.blame_because(function, because);
            }
        }
        self.calls_declared = true;
        self.reads_settings = true;
        self.reads_something = true;
        false
    }
}
