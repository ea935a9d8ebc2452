//! Every setting of the extension, with its unit and range.
//!
//! The only file that holds `GucSetting`s; the rest of the code calls the typed functions below. The server changes the
//! values. Settings that size shared memory are read once, by the postmaster, before the shared block exists.

use std::ffi::{CStr, CString};
use std::time::Duration;

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting, GucValue};
use pgrx::{PostgresGucEnum, pg_sys};

/// `CARGO_PKG_VERSION` as a C string.
pub const VERSION_TEXT: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(text) => text,
    Err(_) => c"",
};

/// Off: this session neither reads nor fills the cache, and its statements pay nothing for it.
static ENABLED: GucSetting<bool> = GucSetting::<bool>::new(true);
/// Off: hits are served, nothing new is stored. For batch jobs whose results nobody asks again.
static POPULATE: GucSetting<bool> = GucSetting::<bool>::new(true);
/// Megabytes in all: results, index and bookkeeping. One allocation at server start.
static MEMORY_MB: GucSetting<i32> = GucSetting::<i32>::new(256);
/// Size of the entry table; about 200 bytes of `memory` each.
static MAX_ENTRIES: GucSetting<i32> = GucSetting::<i32>::new(10_000);
/// Kilobytes. Keeps one large result from evicting many small ones.
static MAX_ENTRY_SIZE_KB: GucSetting<i32> = GucSetting::<i32>::new(64 * 1024);
/// Seconds. Answers are exact without it: it only removes results that nobody asks for any more.
static TTL_S: GucSetting<i32> = GucSetting::<i32>::new(3600);
/// Milliseconds. The result of a faster execution is not stored: a hit would save nothing that a client could notice.
static MIN_EXECUTION_TIME_MS: GucSetting<f64> = GucSetting::<f64>::new(1.0);
/// The execution at which a result is stored. Above 1, results of queries that come only once are not stored.
static MIN_RUNS: GucSetting<i32> = GucSetting::<i32>::new(1);
/// Off: this session computes no answer from fragments, and stores none.
static ENABLE_FRAGMENTS: GucSetting<bool> = GucSetting::<bool>::new(true);
/// Milliseconds. Below that, looking for parts would cost more than it saves.
static FRAGMENT_MIN_TIME_MS: GucSetting<f64> = GucSetting::<f64>::new(20.0);
/// Per cent of `memory`. Keeps fragments, of which one statement may need hundreds, from evicting the answers.
static FRAGMENT_MEMORY_PERCENT: GucSetting<i32> = GucSetting::<i32>::new(50);
/// kB. Reading as much takes about a tenth of a second.
/// Milliseconds. How long a statement waits for another one that computes the same answer.
static MAX_WAIT_MS: GucSetting<i32> = GucSetting::<i32>::new(1000);
/// Milliseconds. 0: answers are exact.
static MAX_STALE_MS: GucSetting<i32> = GucSetting::<i32>::new(0);
/// Share of hits that are also executed. Such a hit costs as much as an execution.
static VERIFY_SAMPLE_RATE: GucSetting<f64> = GucSetting::<f64>::new(0.0);
/// Extensions whose immutable functions count like built-in ones.
static TRUSTED_EXTENSIONS: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
/// Shows what the cache does with an application's statements.
static LOG_DECISIONS: GucSetting<LogDecisions> = GucSetting::<LogDecisions>::new(LogDecisions::Off);
/// The version of this library. Nobody can set it.
static VERSION: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(VERSION_TEXT));
/// Off: this session stores no answer that outlives changes of other rows, and notes no values that it changes.
static PRECISE_INVALIDATION: GucSetting<bool> = GucSetting::<bool>::new(true);
/// Developer option: each query that can be computed from fragments is, from its first run on.
static DEBUG_FORCE_FRAGMENTS: GucSetting<bool> = GucSetting::<bool>::new(false);

/// Which statements `log_decisions` logs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PostgresGucEnum)]
pub enum LogDecisions {
    /// None.
    #[name = c"off"]
    Off,
    /// All that were not answered from the cache.
    #[name = c"miss"]
    Miss,
    /// All.
    #[name = c"all"]
    All,
}

/// Defines all settings and reserves the prefix. Called once, from `_PG_init`.
pub fn define(check_trusted: pg_sys::GucStringCheckHook) {
    define_switches();
    define_sizes_of_shared_memory();
    define_admission();
    define_fragments();
    define_grain();
    define_waiting();
    define_staleness();
    define_trust(check_trusted);
    define_diagnostics();
    define_presets();
    // SAFETY: a plain C call with a NUL-terminated literal, in the postmaster during preload.
    unsafe { kept!(pg_sys::MarkGUCPrefixReserved(c"pg_arrow_cache".as_ptr())) };
}

/// What a session does with the cache at all.
fn define_switches() {
    GucRegistry::define_bool_guc(
        c"pg_arrow_cache.enabled",
        c"Serves this session from the result cache and lets it fill the cache.",
        c"",
        &ENABLED,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"pg_arrow_cache.populate",
        c"Stores new results; when off, existing ones are still served.",
        c"",
        &POPULATE,
        GucContext::Userset,
        GucFlags::default(),
    );
}

