//! Functions of users that are written in SQL and consist of one expression: that is checked as if it stood in the
//! place of the call. Whatever it calls, reads of the session or converts is then found by the same walk. That a
//! function is declared VOLATILE, as it is by default, changes nothing: it reads no relations, and has no effects.
//! Whether the server puts the body in the place of the call makes no difference.
//!
//! A body that is kept as text means what `search_path` and the catalogs say at that moment. What it was found to mean is hashed, and becomes
//! part of what the query means (`met_bodies`). The value of an IMMUTABLE function may be computed when the query is planned, and kept with
//! its plan: its body must therefore consist of IMMUTABLE functions, which read nothing but settings that are known of each plan.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::checker::{Blamed, ClockPlace, EligibilityChecker};
use super::declared_functions::is_declared;
use super::node_kinds::type_of;
use crate::pg::catalog_row::CatalogRow;
use crate::pg::compat::public_may_execute;
use crate::pg::compat::tree::KEEPS_BODIES;
use crate::pg::object_ids::{FIRST_UNPINNED_OID, SQL_LANGUAGE};
use crate::pg::sql_body::{Body, SqlCall};
use crate::pg::tree::{Tree, child};
use crate::query::identity;

/// timetz and its array: a literal of it may name a zone, whose offset is that of today.
const TIME_WITH_ZONE: [u32; 2] = [1266, 1270];
/// Types whose literals have no word for the present time: bool, bytea, char, name, int8, int2, int4, text, oid, json, float4, float8, unknown,
/// bpchar, varchar, interval, numeric, uuid, jsonb, with some arrays. Ascending.
const TIMELESS: &[u32] = &[
    16, 17, 18, 19, 20, 21, 23, 25, 26, 114, 700, 701, 705, 1000, 1005, 1007, 1009, 1015, 1016, 1021, 1022, 1042, 1043,
    1186, 1231, 1700, 2950, 3802,
];

/// What a function is declared as.
struct Declaration {
    immutable: bool,
    /// It has arguments of types that each call chooses.
    polymorphic: bool,
    arguments: usize,
    /// It declares the columns of its result.
    lists_columns: bool,
}

/// Why a function cannot be checked by its body, as the rest of the sentence "It calls …,".
const NOT_SQL: &str = "which is not written in SQL, nor declared pure";
const OTHER_RIGHTS: &str = "which is SECURITY DEFINER or has a SET clause";
const SUPPORTED: &str = "which has a support function";
const NO_VALUE: &str = "which returns nothing, or rows whose columns only the query lists";
const NO_EXPRESSION: &str =
    "whose body is not a SELECT of one expression without relations, or is not valid at this moment";
const KEPT_TEXT: &str =
    "whose body is kept as text, and PostgreSQL 18 keeps what that meant before; write it as RETURN or BEGIN ATOMIC";
/// What is wrong with a function that is called in the body of another.
pub(super) const KEPT_VALUE: &str =
    "which reads settings, in the body of a function, and PostgreSQL 18 keeps the plan of that for the session";
/// What is wrong with a function that another one calls.
pub(super) const FORBIDDEN: &str = "which some roles may not execute, in the body of a function, and PostgreSQL 18 keeps the plan of that for all roles";
const UNKNOWN_TYPES: &str = "which is polymorphic and is called with names or defaults of arguments";
const LITERAL: &str = "whose body has a literal of a type that is not built in";
const CLOCK: &str = "whose body has a literal that may depend on the time";

fn declaration(row: &CatalogRow) -> Result<Declaration, &'static str> {
    let form = row.function().ok_or(NOT_SQL)?;
    if form.prolang.to_u32() != SQL_LANGUAGE || form.prokind as u8 != pg_sys::PROKIND_FUNCTION {
        return Err(NOT_SQL);
    }
    if form.prosecdef || !row.is_null(pg_sys::Anum_pg_proc_proconfig as i16) {
        return Err(OTHER_RIGHTS);
    }
    if form.prosupport != pg_sys::InvalidOid {
        return Err(SUPPORTED);
    }
    let arguments = row.arguments().ok_or(NOT_SQL)?;
    let inputs = || arguments.iter().filter(|argument| argument.is_input);
    Ok(Declaration {
        immutable: form.provolatile as u8 == pg_sys::PROVOLATILE_IMMUTABLE,
        // SAFETY: reads a catalog about the type of an argument. Functions in SQL have no other arguments of pseudo-types.
        polymorphic: inputs()
            .any(|argument| unsafe { kept!(pg_sys::get_typtype(argument.type_oid)) } as u8 == pg_sys::TYPTYPE_PSEUDO),
        arguments: inputs().count(),
        lists_columns: arguments.iter().any(|argument| argument.is_output),
    })
}

/// Returns true if the result is made of values whose types are known, and not nothing.
fn is_known(result: pg_sys::Oid, declared: &Declaration) -> bool {
    if result == pg_sys::RECORDOID {
        return declared.lists_columns;
    }
    // SAFETY: reads a catalog about the type of an expression.
    let kind = unsafe { kept!(pg_sys::get_typtype(result)) } as u8;
    kind != pg_sys::TYPTYPE_PSEUDO
}

