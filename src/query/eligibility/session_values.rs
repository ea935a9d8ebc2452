//! What a query asks of the session itself: who asks, which custom settings are there, what time it is.

use std::ffi::{CStr, CString};

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::checker::{ClockPlace, EligibilityChecker};
use crate::pg::tree::{Tree, child, children};
use crate::query::clock::{self, Comparison};
use crate::query::environment::{CURRENT_SCHEMA, DATABASE_NAME, SEARCH_CONFIGURATION, SESSION_USER};
use crate::query::function_table::has;
use crate::query::function_table::properties::JOINING;
use crate::query::identity::CURRENT_SETTING;
use crate::query::row_types_and_settings::{LONGEST_NAME, MOST_SETTINGS};
use crate::query::volatility::definition;

/// current_database(), current_schema() and session_user()
const CURRENT_DATABASE: u32 = 861;
const CURRENT_SCHEMA_FUNCTION: u32 = 1402;
const SESSION_USER_FUNCTION: u32 = 746;

/// Settings of the server that `current_setting` shows as SET, the configuration or the connection has left them:
/// neither a transaction nor the state of the server changes them, and every role may see them. Others may show more
/// than themselves.
const PLAIN_SETTINGS: [&[u8]; 11] = [
    b"timezone",
    b"datestyle",
    b"intervalstyle",
    b"search_path",
    b"application_name",
    b"server_version",
    b"server_version_num",
    b"server_encoding",
    b"lc_time",
    b"lc_monetary",
    b"lc_numeric",
];

impl EligibilityChecker {
    /// The role that asks is in the key, and the role that has logged in, the database's name and the current schema
    /// can be; of the time only the session knows. True refuses the query.
    pub(super) fn check_session_value(&mut self, value: &pg_sys::SQLValueFunction) -> bool {
        self.note_type(value.type_);
        self.reads_settings = true;
        match value.op {
            pg_sys::SQLValueFunctionOp::SVFOP_CURRENT_ROLE
            | pg_sys::SQLValueFunctionOp::SVFOP_CURRENT_USER
            | pg_sys::SQLValueFunctionOp::SVFOP_USER => false,
            pg_sys::SQLValueFunctionOp::SVFOP_SESSION_USER => self.reads_state(SESSION_USER),
            pg_sys::SQLValueFunctionOp::SVFOP_CURRENT_CATALOG => self.reads_state(DATABASE_NAME),
            pg_sys::SQLValueFunctionOp::SVFOP_CURRENT_SCHEMA => self.reads_state(CURRENT_SCHEMA),
            pg_sys::SQLValueFunctionOp::SVFOP_CURRENT_DATE if self.clock == ClockPlace::FromToday => false,
            _ if self.clock == ClockPlace::Inside => false,
            _ => self.refuse(Reason::SessionFunction),
        }
    }

    /// Returns true if a clock expression of the query begins here (`clock`). Then its value will be in the key, and
    /// what asks for the time in it is accepted. The query is refused if that value moves all the time, whatever
    /// constants it has.
    pub(super) fn enters_clock(&mut self, node: Tree<'_, pg_sys::Node>) -> bool {
        if self.clock != ClockPlace::Outside {
            return false;
        }
        let Some(found) = clock::closed(node).filter(|closed| closed.asks) else { return false };
        self.clock = ClockPlace::Inside;
        self.clocks += 1;
        self.reads_settings = true;
        if !found.may_settle && self.bounded != node.as_ptr() {
            self.refuse(Reason::MovingClock);
        }
        true
    }

    /// Returns true if the operator compares a column with a clock expression. If gaps can be found for it, its value
    /// may move all the time. True refuses the query: a function is called that is not the server's own code.
    pub(super) fn compares_with_time(&mut self, call: Tree<'_, pg_sys::OpExpr>) -> bool {
        if self.clock != ClockPlace::Outside || call.as_node().tag() != pg_sys::NodeTag::T_OpExpr {
            return false;
        }
        let is_clock = |node| clock::closed(node).is_some_and(|found| found.asks);
        let Some(comparison) = Comparison::of(call, is_clock, &self.queries) else { return false };
        let are_own = comparison.functions.into_iter().flatten().all(definition::is_own_code);
        if !are_own || (comparison.is_extreme && !extremes_are_as_listed()) {
            return self.refuse(Reason::UserDefinedFunction);
        }
        if comparison.may_have_gaps() {
            self.bounded = comparison.with.as_ptr();
        }
        false
    }

