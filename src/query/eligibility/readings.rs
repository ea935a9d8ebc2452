//! Values that the server reads from texts and from JSON, by input functions that it finds through their types: the parts of arrays, ranges
//! and rows, the columns of json_to_record and its relatives, the fields of json_populate_record. All of them are checked as if the query
//! called them. A date may be a word such as `today`, so CURRENT_DATE is then in the key (`coercions`). Times and timestamps are refused.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::checker::{ClockPlace, EligibilityChecker};
use super::sql_functions::FORBIDDEN;
use crate::pg::row_type::columns_of;
use crate::pg::tree::{Tree, child, child_oids};
use crate::query::clock::has_dates;
use crate::query::function_table::has;
use crate::query::function_table::properties::LISTING_COLUMNS;
use crate::query::volatility;
use crate::query::volatility::definition::{self, reader_of};

/// array_in, record_in, range_in, multirange_in: they read by the input functions of what they contain.
const ARRAY_IN: u32 = 750;
const RECORD_IN: u32 = 2290;
const RANGE_IN: u32 = 3834;
const MULTIRANGE_IN: u32 = 4231;
/// Deepest nesting of types that is checked.
const DEEPEST: u32 = 8;

/// Types whose values a text may give by the time at which it is read.
const READ_NOW: [pg_sys::Oid; 4] = [pg_sys::TIMESTAMPOID, pg_sys::TIMESTAMPTZOID, pg_sys::TIMEOID, pg_sys::TIMETZOID];
const NOW: &str = "which reads the word `now` in a text as the present time (`to_timestamp` with a format does not)";

/// Is the type made of others, as arrays, rows and ranges are?
pub(super) fn is_container(type_oid: pg_sys::Oid) -> bool {
    // SAFETY: reads catalogs about a type of the tree.
    unsafe {
        kept!(pg_sys::get_element_type(type_oid)) != pg_sys::InvalidOid
            || matches!(
                kept!(pg_sys::get_typtype(type_oid)) as u8,
                pg_sys::TYPTYPE_COMPOSITE | pg_sys::TYPTYPE_RANGE | pg_sys::TYPTYPE_MULTIRANGE
            )
    }
}

/// Each function returns true to stop the walk.
impl EligibilityChecker {
    /// Refuses a type if a text may give a value of it by the time at which it is read.
    pub(super) fn check_time_read(&mut self, type_oid: pg_sys::Oid) -> bool {
        READ_NOW.contains(&type_oid) && self.blame_because(reader_of(type_oid), Reason::StableFunction, NOW)
    }

    /// Checks how values of a container are read from a text. If dates are read, CURRENT_DATE goes into the key.
    pub(super) fn check_container_read(&mut self, type_oid: pg_sys::Oid) -> bool {
        let has_dates = has_dates(type_oid);
        (has_dates && self.check_day(reader_of(type_oid))) || self.check_reading(type_oid, has_dates, 0)
    }

    /// Notes that a function reads dates. They can be in the key only if the query itself calls it.
    fn check_day(&mut self, function: pg_sys::Oid) -> bool {
        if self.clock != ClockPlace::Outside {
            return self.blame(function, Reason::StableFunction);
        }
        self.note_day();
        false
    }

