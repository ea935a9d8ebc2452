//! What can be wrong with a call of our SQL functions, and the report a user gets for it.
//!
//! The only file that names SQLSTATEs. Transparent caching never raises: these errors come from
//! functions that the user called by name, or from a server that was started with bad settings.

use arrow_cache_core::formats::options::OPTION_NAMES;
use arrow_cache_core::{Difference, FormError, LONGEST_SHOWN, OptionError, OutOfMemory, Reason, Unrepresentable, Why};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode, PgTryBuilder, pg_sys};

/// An error a user can cause and mend. What a user has written is put in by `shown`, which cuts it before it copies it.
#[derive(Debug)]
pub enum CacheError {
    /// The library was not loaded by `shared_preload_libraries`.
    NotPreloaded,
    /// `pg_arrow_cache.memory` cannot hold the index for `max_entries`; the bytes that it takes.
    MemoryTooSmall { needed: usize },
    /// The text given to an export function is not exactly one SELECT.
    NotOneSelect { found: String },
    /// The number of parameters passed differs from the number the query uses.
    MissingParameter { number: i32, given: usize },
    /// The finished stream would be larger than a `bytea` can be.
    StreamTooLarge { bytes: usize },
    /// A column cannot be delivered in the form that the options ask for.
    UndeliverableColumn { column: String, error: FormError },
    /// A value cannot be delivered; rows count from 1.
    UndeliverableValue { column: String, row: u64, problem: Unrepresentable },
    /// A result cannot be delivered as Arrow.
    Undeliverable { reason: Reason },
    /// An option of an export is not one, or cannot have its value.
    BadOption { error: OptionError },
    /// The options of an export function are no JSON object.
    OptionsNotAnObject,
    /// A column was asked for that the result does not have, or has more than once; and those it has, as a list.
    NoSuchColumn { name: String, repeated: bool, columns: String },
    /// COPY was told to do with Arrow what it cannot do.
    CopyForm { problem: &'static str, hint: &'static str },
    /// The trigger function was not called by a trigger.
    NotATrigger,
    /// An argument of the trigger function names no relation.
    UnknownRelation { name: String },
    /// One names a relation that neither the user nor the owner of the trigger's table may change.
    NotYoursToChange { name: String },
    /// One names a relation on which no result rests.
    NothingRestsOn { name: String },
    /// A policy was to be set with a word that stands for none; whether `default` may be written here.
    UnknownPolicy { word: String, default: bool },
    /// A policy was to be set for something whose rows no query reads.
    NotARelation,
    /// A plan that stands for a stored answer was run as it is.
    PlaceholderRun,
    /// There is no memory for what the user has asked for.
    OutOfMemory,
}

impl From<OutOfMemory> for CacheError {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

/// What was wanted; raises if there is no memory for it.
pub fn or_raise<T>(wanted: Result<T, OutOfMemory>) -> T {
    wanted.unwrap_or_else(|OutOfMemory| CacheError::OutOfMemory.raise())
}

impl CacheError {
    /// Raises the error in PostgreSQL.
    pub fn raise(self) -> ! {
        self.at(PgLogLevel::ERROR);
        unreachable!("an ERROR report returned")
    }

    fn at(&self, level: PgLogLevel) {
        let (code, message, hint) = self.report();
        let (message, hint) = (printable(message), printable(hint));
        ErrorReport::new(code, message, "pg_arrow_cache").set_hint(hint).report(level);
    }

