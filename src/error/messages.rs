//! What can be wrong with a call of our SQL functions, or with the settings at the server's start: SQLSTATE, message
//! and hint of each error.

use std::fmt::Display;

use arrow_cache_core::formats::decimal::MAX_PRECISION;
use arrow_cache_core::formats::options::OPTION_NAMES;
use arrow_cache_core::{OptionError, OutOfMemory, Reason, Unrepresentable, Why};
use pgrx::PgSqlErrorCode::{self, *};

/// An error that a user can cause and correct. Text that a user has written comes from `shown`, which cuts it before it
/// copies it.
#[derive(Debug)]
pub struct CacheError {
    /// The SQLSTATE.
    pub(super) code: PgSqlErrorCode,
    /// What is wrong.
    pub(super) message: String,
    /// What to do about it.
    pub(super) hint: String,
}

impl From<OutOfMemory> for CacheError {
    fn from(_: OutOfMemory) -> Self {
        Self::out_of_memory()
    }
}

impl CacheError {
    fn new(code: PgSqlErrorCode, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: hint.into() }
    }

    /// There is no memory for what the user has asked for.
    pub fn out_of_memory() -> Self {
        Self::new(ERRCODE_OUT_OF_MEMORY, "out of memory", "Ask for less at once, or let the server have more memory.")
    }

    /// `pg_arrow_cache.memory` cannot hold the index for `max_entries`; `needed` is the size in bytes that can.
    pub fn memory_too_small(needed: usize) -> Self {
        Self::new(
            ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
            "\"pg_arrow_cache.memory\" is too small for \"pg_arrow_cache.max_entries\"",
            format!(
                "Set \"pg_arrow_cache.memory\" to at least {}MB or lower \"pg_arrow_cache.max_entries\".",
                needed.div_ceil(1024 * 1024)
            ),
        )
    }

    /// A column cannot be delivered as the options ask for it.
    pub fn undeliverable_column(column: impl Display, digits: u32) -> Self {
        let problem = format!("a numeric has {digits} digits, a decimal at most {MAX_PRECISION}");
        Self::new(
            ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            format!("column \"{column}\" cannot be delivered as Arrow: {problem}"),
            remedy(Some(("numeric", "text"))),
        )
    }

    /// A value cannot be delivered; rows count from 1.
    pub fn undeliverable_value(column: impl Display, row: u64, problem: Unrepresentable) -> Self {
        let code = match problem.why {
            Why::ArrayBounds => ERRCODE_FEATURE_NOT_SUPPORTED,
            Why::Number(_) | Why::Time | Why::SpecialTime => ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            Why::TooLarge => ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            Why::OutOfMemory => return Self::out_of_memory(),
        };
        let message = format!("column \"{column}\", row {row}, cannot be delivered as Arrow: {problem}");
        Self::new(code, message, remedy(problem.remedy()))
    }

    /// A result cannot be delivered as Arrow.
    pub fn undeliverable(reason: Reason) -> Self {
        if reason == Reason::OutOfMemory {
            return Self::out_of_memory();
        }
        Self::new(
            ERRCODE_FEATURE_NOT_SUPPORTED,
            format!("the result cannot be delivered as Arrow: {}", reason.name()),
            match reason {
                Reason::ChangedMeanwhile => "A row type changed while its rows were being sent: run it again.".into(),
                _ => format!("{} Cast the column to text.", reason.describe()),
            },
        )
    }

    /// An option of an export does not exist, or cannot have its value.
    pub fn bad_option(error: OptionError) -> Self {
        match error {
            OptionError::Unknown { option } => Self::new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("unknown Arrow export option \"{option}\""),
                format!("The options are: {}.", OPTION_NAMES.join(", ")),
            ),
            OptionError::Repeated { option } => Self::new(
                ERRCODE_SYNTAX_ERROR,
                format!("Arrow export option \"{option}\" is given more than once"),
                "Give each option once.",
            ),
            OptionError::Invalid { option, value, expected } => Self::new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                if value.is_empty() {
                    format!("Arrow export option \"{option}\" needs a value")
                } else {
                    format!("invalid value for Arrow export option \"{option}\": \"{value}\"")
                },
                format!("It takes {expected}."),
            ),
        }
    }

    /// A column was asked for that the result does not have, or has more than once (`repeated`). `columns` lists those
    /// that it has.
    pub fn no_such_column(name: impl Display, repeated: bool, columns: impl Display) -> Self {
        Self::new(
            ERRCODE_INVALID_PARAMETER_VALUE,
            if repeated {
                format!("the result has more than one column \"{name}\"")
            } else {
                format!("the result has no column \"{name}\"")
            },
            format!("Option \"columns\" names columns of the result, which are: {columns}."),
        )
    }

    /// A SQL function is declared with other columns than the C function of ours gives.
    pub fn misdeclared(function: impl Display) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        Self::new(
            ERRCODE_INVALID_FUNCTION_DEFINITION,
            format!("function {function} is not declared with the columns that pg_arrow_cache {version} gives"),
            "Run ALTER EXTENSION pg_arrow_cache UPDATE. If another version of the library has been installed, restart the server first.",
        )
    }
}

