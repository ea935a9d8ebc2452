//! Every setting of the extension, with its unit and range.
//!
//! The only file that holds `GucSetting`s; the rest of the code calls the typed functions below. The server changes the
//! values. Settings that size shared memory are read once, by the postmaster, before the shared block exists.

use std::ffi::{CStr, CString};
use std::time::Duration;

use pgrx::PostgresGucEnum;
use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting, GucValue};

/// `CARGO_PKG_VERSION` as a C string.
pub const VERSION_TEXT: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(text) => text,
    Err(_) => c"",
};

/// One row for each setting: its variable, type and default; its name and, for a number, the least and the greatest
/// value; who may set it, and its unit or another flag; what `pg_settings` tells of it.
macro_rules! settings {
    ($(
        $(#[doc = $doc:literal])+
        $variable:ident: $type:ty = $default:expr;
        $define:ident($name:literal $(, $least:expr, $greatest:expr)?), $who:ident $(, $unit:ident)?;
        $short:literal $more:literal
    )+) => {
        $($(#[doc = $doc])+ static $variable: GucSetting<$type> = GucSetting::<$type>::new($default);)+

        fn define_rows() {
            $(GucRegistry::$define(
                $name, $short, $more, &$variable, $($least, $greatest,)? GucContext::$who,
                GucFlags::empty() $(| GucFlags::$unit)?,
            );)+
        }
    };
}

settings! {
    // What a session does with the cache at all.

    /// Off: this session neither reads nor fills the cache, and its statements pay nothing for it.
    ENABLED: bool = true; define_bool_guc(c"pg_arrow_cache.enabled"), Userset;
    c"Serves this session from the result cache and lets it fill the cache." c""

    /// Off: hits are served, nothing new is stored. For batch jobs whose results nobody asks again.
    POPULATE: bool = true; define_bool_guc(c"pg_arrow_cache.populate"), Userset;
    c"Stores new results; when off, existing ones are still served." c""

    // Read once, by the postmaster.

    /// Megabytes in all: results, index and bookkeeping. One allocation at server start.
    MEMORY_MB: i32 = 256; define_int_guc(c"pg_arrow_cache.memory", 4, 1024 * 1024), Postmaster, UNIT_MB;
    c"Shared memory for cached results, their index and bookkeeping." c""

    /// Size of the entry table; about 200 bytes of `memory` each.
    MAX_ENTRIES: i32 = 10_000; define_int_guc(c"pg_arrow_cache.max_entries", 1, 50_000_000), Postmaster;
    c"Most results held at once." c""

    // What is kept on disk.

    /// Megabytes of files. 0: no answer is ever written to a file to make room in memory.
    DISK_MEMORY_MB: i32 = 0; define_int_guc(c"pg_arrow_cache.disk_memory", 0, i32::MAX), Sighup, UNIT_MB;
    c"Disk space for large results that have to leave shared memory." c"0 keeps none."

    // What outlives a restart.

    /// Off: the postmaster neither writes a file when it stops, nor reads one when it starts.
    SAVE_ON_SHUTDOWN: bool = true; define_bool_guc(c"pg_arrow_cache.save_on_shutdown"), Sighup;
    c"Keeps the results over a restart, if nothing has changed in between."
    c"They are written to a file when the server is shut down, and read when it starts."

    // Which results are stored, and for how long.

    /// Kilobytes. Keeps one large result from evicting many small ones.
    MAX_ENTRY_SIZE_KB: i32 = 64 * 1024; define_int_guc(c"pg_arrow_cache.max_entry_size", 1, i32::MAX), Suset, UNIT_KB;
    c"A larger result is passed through and not stored." c""

    /// Seconds. Answers are exact without it: it only removes results that nobody asks for any more.
    TTL_S: i32 = 3600; define_int_guc(c"pg_arrow_cache.ttl", 0, i32::MAX), Userset, UNIT_S;
    c"A result older than this is not served."
    c"Bounds the age this session accepts and the life of what it stores. 0 means no limit."

    /// Milliseconds. The result of a faster execution is not stored: a hit would save nothing that a client could
    /// notice.
    MIN_EXECUTION_TIME_MS: f64 = 1.0;
    define_float_guc(c"pg_arrow_cache.min_execution_time", 0.0, 86_400_000.0), Userset, UNIT_MS;
    c"Only results that took at least this long to compute are stored." c"0 stores all."

    /// The execution at which a result is stored. Above 1, results of queries that come only once are not stored.
    MIN_RUNS: i32 = 1; define_int_guc(c"pg_arrow_cache.min_runs", 1, 65_535), Userset;
    c"Stores a result at this execution of the same query and parameters." c"1 stores at the first execution."

    // Which queries are computed from fragments.

    /// Off: this session computes no answer from fragments, and stores none.
    ENABLE_FRAGMENTS: bool = true; define_bool_guc(c"pg_arrow_cache.enable_fragments"), Userset;
    c"Computes aggregates over partitioned tables from stored parts, one for each partition." c""

    /// Milliseconds. Below that, looking for parts would cost more than it saves.
    FRAGMENT_MIN_TIME_MS: f64 = 20.0;
    define_float_guc(c"pg_arrow_cache.fragment_min_time", 0.0, 86_400_000.0), Userset, UNIT_MS;
    c"Only queries that usually take at least this long are computed from stored parts."
    c"0 means all that were executed before."

    // Which functions are accepted.

    /// Extensions whose immutable functions count like built-in ones. Decides on answers, so that only superusers set
    /// it.
    TRUSTED_EXTENSIONS: Option<CString> = Some(c""); define_string_guc(c"pg_arrow_cache.trusted_extensions"), Suset;
    c"Extensions whose immutable functions, operators and operator classes count like built-in ones."
    c"Names, separated by commas."

    // What a change outdates.

    /// Off: this session stores no answer that outlives changes of other rows, and notes no values that it changes.
    PRECISE_INVALIDATION: bool = true; define_bool_guc(c"pg_arrow_cache.precise_invalidation"), Userset;
    c"Lets an answer over certain values of a column outlive changes of rows with other values."
    c"When off, this session stores no such answers, and its changes outdate all answers over a table."

    // Who waits for whom, and how far an answer may lie in the past.

    /// Milliseconds. How long a statement waits for another one that computes the same answer.
    MAX_WAIT_MS: i32 = 1000; define_int_guc(c"pg_arrow_cache.max_wait", 0, i32::MAX), Userset, UNIT_MS;
    c"Longest time that a statement waits for another one that computes the same answer."
    c"It computes the answer itself after that. 0 means that it never waits, and that nobody waits for it."

    /// Milliseconds. 0: answers are exact.
    MAX_STALE_MS: i32 = 0; define_int_guc(c"pg_arrow_cache.max_stale", 0, i32::MAX), Userset, UNIT_MS;
    c"An answer may be the one that the statement would have had so long ago." c"0 means that every answer is exact."

    // Finding out what the cache does, and whether it is right.

    /// Share of hits that are also executed. Such a hit costs as much as an execution.
    VERIFY_SAMPLE_RATE: f64 = 0.0; define_float_guc(c"pg_arrow_cache.verify_sample_rate", 0.0, 1.0), Suset;
    c"Share of hits that are also executed and compared with the result in the cache."
    c"A difference is logged as a warning and counted, and the result dropped. 0 compares none, 1 all."

    /// Shows what the cache does with an application's statements.
    LOG_DECISIONS: LogDecisions = LogDecisions::Off; define_enum_guc(c"pg_arrow_cache.log_decisions"), Suset;
    c"Logs what became of each statement, and why."
    c"\"miss\" leaves out those that were answered from the cache."

    /// Developer option: each query that can be computed from fragments is, from its first run on.
    DEBUG_FORCE_FRAGMENTS: bool = false;
    define_bool_guc(c"pg_arrow_cache.debug_force_fragments"), Suset, NO_SHOW_ALL;
    c"Computes each query from stored parts that can be, from its first run on."
    c"For tests: whatever the query takes, and however few partitions there are."

    /// The version of this library. Nobody can set it. Scripts of the extension ask for it.
    VERSION: Option<CString> = Some(VERSION_TEXT);
    define_string_guc(c"pg_arrow_cache.version"), Internal, DISALLOW_IN_FILE;
    c"Version of the library that the server has loaded." c""
}

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
pub fn define() {
    define_rows();
    // SAFETY: a plain C call with a NUL-terminated literal, in the postmaster during preload.
    unsafe { kept!(pg_sys::MarkGUCPrefixReserved(c"pg_arrow_cache".as_ptr())) };
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

/// Most bytes of the files of results.
pub fn disk_bytes() -> u64 {
    u64::from(now(&DISK_MEMORY_MB).unsigned_abs()) * 1024 * 1024
}

/// Returns true if answers are to outlive a restart.
pub fn save_on_shutdown() -> bool {
    now(&SAVE_ON_SHUTDOWN)
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
    // Asked for at each quick run: `Duration::from_secs_f64` takes several times as long.
    Duration::from_nanos((now(&MIN_EXECUTION_TIME_MS) * 1_000_000.0) as u64)
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
