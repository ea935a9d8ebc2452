//! Coercions by way of a text. Most are calls of an output and of an input function, which are checked as such. A text
//! that becomes a date may be a word such as `today`. Whatever it is, the date follows from the text, from settings,
//! and from the date of the transaction's start: `date_in` takes the date out of what it reads and drops the time, and
//! the words that ask for the time (`now`, `today`, `tomorrow`, `yesterday`) are about that start (datetime.c,
//! `DecodeDateTime`). So CURRENT_DATE becomes a clock expression of such a query, and its value is in the key. Texts
//! that become times or timestamps are refused, since `now` is another one each time; but not if they are made of the
//! clock themselves, as in `(CURRENT_DATE || ' 08:00')::timestamp`: then what they become is part of a clock
//! expression, whose value is in the key. Nor are constants refused that pass through VALUES and the like before they
//! become timestamps, if there is no such word in them.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::checker::{ClockPlace, EligibilityChecker};
use super::node_details::type_of;
use crate::pg::object_ids::FIRST_UNPINNED_OID;
use crate::pg::tree::{Tree, child};
use crate::pg::type_catalog::{input_function, output_function};
use crate::query::clock;
use crate::query::constant_texts::{is_timestamp, tell_no_time};
use crate::query::volatility;

impl EligibilityChecker {
    /// Checks a coercion. True stops the walk.
    pub(super) fn check_coercion(
        &mut self,
        node: Tree<'_, pg_sys::Node>,
        coercion: Tree<'_, pg_sys::CoerceViaIO>,
    ) -> bool {
        self.calls_output = true;
        self.note_type(coercion.resulttype);
        let Some(argument) = child!(coercion.arg) else { return self.check_functions_in(node) };
        let writes = output_function(type_of(argument.as_node()));
        if self.clock == ClockPlace::Inside {
            return self.check_writing_in_clock(argument.as_node()) || self.check_reading_in_clock(coercion.resulttype);
        }
        if self.reads_constant_texts(coercion, argument) {
            self.reads_settings = true;
            return self.check_function(writes) || self.check_body_of(input_function(coercion.resulttype).0);
        }
        self.check_function(writes) || self.check_read(coercion.resulttype)
    }

    /// Returns true if the texts that become timestamps are constants without words for the present time
    /// (`constant_texts`). The form of the query tells (`identity`).
    fn reads_constant_texts(&self, coercion: Tree<'_, pg_sys::CoerceViaIO>, texts: Tree<'_, pg_sys::Expr>) -> bool {
        self.clock == ClockPlace::Outside
            && is_timestamp(coercion.resulttype)
            && input_function(coercion.resulttype).0.to_u32() < FIRST_UNPINNED_OID
            && tell_no_time(texts.as_node(), &self.queries)
    }

    /// Checks how a value in a clock expression is written as a text: only types whose functions are known may be.
    pub(super) fn check_writing_in_clock(&mut self, value: Tree<'_, pg_sys::Node>) -> bool {
        let writes = output_function(type_of(value));
        if !clock::is_known(type_of(value)) || writes.to_u32() >= FIRST_UNPINNED_OID {
            return self.blame(writes, Reason::UserDefinedFunction);
        }
        self.check_function(writes)
    }

    /// Checks how a text in a clock expression is read. Its value will be in the key, so it may be a word for the
    /// present time.
    fn check_reading_in_clock(&mut self, result: pg_sys::Oid) -> bool {
        if clock::has_dates(result) {
            // The walk that identifies the query notes it for each such coercion.
            self.note_day();
        }
        let reads = input_function(result).0;
        if !clock::is_known(result) || reads.to_u32() >= FIRST_UNPINNED_OID {
            return self.blame(reads, Reason::UserDefinedFunction);
        }
        if volatility::is_stable(reads) { self.check_body_of(reads) } else { self.check_function(reads) }
    }

    /// Checks how values in a clock expression are compared by GREATEST and LEAST.
    pub(super) fn check_comparison_in_clock(&mut self, of: pg_sys::Oid) -> bool {
        // SAFETY: reads catalogs about a type of the tree; entries of the type cache are never freed.
        let compares = unsafe { (*kept!(pg_sys::lookup_type_cache(of, pg_sys::TYPECACHE_CMP_PROC as i32))).cmp_proc };
        if !clock::is_compared(of) || compares.to_u32() >= FIRST_UNPINNED_OID {
            return self.blame(compares, Reason::UserDefinedFunction);
        }
        self.check_function(compares)
    }
}
