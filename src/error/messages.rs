//! The report of each error: SQLSTATE, message and hint. What a user has written comes already cut to a length that can be shown.

use arrow_cache_core::formats::decimal::MAX_PRECISION;
use arrow_cache_core::formats::options::OPTION_NAMES;
use arrow_cache_core::{OptionError, Reason, Unrepresentable, Why};
use pgrx::PgSqlErrorCode;

use super::cause::CacheError;

/// What a user is told.
pub struct Report {
    /// The SQLSTATE.
    pub code: PgSqlErrorCode,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl Report {
    fn new(code: PgSqlErrorCode, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: hint.into() }
    }
}

impl CacheError {
    /// What a user is told about the error.
    pub(super) fn report(&self) -> Report {
        match self {
            Self::NotPreloaded => not_preloaded(),
            Self::PlaceholderRun => placeholder_run(),
            Self::OutOfMemory
            | Self::Undeliverable { reason: Reason::OutOfMemory }
            | Self::UndeliverableValue { problem: Unrepresentable { why: Why::OutOfMemory, .. }, .. } => {
                out_of_memory()
            }
            Self::MemoryTooSmall { needed } => memory_too_small(*needed),
            Self::NotOneSelect { found } => not_one_select(found),
            Self::MissingParameter { number, given } => missing_parameter(*number, *given),
            Self::StreamTooLarge { bytes } => stream_too_large(*bytes),
            Self::UndeliverableColumn { column, digits } => undeliverable_column(column, *digits),
            Self::UndeliverableValue { column, row, problem } => undeliverable_value(column, *row, problem),
            Self::Undeliverable { reason } => undeliverable(*reason),
            Self::BadOption { error } => bad_option(error),
            Self::OptionsNotAnObject => options_not_an_object(),
            Self::NoSuchColumn { name, repeated, columns } => no_such_column(name, *repeated, columns),
            Self::UnsupportedCopy { problem, hint } => {
                Report::new(PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED, *problem, *hint)
            }
            Self::Misdeclared { symbol, function } => misdeclared(symbol, function.as_deref()),
            Self::UntypedParameter { number } => untyped_parameter(*number),
            Self::NotATrigger => not_a_trigger(),
            Self::UnknownRelation { name } => unknown_relation(name),
            Self::NotYoursToChange { name } => not_yours_to_change(name),
            Self::NothingRestsOn { name } => nothing_rests_on(name),
            Self::UnknownPolicy { word, default } => unknown_policy(word, *default),
            Self::NotARelation => not_a_relation(),
            Self::UnknownFunctionPolicy { word } => unknown_function_policy(word),
            Self::NotInPlpgsql => not_in_plpgsql(),
        }
    }
}

fn not_preloaded() -> Report {
    Report::new(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "pg_arrow_cache must be loaded via \"shared_preload_libraries\"",
        "Add pg_arrow_cache to \"shared_preload_libraries\" in postgresql.conf and restart the server.",
    )
}

fn placeholder_run() -> Report {
    Report::new(
        PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
        "a plan of pg_arrow_cache was started without its ExecutorStart hook",
        "Another library keeps ExecutorStart from calling the hooks that were installed before its own.",
    )
}

fn out_of_memory() -> Report {
    Report::new(
        PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY,
        "out of memory",
        "Ask for less at once, or let the server have more memory.",
    )
}

fn memory_too_small(needed: usize) -> Report {
    Report::new(
        PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
        "\"pg_arrow_cache.memory\" is too small for \"pg_arrow_cache.max_entries\"",
        format!(
            "Set \"pg_arrow_cache.memory\" to at least {}MB or lower \"pg_arrow_cache.max_entries\".",
            needed.div_ceil(1024 * 1024)
        ),
    )
}

fn not_one_select(found: &str) -> Report {
    Report::new(
        PgSqlErrorCode::ERRCODE_SYNTAX_ERROR,
        format!("the query must be exactly one SELECT, not {found}"),
        "Pass a single SELECT, VALUES or WITH ... SELECT statement.",
    )
}

fn missing_parameter(number: i32, given: usize) -> Report {
    Report::new(
        PgSqlErrorCode::ERRCODE_UNDEFINED_PARAMETER,
        format!("there is no parameter ${number}"),
        format!("{given} parameters were passed after the query."),
    )
}

fn stream_too_large(bytes: usize) -> Report {
    Report::new(
        PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        format!("the Arrow stream of {bytes} bytes does not fit in one bytea"),
        "Narrow the query, or split it into ranges.",
    )
}

fn undeliverable_column(column: &str, digits: u32) -> Report {
    let problem = format!("a numeric has {digits} digits, a decimal at most {MAX_PRECISION}");
    Report::new(
        PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
        format!("column \"{column}\" cannot be delivered as Arrow: {problem}"),
        remedy(Some(("numeric", "text"))),
    )
}

