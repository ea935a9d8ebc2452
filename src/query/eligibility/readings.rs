//! Values that the server reads from texts and from JSON, by input functions that it finds through their types: results
//! of coercions, the elements of arrays, and the columns of json_to_record and its relatives. All of them are checked
//! as if the query called them. A date may be a word such as `today`, so CURRENT_DATE is then in the key (`coercions`).
//! Times and timestamps are refused, and so are rows and ranges, whose functions read by those of their parts.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::checker::{ClockPlace, EligibilityChecker};
use crate::pg::tree::{Tree, child, child_oids};
use crate::pg::type_catalog::{input_function, kind_of};
use crate::query::clock::has_dates;
use crate::query::function_table::has;
use crate::query::function_table::properties::LISTING_COLUMNS;
use crate::query::volatility;
use crate::query::volatility::definition;

/// array_in, which reads by the input function of the element.
const ARRAY_IN: u32 = 750;

/// Each function returns true to stop the walk.
impl EligibilityChecker {
    /// Checks how a value of a type is read from a text. If dates are read, CURRENT_DATE goes into the key.
    pub(super) fn check_read(&mut self, type_oid: pg_sys::Oid) -> bool {
        let has_dates = has_dates(type_oid);
        (has_dates && self.check_day(input_function(type_oid).0)) || self.check_reading(type_oid, has_dates)
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
    fn check_reading(&mut self, type_oid: pg_sys::Oid, with_dates: bool) -> bool {
        self.note_type(type_oid);
        self.types.note_contained(type_oid);
        let reads = input_function(type_oid).0;
        // SAFETY: reads a catalog about a type of the tree, or one that such a type contains.
        let element = unsafe { kept!(pg_sys::get_element_type(type_oid)) };
        if element != pg_sys::InvalidOid {
            return self.check_reader_of_array(reads) || self.check_reading(element, with_dates);
        }
        match kind_of(type_oid) {
            pg_sys::TYPTYPE_DOMAIN => self.refuse(Reason::DomainConstraint),
            _ if type_oid == pg_sys::DATEOID && with_dates => self.check_body_of(reads),
            _ => self.check_function(reads),
        }
    }

    /// Checks the function that reads an array, which has to be the server's.
    fn check_reader_of_array(&mut self, reads: pg_sys::Oid) -> bool {
        if reads.to_u32() != ARRAY_IN {
            return self.blame(reads, Reason::StableFunction);
        }
        self.calls_output = true;
        self.reads_settings = true;
        self.check_body_of(reads)
    }

    /// Checks what a STABLE function consists of, which is accepted where it stands. The planner would compute one that
    /// somebody has marked IMMUTABLE, and a kept plan would have the value of another moment.
    pub(super) fn check_body_of(&mut self, function: pg_sys::Oid) -> bool {
        if !volatility::is_stable(function) {
            return self.blame(function, Reason::StableFunction);
        }
        self.defined.insert(function) && self.check_definition(function, definition::of(function))
    }

    /// Checks a function in FROM that makes rows out of JSON, whose columns the query lists.
    pub(super) fn check_listed_columns(&mut self, function: Tree<'_, pg_sys::RangeTblFunction>) -> bool {
        let call = child!(function.funcexpr).and_then(Tree::as_a::<pg_sys::FuncExpr>);
        let Some(call) = call.filter(|call| has(call.funcid, LISTING_COLUMNS)) else { return false };
        self.calls_output = true;
        self.reads_settings = true;
        self.lists_columns = call.as_ptr();
        let has_dates = child_oids!(function.funccoltypes).any(has_dates);
        (has_dates && self.check_day(call.funcid))
            || child_oids!(function.funccoltypes).any(|column| self.check_reading(column, has_dates))
    }

    /// Checks a call of such a function. Elsewhere than in FROM it has no columns.
    pub(super) fn check_call_with_columns(&mut self, call: Tree<'_, pg_sys::FuncExpr>) -> bool {
        if self.lists_columns != call.as_ptr() {
            return self.blame(call.funcid, Reason::StableFunction);
        }
        self.check_body_of(call.funcid)
    }
}