/// What a change outdates.
fn define_grain() {
    GucRegistry::define_bool_guc(
        c"pg_arrow_cache.precise_invalidation",
        c"Lets an answer over certain values of a column outlive changes of rows with other values.",
        c"When off, this session stores no such answers, and its changes outdate all answers over a table.",
        &PRECISE_INVALIDATION,
        GucContext::Userset,
        GucFlags::default(),
    );
}

/// Read once, by the postmaster.
fn define_sizes_of_shared_memory() {
    GucRegistry::define_int_guc(
        c"pg_arrow_cache.memory",
        c"Shared memory for cached results, their index and bookkeeping.",
        c"",
        &MEMORY_MB,
        4,
        1024 * 1024,
        GucContext::Postmaster,
        GucFlags::UNIT_MB,
    );
    GucRegistry::define_int_guc(
        c"pg_arrow_cache.max_entries",
        c"Most results held at once.",
        c"",
        &MAX_ENTRIES,
        1,
        50_000_000,
        GucContext::Postmaster,
        GucFlags::default(),
    );
}

/// Which results are stored, and for how long.
fn define_admission() {
    GucRegistry::define_int_guc(
        c"pg_arrow_cache.max_entry_size",
        c"A larger result is passed through and not stored.",
        c"",
        &MAX_ENTRY_SIZE_KB,
        1,
        i32::MAX,
        GucContext::Suset,
        GucFlags::UNIT_KB,
    );
    GucRegistry::define_int_guc(
        c"pg_arrow_cache.ttl",
        c"A result older than this is not served.",
        c"Bounds the age this session accepts and the life of what it stores. 0 means no limit.",
        &TTL_S,
        0,
        i32::MAX,
        GucContext::Userset,
        GucFlags::UNIT_S,
    );
    GucRegistry::define_float_guc(
        c"pg_arrow_cache.min_execution_time",
        c"Only results that took at least this long to compute are stored.",
        c"0 stores all.",
        &MIN_EXECUTION_TIME_MS,
        0.0,
        86_400_000.0,
        GucContext::Userset,
        GucFlags::UNIT_MS,
    );
    GucRegistry::define_int_guc(
        c"pg_arrow_cache.min_runs",
        c"Stores a result at this execution of the same query and parameters.",
        c"1 stores at the first execution.",
        &MIN_RUNS,
        1,
        65_535,
        GucContext::Userset,
        GucFlags::default(),
    );
}

/// Who waits for whom.
fn define_waiting() {
    GucRegistry::define_int_guc(
        c"pg_arrow_cache.max_wait",
        c"Longest time that a statement waits for another one that computes the same answer.",
        c"It computes the answer itself after that. 0 means that it never waits, and that nobody waits for it.",
        &MAX_WAIT_MS,
        0,
        i32::MAX,
        GucContext::Userset,
        GucFlags::UNIT_MS,
    );
}

/// How far an answer may lie in the past.
fn define_staleness() {
    GucRegistry::define_int_guc(
        c"pg_arrow_cache.max_stale",
        c"An answer may be the one that the statement would have had so long ago.",
        c"0 means that every answer is exact.",
        &MAX_STALE_MS,
        0,
        i32::MAX,
        GucContext::Userset,
        GucFlags::UNIT_MS,
    );
}

