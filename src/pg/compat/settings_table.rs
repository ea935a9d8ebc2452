//! The server's table of settings.

use std::ffi::CStr;

use pgrx::pg_sys;

/// Gives the descriptions of all settings of the server, which are never freed, to `read`.
fn read_table<R>(read: impl FnOnce(&[*mut pg_sys::config_generic]) -> R) -> R {
    // SAFETY: a table of pointers to the descriptions of all settings, made for the caller from 16 on.
    unsafe {
        let mut count = 0;
        #[cfg(feature = "pg15")]
        let table = {
            count += pg_sys::GetNumConfigOptions();
            pg_sys::get_guc_variables()
        };
        #[cfg(not(feature = "pg15"))]
        let table = pg_sys::get_guc_variables(&raw mut count);
        let result = read(std::slice::from_raw_parts(table, count as usize));
        #[cfg(not(feature = "pg15"))]
        pg_sys::pfree(table.cast());
        result
    }
}

/// The server's description of one of its own settings, which is never freed; null if it has none of this name and kind.
pub fn setting_of_server(name: &CStr, kind: pg_sys::config_type::Type) -> *mut pg_sys::config_generic {
    // SAFETY: descriptions of settings, whose names end with NUL.
    let is_wanted = |setting: &*mut pg_sys::config_generic| unsafe {
        CStr::from_ptr((**setting).name) == name && (**setting).vartype == kind
    };
    read_table(|settings| settings.iter().copied().find(is_wanted).unwrap_or(std::ptr::null_mut()))
}

/// Where the value of a setting lies.
pub enum Variable {
    /// One that is on or off.
    Flag(*const bool),
    /// A whole number, or one of several words.
    Number(*const i32),
    /// Any number.
    Real(*const f64),
}

/// The groups of the settings of memory and of parallel workers (utils/guc_tables.h).
#[cfg(not(feature = "pg18"))]
const RESOURCES: [pg_sys::config_group::Type; 2] =
    [pg_sys::config_group::RESOURCES_MEM, pg_sys::config_group::RESOURCES_ASYNCHRONOUS];
#[cfg(feature = "pg18")]
const RESOURCES: [pg_sys::config_group::Type; 3] = [
    pg_sys::config_group::RESOURCES_MEM,
    pg_sys::config_group::RESOURCES_IO,
    pg_sys::config_group::RESOURCES_WORKER_PROCESSES,
];
/// Those of the planner.
const PLANNER: [pg_sys::config_group::Type; 4] = [
    pg_sys::config_group::QUERY_TUNING_METHOD,
    pg_sys::config_group::QUERY_TUNING_COST,
    pg_sys::config_group::QUERY_TUNING_GEQO,
    pg_sys::config_group::QUERY_TUNING_OTHER,
];

/// The variables of all settings that may change what the planner estimates: those of these groups, but for texts, and for `plan_cache_mode`, which
/// does not change what a plan costs.
pub fn variables_of_planning() -> Vec<Variable> {
    // SAFETY: descriptions of settings, of the kind that they name.
    let variable_of = |setting: &*mut pg_sys::config_generic| unsafe {
        let setting = *setting;
        let group = &(*setting).group;
        let is_wanted = (RESOURCES.contains(group) || PLANNER.contains(group))
            && CStr::from_ptr((*setting).name) != c"plan_cache_mode";
        if !is_wanted {
            return None;
        }
        match (*setting).vartype {
            pg_sys::config_type::PGC_BOOL => {
                Some(Variable::Flag((*setting.cast::<pg_sys::config_bool>()).variable.cast_const()))
            }
            pg_sys::config_type::PGC_INT => {
                Some(Variable::Number((*setting.cast::<pg_sys::config_int>()).variable.cast_const()))
            }
            pg_sys::config_type::PGC_ENUM => {
                Some(Variable::Number((*setting.cast::<pg_sys::config_enum>()).variable.cast_const()))
            }
            pg_sys::config_type::PGC_REAL => {
                Some(Variable::Real((*setting.cast::<pg_sys::config_real>()).variable.cast_const()))
            }
            _ => None,
        }
    };
    read_table(|settings| settings.iter().filter_map(variable_of).collect())
}
