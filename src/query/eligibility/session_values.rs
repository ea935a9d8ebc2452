//! What a query asks of the session itself: who asks, which custom settings are there, what time it is.

use std::ffi::CString;

use arrow_cache_core::Reason;
use pgrx::pg_sys::{self, NodeTag};

use super::Walk;
use crate::pg::lists::nodes;
use crate::query::identity::CURRENT_SETTING;
use crate::query::row_types_and_settings::{LONGEST_NAME, MOST_SETTINGS};

/// The role that asks is in the key; of the time, the database's name and the schemas only the session knows.
///
/// # Safety
/// `value` must be valid.
pub(super) unsafe fn judge_session_value(value: *const pg_sys::SQLValueFunction, walk: &mut Walk) -> bool {
    // SAFETY: as the caller promises.
    let (op, kind) = unsafe { ((*value).op, (*value).type_) };
    walk.note_type(kind);
    walk.reads_settings = true;
    match op {
        pg_sys::SQLValueFunctionOp::SVFOP_CURRENT_ROLE
        | pg_sys::SQLValueFunctionOp::SVFOP_CURRENT_USER
        | pg_sys::SQLValueFunctionOp::SVFOP_USER => false,
        _ => walk.refuse(Reason::SessionFunction),
    }
}

/// Does the call ask for a custom setting, such as `app.tenant`, by a constant name? Then its value can be part of the
/// key. The server's own settings are not looked at in this way: some show the state of more than themselves. One too many is a
/// reason to refuse.
///
/// # Safety
/// `call` must be valid.
pub(super) unsafe fn reads_custom_setting(call: *const pg_sys::FuncExpr, walk: &mut Walk) -> bool {
    // SAFETY: as the caller promises; a non-null constant of type text holds a varlena.
    unsafe {
        if !CURRENT_SETTING.contains(&(*call).funcid.to_u32()) {
            return false;
        }
        let Some(argument) = nodes::<pg_sys::Node>((*call).args).next() else { return false };
        if (*argument).type_ != NodeTag::T_Const {
            return false;
        }
        let constant = &*argument.cast::<pg_sys::Const>();
        if constant.constisnull || constant.consttype != pg_sys::TEXTOID {
            return false;
        }
        // What the parser makes of a literal is returned as it is.
        let name = pgrx::varlena_to_byte_slice(pg_sys::pg_detoast_datum_packed(constant.constvalue.cast_mut_ptr()));
        if !name.contains(&b'.') || name.len() > LONGEST_NAME {
            return false;
        }
        walk.reads_settings = true;
        if !walk.settings.iter().any(|known| known.to_bytes() == name) {
            if walk.settings.len() == MOST_SETTINGS {
                walk.refuse(Reason::TooComplex);
            } else {
                // A text has no byte that is zero.
                walk.settings.push(CString::new(name).unwrap_or_default());
            }
        }
        true
    }
}

/// now() and its like, which deserve a reason of their own: now, transaction_timestamp,
/// statement_timestamp, clock_timestamp, timeofday, session_user, getpgusername, current_setting.
pub(super) const SESSION_FUNCTIONS: &[u32] = &[1299, 2647, 2648, 2649, 274, 746, 745, 710, 2077, 3294];