    fn report(&self) -> (PgSqlErrorCode, String, String) {
        match self {
            Self::NotPreloaded => (
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "pg_arrow_cache must be loaded via \"shared_preload_libraries\"".into(),
                "Add pg_arrow_cache to \"shared_preload_libraries\" in postgresql.conf and restart the server.".into(),
            ),
            Self::PlaceholderRun => (
                PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
                "a plan of pg_arrow_cache was started without its ExecutorStart hook".into(),
                "Another library keeps ExecutorStart from calling the hooks that were installed before its own.".into(),
            ),
            Self::OutOfMemory
            | Self::Undeliverable { reason: Reason::OutOfMemory }
            | Self::UndeliverableValue { problem: Unrepresentable { why: Why::OutOfMemory, .. }, .. } => (
                PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY,
                "out of memory".into(),
                "Ask for less at once, or let the server have more memory.".into(),
            ),
            Self::MemoryTooSmall { needed } => (
                PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
                "\"pg_arrow_cache.memory\" is too small for \"pg_arrow_cache.max_entries\"".into(),
                format!(
                    "Set \"pg_arrow_cache.memory\" to at least {}MB or lower \"pg_arrow_cache.max_entries\".",
                    needed.div_ceil(1024 * 1024)
                ),
            ),
            Self::NotOneSelect { found } => (
                PgSqlErrorCode::ERRCODE_SYNTAX_ERROR,
                format!("the query must be exactly one SELECT, not {found}"),
                "Pass a single SELECT, VALUES or WITH ... SELECT statement.".into(),
            ),
            Self::MissingParameter { number, given } => (
                PgSqlErrorCode::ERRCODE_UNDEFINED_PARAMETER,
                format!("there is no parameter ${number}"),
                format!("{given} parameters were passed after the query."),
            ),
            Self::StreamTooLarge { bytes } => (
                PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!("the Arrow stream of {bytes} bytes does not fit in one bytea"),
                "Narrow the query, or split it into ranges.".into(),
            ),
            Self::UndeliverableColumn { column, error } => (
                PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!("column \"{column}\" cannot be delivered as Arrow: {error}"),
                remedy(Some(error.remedy())),
            ),
            Self::UndeliverableValue { column, row, problem } => (
                match problem.why {
                    Why::ArrayBounds => PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                    Why::Number(_) | Why::Time => PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                    Why::TooLarge => PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                    Why::OutOfMemory => PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY,
                },
                format!("column \"{column}\", row {row}, cannot be delivered as Arrow: {problem}"),
                remedy(problem.remedy()),
            ),
            Self::Undeliverable { reason } => (
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                format!("the result cannot be delivered as Arrow: {}", reason.name()),
                match reason {
                    Reason::ChangedMeanwhile => {
                        "A row type changed while its rows were being sent: run it again.".into()
                    }
                    _ => format!("{} Cast the column to text.", reason.describe()),
                },
            ),
            Self::BadOption { error } => bad_option(error),
            Self::OptionsNotAnObject => (
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                "Arrow export options must be a JSON object".into(),
                "For example: '{\"limit\": 100, \"columns\": [\"a\", \"b\"]}'.".into(),
            ),
            Self::NoSuchColumn { name, repeated, columns } => (
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                if *repeated {
                    format!("the result has more than one column \"{name}\"")
                } else {
                    format!("the result has no column \"{name}\"")
                },
                format!("Option \"columns\" names columns of the result, which are: {columns}."),
            ),
            Self::CopyForm { problem, hint } => {
                (PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED, (*problem).into(), (*hint).into())
            }
            Self::NotATrigger => (
                PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
                "arrow_cache.invalidate_on_change() must be called by a trigger".into(),
                "CREATE TRIGGER ... FOR EACH STATEMENT EXECUTE FUNCTION arrow_cache.invalidate_on_change().".into(),
            ),
            Self::UnknownRelation { name } => (
                PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
                format!("relation \"{name}\" does not exist"),
                "Arguments of arrow_cache.invalidate_on_change() name further relations to invalidate.".into(),
            ),
            Self::NotYoursToChange { name } => (
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("permission denied to invalidate \"{name}\""),
                "The user, or the owner of the trigger's table, must own the relation or be allowed to write it.".into(),
            ),
            Self::NothingRestsOn { name } => (
                PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
                format!("no cached result rests on \"{name}\""),
                "Arguments of arrow_cache.invalidate_on_change() name tables, views, materialized views or foreign tables."
                    .into(),
            ),
            Self::UnknownPolicy { word, default } => (
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("unknown cache policy \"{word}\""),
                if *default {
                    "A policy is \"default\", \"never\" or \"trusted\".".into()
                } else {
                    "A label is \"never\" or \"trusted\"; NULL stands for the default.".into()
                },
            ),
            Self::NotARelation => (
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                "only a table, view, materialized view or foreign table can have a cache policy".into(),
                "Name the relation that queries read.".into(),
            ),
        }
    }
}

/// A message that the database's encoding can hold: what is not ASCII is spelled out if that is not UTF-8.
fn printable(mut text: String) -> String {
    if text.len() > LONGEST_SHOWN {
        text.truncate(text.floor_char_boundary(LONGEST_SHOWN));
        text.push_str("...");
    }
    // SAFETY: reads the backend's state.
    if text.is_ascii() || unsafe { pg_sys::GetDatabaseEncoding() } == pg_sys::pg_enc::PG_UTF8 as i32 {
        return text;
    }
    text.chars().map(|c| if c.is_ascii() { c.to_string() } else { c.escape_unicode().to_string() }).collect()
}

/// What to do about a column that cannot be delivered.
fn remedy(option: Option<(&str, &str)>) -> String {
    match option {
        Some((name, value)) => format!("Set the option \"{name}\" to \"{value}\", or cast the column to text."),
        None => "Narrow the query.".into(),
    }
}

/// The report on an option of an export.
fn bad_option(error: &OptionError) -> (PgSqlErrorCode, String, String) {
    match error {
        OptionError::Unknown { option } => (
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("unknown Arrow export option \"{option}\""),
            format!("The options are: {}.", OPTION_NAMES.join(", ")),
        ),
        OptionError::Repeated { option } => (
            PgSqlErrorCode::ERRCODE_SYNTAX_ERROR,
            format!("Arrow export option \"{option}\" is given more than once"),
            "Give each option once.".into(),
        ),
        OptionError::Invalid { option, value, expected } => (
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            if value.is_empty() {
                format!("Arrow export option \"{option}\" needs a value")
            } else {
                format!("invalid value for Arrow export option \"{option}\": \"{value}\"")
            },
            format!("It takes {expected}."),
        ),
    }
}

/// Warns, in the log and to the client, that a stored result of `stored` rows differs from the `executed` ones.
pub fn warn_of_difference(query_id: i64, difference: Difference, stored: u64, executed: u64) {
    let message = format!("the cached result of query {query_id} differs from executing it");
    let detail = match difference {
        Difference::RowCount => format!("The cache held {stored} rows, executing gave {executed}."),
        Difference::Values => format!("The number of rows is {executed} in both; their values differ."),
        Difference::Order => format!("Both hold the same {executed} rows, but the sort keys in another order."),
    };
    ErrorReport::new(PgSqlErrorCode::ERRCODE_WARNING, message, "pg_arrow_cache")
        .set_detail(detail)
        .set_hint("The executed rows were sent, and the cached result was dropped.")
        .report(PgLogLevel::WARNING);
}

/// Writes a line to the server's log, with the statement that is running. Clients do not see it.
pub fn log(line: String) {
    ErrorReport::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, line, "pg_arrow_cache")
        .report(PgLogLevel::LOG_SERVER_ONLY);
}