/// One row for each error that is no more than its texts: what it is about, its SQLSTATE, its message and its hint.
macro_rules! errors {
    ($($(#[doc = $doc:literal])+ $name:ident($($argument:ident: $type:ty),*) $code:ident $message:literal $hint:literal)+) => {
        impl CacheError {
            $($(#[doc = $doc])+ pub fn $name($($argument: $type),*) -> Self {
                Self::new($code, format_args!($message).to_string(), format_args!($hint).to_string())
            })+
        }
    };
}

errors! {
    /// The library was not loaded by `shared_preload_libraries`.
    not_preloaded() ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE
        "pg_arrow_cache must be loaded via \"shared_preload_libraries\""
        "Add pg_arrow_cache to \"shared_preload_libraries\" in postgresql.conf and restart the server."

    /// A placeholder was executed as if it were a plan.
    placeholder_run() ERRCODE_INTERNAL_ERROR
        "a plan of pg_arrow_cache was started without its ExecutorStart hook"
        "Another library keeps ExecutorStart from calling the hooks that were installed before its own."

    /// The text given to an export function is not exactly one SELECT.
    not_one_select(found: impl Display) ERRCODE_SYNTAX_ERROR
        "the query must be exactly one SELECT, not {found}"
        "Pass a single SELECT, VALUES or WITH ... SELECT statement."

    /// The number of parameters passed differs from the number the query uses.
    missing_parameter(number: i32, given: usize) ERRCODE_UNDEFINED_PARAMETER
        "there is no parameter ${number}"
        "{given} parameters were passed after the query."

    /// The finished stream would be larger than a `bytea` can be.
    stream_too_large(bytes: usize) ERRCODE_PROGRAM_LIMIT_EXCEEDED
        "the Arrow stream of {bytes} bytes does not fit in one bytea"
        "Narrow the query, or split it into ranges."

    /// The options of an export function are no JSON object.
    options_not_an_object() ERRCODE_INVALID_PARAMETER_VALUE
        "Arrow export options must be a JSON object"
        "For example: '{{\"limit\": 100, \"columns\": [\"a\", \"b\"]}}'."

    /// COPY FROM was to read Arrow.
    arrow_from() ERRCODE_FEATURE_NOT_SUPPORTED
        "COPY FROM cannot read the format \"arrow\""
        "The format is for COPY ... TO STDOUT."

    /// The file with an answer cannot be read.
    failed_file(name: impl Display, error: impl Display) ERRCODE_IO_ERROR
        "could not read a cached result from file \"{name}\": {error}"
        "The result was dropped. Repeat the statement."

    /// The file with an answer is not what was written.
    damaged_file(name: impl Display) ERRCODE_DATA_CORRUPTED
        "file \"{name}\" with a cached result is damaged"
        "The result was dropped. Repeat the statement, and check the disk."

    /// An answer that was found cannot be read any more.
    unservable_answer() ERRCODE_IO_ERROR
        "a cached result cannot be read any more"
        "The result was dropped. Repeat the statement."

    /// COPY was to write Arrow to a file or a program of the server.
    arrow_to_file() ERRCODE_FEATURE_NOT_SUPPORTED
        "COPY in the format \"arrow\" writes to STDOUT only"
        "psql's \\copy writes a file on the client's side: \\copy (SELECT ...) TO 'file' (FORMAT arrow)."

    /// COPY was to write Arrow, and nobody is connected.
    arrow_to_nobody() ERRCODE_FEATURE_NOT_SUPPORTED
        "COPY in the format \"arrow\" needs a client to send to"
        "Connect to a running server."

    /// The type of an argument of `query` is not known. `number` is that of the parameter.
    untyped_parameter(number: usize) ERRCODE_INDETERMINATE_DATATYPE
        "the type of parameter ${number} is not known"
        "Call arrow_cache.query() by its name in a SQL statement."

    /// The trigger function was not called by a trigger.
    not_a_trigger() ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED
        "arrow_cache.invalidate_on_change() must be called by a trigger"
        "CREATE TRIGGER ... FOR EACH STATEMENT EXECUTE FUNCTION arrow_cache.invalidate_on_change()."

    /// An argument of the trigger function names no relation.
    unknown_relation(name: impl Display) ERRCODE_UNDEFINED_TABLE
        "relation \"{name}\" does not exist"
        "Arguments of arrow_cache.invalidate_on_change() name further relations to invalidate."

    /// An argument of the trigger function names a relation that neither the user nor the owner of the trigger's table
    /// may change.
    not_yours_to_change(name: impl Display) ERRCODE_INSUFFICIENT_PRIVILEGE
        "permission denied to invalidate \"{name}\""
        "The user, or the owner of the trigger's table, must own the relation or be allowed to write it."

    /// An argument of the trigger function names a relation on which no result can rest.
    nothing_rests_on(name: impl Display) ERRCODE_WRONG_OBJECT_TYPE
        "no cached result rests on \"{name}\""
        "Arguments of arrow_cache.invalidate_on_change() name tables, views, materialized views or foreign tables."

    /// A label that is no policy.
    unknown_policy(word: impl Display) ERRCODE_INVALID_PARAMETER_VALUE
        "unknown cache policy \"{word}\""
        "A label is \"never\" or \"trusted\"; NULL stands for the default, as \"default\" does in set_policy()."

    /// A function was given a policy of this name.
    unknown_function_policy(word: impl Display) ERRCODE_INVALID_PARAMETER_VALUE
        "unknown cache policy of a function \"{word}\""
        "A function may be declared \"pure\"."

    /// A function was declared pure that is not written in PL/pgSQL.
    not_in_plpgsql() ERRCODE_INVALID_PARAMETER_VALUE
        "only a function in PL/pgSQL can be declared pure"
        "Functions in SQL are checked by their bodies."

    /// A policy cannot be set for an object whose rows no query reads.
    not_a_relation() ERRCODE_INVALID_PARAMETER_VALUE
        "only a table, view, materialized view or foreign table can have a cache policy"
        "Name the relation that queries read."
}

/// What to do about a column that cannot be delivered.
fn remedy(option: Option<(&str, &str)>) -> String {
    match option {
        Some((name, value)) => format!("Set the option \"{name}\" to \"{value}\", or cast the column to text."),
        None => "Narrow the query.".into(),
    }
}