fn undeliverable_value(column: &str, row: u64, problem: &Unrepresentable) -> Report {
    let code = match problem.why {
        Why::ArrayBounds => PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        Why::Number(_) | Why::Time => PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
        Why::TooLarge => PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        Why::OutOfMemory => PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY,
    };
    let message = format!("column \"{column}\", row {row}, cannot be delivered as Arrow: {problem}");
    Report::new(code, message, remedy(problem.remedy()))
}

fn undeliverable(reason: Reason) -> Report {
    Report::new(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!("the result cannot be delivered as Arrow: {}", reason.name()),
        match reason {
            Reason::ChangedMeanwhile => "A row type changed while its rows were being sent: run it again.".into(),
            _ => format!("{} Cast the column to text.", reason.describe()),
        },
    )
}

/// What to do about a column that cannot be delivered.
fn remedy(option: Option<(&str, &str)>) -> String {
    match option {
        Some((name, value)) => format!("Set the option \"{name}\" to \"{value}\", or cast the column to text."),
        None => "Narrow the query.".into(),
    }
}

fn bad_option(error: &OptionError) -> Report {
    match error {
        OptionError::Unknown { option } => Report::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("unknown Arrow export option \"{option}\""),
            format!("The options are: {}.", OPTION_NAMES.join(", ")),
        ),
        OptionError::Repeated { option } => Report::new(
            PgSqlErrorCode::ERRCODE_SYNTAX_ERROR,
            format!("Arrow export option \"{option}\" is given more than once"),
            "Give each option once.",
        ),
        OptionError::Invalid { option, value, expected } => Report::new(
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

fn options_not_an_object() -> Report {
    Report::new(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        "Arrow export options must be a JSON object",
        "For example: '{\"limit\": 100, \"columns\": [\"a\", \"b\"]}'.",
    )
}

fn no_such_column(name: &str, repeated: bool, columns: &str) -> Report {
    Report::new(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        if repeated {
            format!("the result has more than one column \"{name}\"")
        } else {
            format!("the result has no column \"{name}\"")
        },
        format!("Option \"columns\" names columns of the result, which are: {columns}."),
    )
}

fn misdeclared(symbol: &str, function: Option<&str>) -> Report {
    let version = env!("CARGO_PKG_VERSION");
    let called = function.map_or_else(|| "what was called".into(), |name| format!("function {name}"));
    Report::new(
        PgSqlErrorCode::ERRCODE_INVALID_FUNCTION_DEFINITION,
        format!("{called} is not declared or called as \"{symbol}\" of pg_arrow_cache {version} must be"),
        "Run ALTER EXTENSION pg_arrow_cache UPDATE. If another version of the library has been installed, restart the server first.",
    )
}

fn untyped_parameter(number: usize) -> Report {
    Report::new(
        PgSqlErrorCode::ERRCODE_INDETERMINATE_DATATYPE,
        format!("the type of parameter ${number} is not known"),
        "Call arrow_cache.query() by its name in a SQL statement.",
    )
}

fn not_a_trigger() -> Report {
    Report::new(
        PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
        "arrow_cache.invalidate_on_change() must be called by a trigger",
        "CREATE TRIGGER ... FOR EACH STATEMENT EXECUTE FUNCTION arrow_cache.invalidate_on_change().",
    )
}

fn unknown_relation(name: &str) -> Report {
    Report::new(
        PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
        format!("relation \"{name}\" does not exist"),
        "Arguments of arrow_cache.invalidate_on_change() name further relations to invalidate.",
    )
}

fn not_yours_to_change(name: &str) -> Report {
    Report::new(
        PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
        format!("permission denied to invalidate \"{name}\""),
        "The user, or the owner of the trigger's table, must own the relation or be allowed to write it.",
    )
}

fn nothing_rests_on(name: &str) -> Report {
    Report::new(
        PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
        format!("no cached result rests on \"{name}\""),
        "Arguments of arrow_cache.invalidate_on_change() name tables, views, materialized views or foreign tables.",
    )
}

fn unknown_policy(word: &str, default: bool) -> Report {
    Report::new(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("unknown cache policy \"{word}\""),
        if default {
            "A policy is \"default\", \"never\" or \"trusted\"."
        } else {
            "A label is \"never\" or \"trusted\"; NULL stands for the default."
        },
    )
}

fn unknown_function_policy(word: &str) -> Report {
    Report::new(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("unknown cache policy of a function \"{word}\""),
        "A function may be declared \"pure\".",
    )
}

fn not_in_plpgsql() -> Report {
    Report::new(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        "only a function in PL/pgSQL can be declared pure",
        "Functions in SQL are checked by their bodies.",
    )
}

fn not_a_relation() -> Report {
    Report::new(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        "only a table, view, materialized view or foreign table can have a cache policy",
        "Name the relation that queries read.",
    )
}
