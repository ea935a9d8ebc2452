//! Coercions by way of a text. Most are calls of an output and of an input function, which are checked as such. A text that becomes a date
//! may be a word such as `today`. Whatever it is, the date follows from the text, from settings, and from the date of the transaction's
//! start: `date_in` takes the date out of what it reads and drops the time, and the words that ask for the time (`now`, `today`, `tomorrow`,
//! `yesterday`) are about that start (datetime.c, `DecodeDateTime`). So CURRENT_DATE becomes a clock expression of such a query, and its
//! value is in the key. Texts that become times or timestamps are refused: `now` is another one each time.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::checker::{ClockPlace, EligibilityChecker};
use super::node_kinds::type_of;
use crate::pg::tree::{Tree, child};
use crate::query::volatility::definition;

/// date_in(cstring)
const DATE_IN: u32 = 1084;

/// Types whose values a text may give by the time at which it is read.
const READ_NOW: [pg_sys::Oid; 4] = [pg_sys::TIMESTAMPOID, pg_sys::TIMESTAMPTZOID, pg_sys::TIMEOID, pg_sys::TIMETZOID];
const NOW: &str = "which reads the word `now` in a text as the present time (`to_timestamp` with a format does not)";

impl EligibilityChecker {
    /// Checks a coercion. True stops the walk.
    pub(super) fn check_coercion(
        &mut self,
        node: Tree<'_, pg_sys::Node>,
        coercion: Tree<'_, pg_sys::CoerceViaIO>,
    ) -> bool {
        self.calls_output = true;
        self.note_type(coercion.resulttype);
        let outside = self.clock == ClockPlace::Outside;
        if READ_NOW.contains(&coercion.resulttype) {
            let (mut reads, mut parameter) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
            // SAFETY: reads a catalog about a type of the server's own.
            unsafe { pg_sys::getTypeInputInfo(coercion.resulttype, &raw mut reads, &raw mut parameter) };
            return self.blame_because(reads, Reason::StableFunction, NOW);
        }
        let Some(argument) = child!(coercion.arg).filter(|_| outside && coercion.resulttype == pg_sys::DATEOID) else {
            // Its functions say whether they read settings.
            return self.check_functions_in(node);
        };
        let (mut reads, mut parameter) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
        let (mut writes, mut is_varlena) = (pg_sys::InvalidOid, false);
        // SAFETY: reads catalogs about types of the tree, which exist.
        unsafe {
            pg_sys::getTypeInputInfo(coercion.resulttype, &raw mut reads, &raw mut parameter);
            pg_sys::getTypeOutputInfo(type_of(argument.as_node()), &raw mut writes, &raw mut is_varlena);
        }
        if reads.to_u32() != DATE_IN {
            return self.check_functions_in(node);
        }
        self.note_day();
        self.check_function(writes)
            || (self.defined.insert((reads, false, false)) && self.check_definition(reads, definition::of(reads)))
    }
}