/// Which queries are computed from fragments.
fn define_fragments() {
    GucRegistry::define_bool_guc(
        c"pg_arrow_cache.enable_fragments",
        c"Computes aggregates over partitioned tables from stored parts, one for each partition.",
        c"",
        &ENABLE_FRAGMENTS,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_float_guc(
        c"pg_arrow_cache.fragment_min_time",
        c"Only queries that usually take at least this long are computed from stored parts.",
        c"0 means all that were executed before.",
        &FRAGMENT_MIN_TIME_MS,
        0.0,
        86_400_000.0,
        GucContext::Userset,
        GucFlags::UNIT_MS,
    );
    GucRegistry::define_int_guc(
        c"pg_arrow_cache.fragment_memory",
        c"Most of the memory that stored parts take together, in per cent.",
        c"0 stores none.",
        &FRAGMENT_MEMORY_PERCENT,
        0,
        100,
        GucContext::Suset,
        GucFlags::default(),
    );
}

/// What a superuser promises. The server calls `check` for each list before it takes it.
fn define_trust(check: pg_sys::GucStringCheckHook) {
    // SAFETY: the only hook is one that the caller has guarded.
    unsafe {
        GucRegistry::define_string_guc_with_hooks(
            c"pg_arrow_cache.trusted_extensions",
            c"Extensions whose immutable functions, operators and operator classes count like built-in ones.",
            c"Names, separated by commas.",
            &TRUSTED_EXTENSIONS,
            GucContext::Suset,
            GucFlags::default(),
            check,
            None,
            None,
        );
    }
}

/// Finding out what the cache does, and whether it is right.
fn define_diagnostics() {
    GucRegistry::define_float_guc(
        c"pg_arrow_cache.verify_sample_rate",
        c"Share of hits that are also executed and compared with the result in the cache.",
        c"A difference is logged as a warning and counted, and the result dropped. 0 compares none, 1 all.",
        &VERIFY_SAMPLE_RATE,
        0.0,
        1.0,
        GucContext::Suset,
        GucFlags::default(),
    );
    GucRegistry::define_enum_guc(
        c"pg_arrow_cache.log_decisions",
        c"Logs what became of each statement, and why.",
        c"\"miss\" leaves out those that were answered from the cache.",
        &LOG_DECISIONS,
        GucContext::Suset,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"pg_arrow_cache.debug_force_fragments",
        c"Computes each query from stored parts that can be, from its first run on.",
        c"For tests: whatever the query takes, and however few partitions there are.",
        &DEBUG_FORCE_FRAGMENTS,
        GucContext::Suset,
        GucFlags::NO_SHOW_ALL,
    );
}

/// What can be read and not set. Scripts of the extension ask for the version.
fn define_presets() {
    GucRegistry::define_string_guc(
        c"pg_arrow_cache.version",
        c"Version of the library that the server has loaded.",
        c"",
        &VERSION,
        GucContext::Internal,
        GucFlags::DISALLOW_IN_FILE,
    );
}

/// What a setting is now. pgrx's own getter also asks which thread it runs on, which costs a call of the dynamic
/// linker; each statement reads several settings.
fn now<T: GucValue>(setting: &GucSetting<T>) -> T {
    // SAFETY: the variable is initialized, and only this thread, the only one of the process, changes it: never while
    // it is read.
    unsafe { T::from_raw(*setting.as_ptr()) }
}

/// Returns true if this session is served from the cache at all.
pub fn enabled() -> bool {
    now(&ENABLED)
}

/// Returns true if this session may store results.
pub fn populate() -> bool {
    now(&POPULATE)
}

/// Size of the shared block in bytes.
pub fn memory_bytes() -> usize {
    now(&MEMORY_MB) as usize * 1024 * 1024
}

/// Size of the entry table.
pub fn max_entries() -> u32 {
    now(&MAX_ENTRIES) as u32
}

/// Largest result that is stored, in bytes.
pub fn max_entry_bytes() -> usize {
    now(&MAX_ENTRY_SIZE_KB) as usize * 1024
}

/// Oldest result this session accepts, in microseconds; `None` when there is no limit.
pub fn ttl_micros() -> Option<i64> {
    match now(&TTL_S) {
        0 => None,
        seconds => Some(i64::from(seconds) * 1_000_000),
    }
}

/// How long ago an answer may have been right, in milliseconds; 0 when it has to be exact.
pub fn max_stale_ms() -> u32 {
    now(&MAX_STALE_MS).unsigned_abs()
}

/// Shortest execution whose result is stored, in milliseconds.
pub fn min_execution_time_ms() -> f64 {
    now(&MIN_EXECUTION_TIME_MS)
}

/// Shortest execution whose result is stored.
pub fn min_execution_time() -> Duration {
    Duration::from_secs_f64(now(&MIN_EXECUTION_TIME_MS) / 1000.0)
}

/// The execution of one query at which its result is stored, 1 being the first.
pub fn min_runs() -> u32 {
    now(&MIN_RUNS) as u32
}

/// Returns true if this session computes answers from fragments.
pub fn enable_fragments() -> bool {
    now(&ENABLE_FRAGMENTS)
}

/// Returns true if this session's answers and changes concern values of columns where they can.
pub fn precise_invalidation() -> bool {
    now(&PRECISE_INVALIDATION)
}

/// Least usual time of a query that is computed from fragments.
pub fn fragment_min_time() -> Duration {
    Duration::from_secs_f64(now(&FRAGMENT_MIN_TIME_MS) / 1000.0)
}

/// Most bytes that all fragments take together.
pub fn fragment_bytes() -> u64 {
    memory_bytes() as u64 / 100 * u64::from(now(&FRAGMENT_MEMORY_PERCENT).unsigned_abs())
}

/// Returns true if each query that can be computed from fragments is, from its first run on.
pub fn debug_force_fragments() -> bool {
    now(&DEBUG_FORCE_FRAGMENTS)
}

/// Longest time that a statement waits for another one that computes the same answer.
pub fn max_wait() -> Duration {
    Duration::from_millis(now(&MAX_WAIT_MS).unsigned_abs().into())
}

/// Share of hits that are executed as well and compared, from 0 to 1.
pub fn verify_sample_rate() -> f64 {
    now(&VERIFY_SAMPLE_RATE)
}

/// The list of trusted extensions as it was set; `None` if it is empty. Not to be kept.
pub fn trusted_extensions<'s>() -> Option<&'s CStr> {
    // SAFETY: the server's variable, null or a text that ends with NUL. Nobody sets it while it is read.
    let list = unsafe {
        let list = *TRUSTED_EXTENSIONS.as_ptr();
        if list.is_null() { return None } else { CStr::from_ptr(list) }
    };
    (!list.to_bytes().trim_ascii().is_empty()).then_some(list)
}

/// The statements that are logged.
pub fn log_decisions() -> LogDecisions {
    now(&LOG_DECISIONS)
}