/// Checks of calls of users' functions. Each returns true to stop the walk.
impl EligibilityChecker {
    /// Checks a call of a function that is not built in.
    pub(super) fn check_call_of_user(&mut self, call: Tree<'_, pg_sys::FuncExpr>) -> bool {
        let function = call.funcid;
        let Some(seed) = self.bodies.seed else { return self.blame(function, Reason::UserDefinedFunction) };
        let found = CatalogRow::find(pg_sys::SysCacheIdentifier::PROCOID, function);
        let Some(row) = found else { return self.blame(function, Reason::UserDefinedFunction) };
        if is_declared(function, &row) {
            return self.check_declared(call, &row);
        }
        let declared = match declaration(&row) {
            Ok(declared) => declared,
            Err(because) => return self.blame_because(function, Reason::UserDefinedFunction, because),
        };
        if !is_known(call.funcresulttype, &declared) {
            return self.blame_because(function, Reason::UserDefinedFunction, NO_VALUE);
        }
        if self.bodies.immutable && !declared.immutable {
            return self.blame(function, Reason::StableFunction);
        }
        if KEEPS_BODIES && row.is_null(pg_sys::Anum_pg_proc_prosqlbody as i16) {
            return self.blame_because(function, Reason::UserDefinedFunction, KEPT_TEXT);
        }
        if self.may_be_forbidden(function) {
            return self.blame_because(function, Reason::UserDefinedFunction, FORBIDDEN);
        }
        let given = || child!(call.args).into_iter().flat_map(Tree::items).flatten();
        let shows_types = given().count() == declared.arguments
            && given().all(|argument| argument.tag() != pg_sys::NodeTag::T_NamedArgExpr);
        if declared.polymorphic && !shows_types {
            return self.blame_because(function, Reason::UserDefinedFunction, UNKNOWN_TYPES);
        }
        let flags = u32::from(declared.immutable) | u32::from(self.bodies.immutable) << 1;
        let mut called = vec![function.to_u32(), call.inputcollid.to_u32(), call.funcresulttype.to_u32(), flags];
        called.extend(given().map(|argument| type_of(argument).to_u32()));
        if self.bodies.around.contains(&called) {
            // It calls itself.
            return false;
        }
        if !self.bodies.has_room() {
            return self.blame(function, Reason::TooComplex);
        }
        let Some(body) = self.bodies.read(&SqlCall { row: &row, call, shows_types }) else {
            return self.blame_because(function, Reason::UserDefinedFunction, NO_EXPRESSION);
        };
        if self.note_body(call, body, seed) {
            return true;
        }
        self.bodies.around.push(called);
        let stopped = self.check_body(function, body, &declared);
        self.bodies.around.pop();
        stopped
    }

    /// Is the check in the body of a function, whose plan the server keeps for the session (PostgreSQL 18), whoever
    /// runs it and whatever settings become?
    pub(super) fn is_kept(&self) -> bool {
        KEEPS_BODIES && !self.bodies.around.is_empty()
    }

    /// May a plan of a body that the server keeps for the session (PostgreSQL 18) hide that the role may not execute this function? The planner asks when it
    /// computes a function or puts its body in the place of the call, and the plan is kept when the session goes on as another role.
    pub(super) fn may_be_forbidden(&self, function: pg_sys::Oid) -> bool {
        self.is_kept() && !public_may_execute(function)
    }

    /// Adds what a body means.
    fn note_body(&mut self, call: Tree<'_, pg_sys::FuncExpr>, body: Body, seed: u64) -> bool {
        // SAFETY: a tree that the server has just made, in the memory that is current during the check.
        let Some(tree) = (unsafe { Tree::enter(body.tree) }) else { return self.refuse(Reason::TooComplex) };
        match identity::of(tree, seed) {
            Ok(meaning) => self.bodies.add(call, body, meaning.tree),
            Err(reason) => return self.refuse(reason),
        }
        false
    }

    /// Checks the parts of a body.
    fn check_body(&mut self, function: pg_sys::Oid, body: Body, declared: &Declaration) -> bool {
        // SAFETY: as in `note_body`.
        let Some(tree) = (unsafe { Tree::enter(body.tree) }) else { return false };
        let outer = (self.bodies.body.replace((function, body)), self.bodies.immutable);
        self.bodies.immutable |= declared.immutable;
        let queries = std::mem::take(&mut self.queries);
        // No value of the clock in a body is in the key.
        let place = std::mem::replace(&mut self.clock, ClockPlace::Elsewhere);
        let stopped = self.check_all(tree);
        self.clock = place;
        self.queries = queries;
        (self.bodies.body, self.bodies.immutable) = outer;
        if stopped && self.offender.is_none() {
            self.offender = Some(Blamed { function, because: None });
        }
        stopped
    }

    /// Checks a constant. One in the text of a body is made anew whenever the body is analysed, so it must not depend on the moment.
    pub(super) fn check_constant(&mut self, constant: &pg_sys::Const) -> bool {
        self.note_type(constant.consttype);
        let Some((function, body)) = self.bodies.body.filter(|(_, body)| body.by_name) else { return false };
        let number = constant.consttype.to_u32();
        if number < FIRST_UNPINNED_OID {
            let timeless = TIMELESS.binary_search(&number).is_ok();
            let fixed = !TIME_WITH_ZONE.contains(&number) && (timeless || !body.has_clock_words);
            return !fixed && !constant.constisnull && self.blame_because(function, Reason::StableFunction, CLOCK);
        }
        // Another type's input function is a user's. Labels of enums are followed.
        // SAFETY: reads catalogs about the type of a constant.
        let is_enum = unsafe {
            let element = kept!(pg_sys::get_element_type(constant.consttype));
            let of = if element == pg_sys::InvalidOid { constant.consttype } else { element };
            kept!(pg_sys::get_typtype(of)) as u8 == pg_sys::TYPTYPE_ENUM
        };
        !is_enum && !constant.constisnull && self.blame_because(function, Reason::UserDefinedFunction, LITERAL)
    }
}