    /// CURRENT_DATE becomes a clock expression of the query.
    pub(super) fn note_day(&mut self) {
        self.clocks += usize::from(!self.reads_day);
        self.reads_day = true;
        self.reads_settings = true;
    }

    /// Checks how an operator of a clock expression writes a value that it joins with a text. True refuses the query.
    pub(super) fn joins_otherwise(&mut self, operator: Tree<'_, pg_sys::OpExpr>) -> bool {
        // SAFETY: reads a catalog about an operator that the query uses.
        self.clock == ClockPlace::Inside
            && has(unsafe { kept!(pg_sys::get_opcode(operator.opno)) }, JOINING)
            && children!(operator.args as Node).any(|value| self.check_writing_in_clock(value))
    }

    /// Returns true if the call asks for state of the session that can be part of the key: a setting by a constant
    /// name, the name of the database, the current schema, or the role that has logged in. The query is refused if it
    /// reads one setting too many.
    pub(super) fn reads_named_state(&mut self, call: Tree<'_, pg_sys::FuncExpr>) -> bool {
        let state = match call.funcid.to_u32() {
            CURRENT_DATABASE => DATABASE_NAME,
            CURRENT_SCHEMA_FUNCTION => CURRENT_SCHEMA,
            SESSION_USER_FUNCTION => SESSION_USER,
            _ => return self.reads_setting(call),
        };
        self.reads_state(state);
        true
    }

    /// Returns true if the call asks for a custom setting, such as `app.tenant`, or for one of the server's that shows
    /// nothing but itself, by a constant name.
    fn reads_setting(&mut self, call: Tree<'_, pg_sys::FuncExpr>) -> bool {
        let Some(name) = constant_name(call) else { return false };
        let is_plain = PLAIN_SETTINGS.iter().any(|plain| name.eq_ignore_ascii_case(plain));
        if !(is_plain || name.contains(&b'.')) || name.len() > LONGEST_NAME {
            return false;
        }
        // A text has no byte that is zero.
        self.note_setting(CString::new(name).unwrap_or_default());
        true
    }

    /// The query reads the text search configuration that a setting names: what it stands for in the session that asks
    /// will be part of the key (`environment`). True refuses the query, which reads one setting too many.
    pub(super) fn reads_search_configuration(&mut self) -> bool {
        self.reads_state(SEARCH_CONFIGURATION)
    }

    fn reads_state(&mut self, name: &CStr) -> bool {
        self.note_setting(name.to_owned());
        self.reason.is_some()
    }

    /// The query reads a setting by name, whose value of now will be in the key. So a plan must not keep another, as it
    /// keeps the value of an IMMUTABLE function whose body reads one.
    fn note_setting(&mut self, name: CString) {
        self.reads_settings = true;
        if self.clock == ClockPlace::Elsewhere {
            self.refuse(Reason::SessionFunction);
            return;
        }
        if self.settings.contains(&name) {
            return;
        }
        if self.settings.len() == MOST_SETTINGS {
            self.refuse(Reason::TooComplex);
        } else {
            self.settings.push(name);
        }
    }
}

/// Returns true if `max` and `min` of times give one of the values that they are given.
fn extremes_are_as_listed() -> bool {
    clock::EXTREMES.iter().all(|(aggregate, transition, order)| {
        let parts = definition::of((*aggregate).into());
        let is_known = |part: &pg_sys::Oid| [*transition, *order].contains(&part.to_u32());
        parts.is_some_and(|parts| parts.trees.is_empty() && parts.functions.iter().all(is_known))
    })
}

/// The name of the setting that a call of `current_setting` asks for, if it is a constant.
fn constant_name<'t>(call: Tree<'t, pg_sys::FuncExpr>) -> Option<&'t [u8]> {
    let arguments = child!(call.args).filter(|_| CURRENT_SETTING.contains(&call.funcid.to_u32()))?;
    arguments.items().next()??.constant_text()
}
