//! Lines in the server's log that are no errors of a user.

use arrow_cache_core::{Loaded, ReplayFault};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode};

/// Warns, in the log and to the client, that a stored result of `stored` rows differs from what executing returned
/// (`executed` rows).
pub fn warn_of_difference(query_id: i64, stored: u64, executed: u64) {
    let message = format!("the cached result of query {query_id} differs from executing it");
    let detail = if stored == executed {
        format!("The number of rows is {executed} in both; their values differ.")
    } else {
        format!("The cache held {stored} rows, executing gave {executed}.")
    };
    ErrorReport::new(PgSqlErrorCode::ERRCODE_WARNING, message, "pg_arrow_cache")
        .set_detail(detail)
        .set_hint("The executed rows were sent, and the cached result was dropped.")
        .report(PgLogLevel::WARNING);
}

/// Tells the client that a check could not compare everything.
pub fn notice_undecided_check() {
    let message = "others were changing the cache all the time: its records, lists and bytes could not be compared";
    ErrorReport::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message, "pg_arrow_cache")
        .set_hint("Call the function again at a quieter moment.")
        .report(PgLogLevel::NOTICE);
}

/// Tells the client that a hint is not understood.
pub fn notice_unclear_hint() {
    let message = "a hint before the statement seems to be meant for pg_arrow_cache, and is not understood";
    ErrorReport::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message, "pg_arrow_cache")
        .set_detail("What is not understood has no effect.")
        .set_hint("There are no_arrow_cache and arrow_cache, the latter with or without options: arrow_cache(ttl=30, max_stale=5s, fragments=off).")
        .report(PgLogLevel::NOTICE);
}

/// Writes a line to the server's log, with the statement that is running. Clients do not see it.
fn log(line: String) {
    ErrorReport::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, line, "pg_arrow_cache")
        .report(PgLogLevel::LOG_SERVER_ONLY);
}

/// Logs that the server is of another minor release than the headers that the library was built with. Both are numbers
/// of versions (`server_version_num`).
pub fn log_other_release(built_for: u32, server: u32) {
    let shown = |number: u32| format!("{}.{}", number / 10_000, number % 10_000);
    let (built_for, server) = (shown(built_for), shown(server));
    let message = format!("pg_arrow_cache was built for PostgreSQL {built_for}, and this server is {server}");
    ErrorReport::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message, "pg_arrow_cache")
        .set_hint("A minor release may change what the library reads of the server: build it for that release.")
        .report(PgLogLevel::LOG_SERVER_ONLY);
}

/// Logs that the server is not built as expected, and what follows from that.
pub fn log_unexpected(sentence: &str) {
    log(format!("this server is not built as pg_arrow_cache expects: {sentence}"));
}

/// Logs what has outlived the restart.
pub fn log_loaded(loaded: &Loaded) {
    let Loaded { entries, bytes, lost, is_cut } = loaded;
    let rest = match (lost, is_cut) {
        (0, false) => String::new(),
        (lost, false) => format!("; {lost} are damaged or find no room"),
        (_, true) => "; the rest of the file is damaged".to_owned(),
    };
    log(format!("the cache begins with {entries} results of before the restart ({} kB){rest}", bytes / 1024));
}

/// Logs why nothing has outlived the restart.
pub fn log_not_loaded(reason: &str) {
    log(format!("the cache begins empty: {reason}"));
}

/// Logs why nothing will outlive the shutdown.
pub fn log_not_saved(reason: &str) {
    log(format!("the cache was not saved: {reason}"));
}

/// Logs that the client cannot be reached any more.
pub fn log_lost_client(error: &std::io::Error) {
    let code = PgSqlErrorCode::ERRCODE_CONNECTION_FAILURE;
    ErrorReport::new(code, format!("could not send data to client: {error}"), "pg_arrow_cache")
        .report(PgLogLevel::LOG_SERVER_ONLY);
}

/// Tells the log what of the WAL replay has not understood.
pub fn log_replay_fault(fault: ReplayFault) {
    let sentence = match fault {
        ReplayFault::CustomResourceManager => "Replay has met a record of an extension's resource manager.",
        ReplayFault::UnknownRecord => "Replay has met a record of an unknown kind.",
        ReplayFault::Failure => "Reading a record has failed.",
    };
    log(format!("the cache is switched off until the server is restarted: {sentence}"));
}