    /// Checks how values of a type are read. `with_dates`: CURRENT_DATE is in the key.
    fn check_reading(&mut self, type_oid: pg_sys::Oid, with_dates: bool, depth: u32) -> bool {
        if depth > DEEPEST {
            return self.refuse(Reason::TooComplex);
        }
        self.note_type(type_oid);
        self.types.note_contained(type_oid);
        let reads = reader_of(type_oid);
        let below = depth + 1;
        // SAFETY: reads catalogs about a type of the tree, or one that such a type contains.
        unsafe {
            let element = kept!(pg_sys::get_element_type(type_oid));
            if element != pg_sys::InvalidOid {
                return self.check_container(reads, ARRAY_IN) || self.check_reading(element, with_dates, below);
            }
            match kept!(pg_sys::get_typtype(type_oid)) as u8 {
                pg_sys::TYPTYPE_COMPOSITE => {
                    self.check_container(reads, RECORD_IN)
                        || columns_of(type_oid).into_iter().any(|column| self.check_reading(column, with_dates, below))
                }
                pg_sys::TYPTYPE_RANGE => {
                    self.check_container(reads, RANGE_IN)
                        || self.check_reading(kept!(pg_sys::get_range_subtype(type_oid)), with_dates, below)
                }
                pg_sys::TYPTYPE_MULTIRANGE => {
                    self.check_container(reads, MULTIRANGE_IN)
                        || self.check_reading(kept!(pg_sys::get_multirange_range(type_oid)), with_dates, below)
                }
                pg_sys::TYPTYPE_DOMAIN => self.refuse(Reason::DomainConstraint),
                pg_sys::TYPTYPE_PSEUDO => self.blame(reads, Reason::StableFunction),
                _ if type_oid == pg_sys::DATEOID && with_dates => self.check_body_of(reads),
                _ => self.check_time_read(type_oid) || self.check_function(reads),
            }
        }
    }

    /// Must what is checked call no function that reads settings? So it is in the body of an IMMUTABLE function, and where PostgreSQL 18 keeps the
    /// plan of a body.
    fn may_not_read(&self) -> bool {
        self.bodies.immutable || self.is_kept()
    }

    /// Checks the function that reads a container, which has to be the server's.
    fn check_container(&mut self, reads: pg_sys::Oid, expected: u32) -> bool {
        if reads.to_u32() != expected || self.may_not_read() {
            return self.blame(reads, Reason::StableFunction);
        }
        self.calls_output = true;
        self.reads_settings = true;
        self.check_body_of(reads)
    }

    /// Checks what a STABLE function consists of, which is accepted where it stands. The planner would compute one that somebody has marked
    /// IMMUTABLE, and a kept plan would have the value of another moment.
    pub(super) fn check_body_of(&mut self, function: pg_sys::Oid) -> bool {
        if !volatility::is_stable(function) {
            return self.blame(function, Reason::StableFunction);
        }
        if self.may_be_forbidden(function) {
            return self.blame_because(function, Reason::UserDefinedFunction, FORBIDDEN);
        }
        self.defined.insert((function, false)) && self.check_definition(function, definition::of(function))
    }

    /// Checks a function in FROM that makes rows out of JSON, whose columns the query lists.
    pub(super) fn check_listed_columns(&mut self, function: Tree<'_, pg_sys::RangeTblFunction>) -> bool {
        let call = child!(function.funcexpr).and_then(Tree::as_a::<pg_sys::FuncExpr>);
        let Some(call) = call.filter(|call| has(call.funcid, LISTING_COLUMNS)) else { return false };
        if self.may_not_read() {
            return self.blame(call.funcid, Reason::StableFunction);
        }
        self.calls_output = true;
        self.reads_settings = true;
        self.lists_columns = call.as_ptr();
        let has_dates = child_oids!(function.funccoltypes).any(has_dates);
        (has_dates && self.check_day(call.funcid))
            || child_oids!(function.funccoltypes).any(|column| self.check_reading(column, has_dates, 1))
    }

    /// Checks a call of such a function. Elsewhere than in FROM it has no columns.
    pub(super) fn check_call_with_columns(&mut self, call: Tree<'_, pg_sys::FuncExpr>) -> bool {
        if self.lists_columns != call.as_ptr() {
            return self.blame(call.funcid, Reason::StableFunction);
        }
        self.check_body_of(call.funcid)
    }

    /// Checks a function that makes a row of a named type out of JSON. What of it JSON does not say is taken from the argument of that type.
    pub(super) fn check_populating(&mut self, call: Tree<'_, pg_sys::FuncExpr>) -> bool {
        if self.may_not_read() {
            return self.blame(call.funcid, Reason::StableFunction);
        }
        self.calls_output = true;
        self.check_day(call.funcid)
            || self.check_reading(call.funcresulttype, true, 0)
            || self.check_body_of(call.funcid)
            || self.check_missing_arguments(call.funcid, child!(call.args))
    }
}