/// Stops the server's start with the error: a cache that cannot be set up must not be ignored.
pub fn fail_startup(error: &CacheError) -> ! {
    error.at(PgLogLevel::FATAL);
    unreachable!("a FATAL report returned")
}

/// Keeps the stack of our functions, with the paths of the machine they were built on, out of the DETAIL of errors, where pgrx puts it if the
/// server was started with RUST_BACKTRACE. Called first of all.
///
/// The standard library asks its environment once per process, and remembers; it is left as it was.
pub fn keep_stacks_private() {
    const SWITCH: &str = "RUST_LIB_BACKTRACE";
    let before = std::env::var_os(SWITCH);
    // SAFETY: the postmaster and its children have one thread.
    unsafe {
        std::env::set_var(SWITCH, "0");
        drop(std::backtrace::Backtrace::capture());
        match before {
            Some(value) => std::env::set_var(SWITCH, value),
            None => std::env::remove_var(SWITCH),
        }
    }
}

/// Does an ERROR with this code say that a prepared transaction was not ended: none of that name, of somebody else, of
/// another database, in other hands just now, or asked for inside a transaction?
pub fn refuses_prepared(code: i32) -> bool {
    [
        PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
        PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        PgSqlErrorCode::ERRCODE_ACTIVE_SQL_TRANSACTION,
    ]
    .contains(&PgSqlErrorCode::from(code))
}

/// Runs code that allocates; `None` instead of an ERROR when there is no memory for it.
pub fn none_if_out_of_memory<T>(code: impl FnOnce() -> T + std::panic::UnwindSafe) -> Option<T> {
    PgTryBuilder::new(|| Some(code())).catch_when(PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY, |_| None).execute()
}

/// Tells the server's log, and nobody else, that the client cannot be reached any more.
pub fn log_lost_client(error: &std::io::Error) {
    let code = PgSqlErrorCode::ERRCODE_CONNECTION_FAILURE;
    ErrorReport::new(code, format!("could not send data to client: {error}"), "pg_arrow_cache")
        .report(PgLogLevel::LOG_SERVER_ONLY);
}
