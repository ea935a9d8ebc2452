//! `arrow_cache.query`: a query's result as one Arrow IPC stream, from the cache where it holds.
//!
//! The query goes the way of any other: parsed, planned, judged, looked up under a snapshot of its
//! own. A hit streams the stored batches; a miss runs the plan once, encodes its rows, and stores
//! them if that is allowed.

mod arguments;
mod collect;

use std::ffi::{CStr, CString};

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::admin::required_store;
use crate::arrow::chunk::Chunk;
use crate::arrow::column::{self, Column, Records};
use crate::arrow::deliver::{self, Delivery, END_OF_STREAM, PinnedSettings};
use crate::error::CacheError;
use crate::judge::{self, Found, Question};
use crate::query::types::nodes;
use crate::session::{self, PlanningExport, Status};
use crate::shmem::SharedStore;
use crate::{capture, decision_log, serve, tally, verify};

use arrow_cache_core::Reason;

/// Largest value PostgreSQL can allocate (MaxAllocSize).
const LARGEST_BYTEA: usize = 0x3fff_ffff;

/// Runs a query and returns its result as one Arrow IPC stream.
#[pg_extern(sql = "
CREATE FUNCTION query(query text) RETURNS bytea VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
CREATE FUNCTION query(query text, VARIADIC params \"any\") RETURNS bytea VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
")]
fn query(call: pg_sys::FunctionCallInfo) -> Option<Vec<u8>> {
    let store = required_store();
    // SAFETY: `call` is the call of this function, with a text first.
    unsafe {
        let text = arguments::text(call)?;
        let arguments = arguments::parameters(call);
        Some(run(&store, &text, &arguments))
    }
}

/// # Safety
/// Called from a SQL function.
unsafe fn run(store: &SharedStore, text: &CStr, arguments: &[arguments::Argument]) -> Vec<u8> {
    // SAFETY: the steps that PostgreSQL itself takes with a query; after an error the abort of the
    // transaction cleans up snapshots, portals and memory.
    unsafe {
        // Our own earlier commands in this transaction are visible to the query.
        pg_sys::CommandCounterIncrement();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let (plan, params) = plan(text, arguments);
        let query_desc = pg_sys::CreateQueryDesc(
            plan,
            text.as_ptr(),
            pg_sys::GetActiveSnapshot(),
            std::ptr::null_mut(),
            pg_sys::CreateDestReceiver(pg_sys::CommandDest::DestNone),
            params,
            std::ptr::null_mut(),
            0,
        );
        let stream = answer(store, query_desc);
        pg_sys::FreeQueryDesc(query_desc);
        pg_sys::PopActiveSnapshot();
        stream
    }
}

/// Parses, rewrites and plans one SELECT.
///
/// # Safety
/// Called with an active snapshot.
unsafe fn plan(text: &CStr, arguments: &[arguments::Argument]) -> (*mut pg_sys::PlannedStmt, pg_sys::ParamListInfo) {
    // SAFETY: as the caller promises; trees live in the current memory context.
    unsafe {
        let statements = pg_sys::pg_parse_query(text.as_ptr());
        let mut raw_statements = nodes::<pg_sys::RawStmt>(statements);
        if raw_statements.len() != 1 {
            let found = format!("{} statements", raw_statements.len());
            CacheError::NotOneSelect { found }.raise();
        }
        let raw = raw_statements.next().unwrap_or(std::ptr::null_mut());
        let (types, analyzed) = arguments::analyze(raw, text, arguments);
        let params = arguments::bind(arguments, &types);
        if let Some(found) = not_a_select(raw, analyzed) {
            CacheError::NotOneSelect { found }.raise();
        }
        let rewritten = pg_sys::QueryRewrite(analyzed);
        // A SELECT is rewritten to exactly one query.
        let query = nodes::<pg_sys::Query>(rewritten).next().unwrap_or(analyzed);
        let planning = PlanningExport::enter();
        let plan = pg_sys::pg_plan_query(query, text.as_ptr(), pg_sys::CURSOR_OPT_PARALLEL_OK as i32, params);
        drop(planning);
        (plan, params)
    }
}

/// What a statement is, if it is not a SELECT that only reads.
///
/// # Safety
/// The trees must be valid, and of the same statement.
unsafe fn not_a_select(raw: *const pg_sys::RawStmt, analyzed: *const pg_sys::Query) -> Option<String> {
    // SAFETY: as the caller promises; tag names are literals of the server.
    unsafe {
        if (*analyzed).hasModifyingCTE {
            return Some("a WITH clause that changes data".into());
        }
        let selects = (*(*raw).stmt).type_ == pg_sys::NodeTag::T_SelectStmt;
        if selects && (*analyzed).commandType == pg_sys::CmdType::CMD_SELECT {
            return None;
        }
        if selects {
            return Some("SELECT INTO".into());
        }
        let tag = pg_sys::CreateCommandTag((*raw).stmt);
        Some(CStr::from_ptr(pg_sys::GetCommandTagName(tag)).to_string_lossy().into_owned())
    }
}

/// # Safety
/// `query_desc` must be a query that is not started yet, under an active snapshot.
unsafe fn answer(store: &SharedStore, query_desc: *mut pg_sys::QueryDesc) -> Vec<u8> {
    // SAFETY: as the caller promises.
    unsafe {
        let found = if crate::settings::enabled() {
            judge::look(store, &Question::of(query_desc))
        } else {
            Err(Reason::Disabled)
        };
        match found {
            Ok(Found::Hit(mut hit)) => {
                tally::count_hit(store, &hit.pin);
                session::set_status(Status::Hit);
                decision_log::note(Status::Hit, (*query_desc).plannedstmt);
                if let Some(terms) = hit.verify.take() {
                    return stream_verified(query_desc, hit, terms);
                }
                stream_hit(store, query_desc, hit)
            }
            Ok(Found::Miss(miss)) => {
                tally::count_miss(store, &miss);
                let result = collect::run(query_desc);
                let refused = match miss.refused {
                    Some(reason) if reason != Reason::TooQuick => Some(reason),
                    _ => store_result(&miss, &result).err(),
                };
                session::set_status(miss.status(refused));
                decision_log::note_late(miss.status(refused), miss.query_id);
                stream_result(query_desc, &result)
            }
            Err(reason) => {
                if reason != Reason::Disabled {
                    tally::count_bypass(store, reason);
                }
                session::set_status(Status::Bypass(reason));
                decision_log::note(Status::Bypass(reason), (*query_desc).plannedstmt);
                let result = collect::run(query_desc);
                stream_result(query_desc, &result)
            }
        }
    }
}

fn store_result(miss: &judge::Miss, result: &collect::Collected) -> Result<(), Reason> {
    let chunks = result.chunks.iter().map(|chunk| chunk.as_slice());
    capture::store_chunks(miss, chunks, result.rows, result.elapsed)
}

/// Streams a stored entry. The serving plan is started, and so checked for permissions like any
/// other, but its rows are not asked for.
///
/// # Safety
/// As `answer`; the hit must answer the query.
unsafe fn stream_hit(store: &SharedStore, query_desc: *mut pg_sys::QueryDesc, hit: judge::Hit) -> Vec<u8> {
    // SAFETY: as the caller promises. The plan that was put in place keeps the entry pinned until
    // ExecutorEnd.
    unsafe {
        let columns = hit.columns.clone();
        let entry = serve::entry_of(&hit);
        serve::swap_plan(query_desc, hit);
        pg_sys::ExecutorStart(query_desc, 0);
        let chunks: Vec<&[u8]> = store.view(&entry).chunks().collect();
        let stream = stream((*query_desc).tupDesc, &columns, &chunks);
        pg_sys::ExecutorFinish(query_desc);
        pg_sys::ExecutorEnd(query_desc);
        stream
    }
}

/// Executes a query that could be answered, compares the two answers, and streams the executed one.
///
/// # Safety
/// As `answer`; the hit must answer the query.
unsafe fn stream_verified(query_desc: *mut pg_sys::QueryDesc, hit: judge::Hit, terms: verify::Terms) -> Vec<u8> {
    // SAFETY: as the caller promises. The result has been read to its end.
    unsafe {
        let sample = verify::sample(query_desc, hit, terms);
        let result = collect::run(query_desc);
        if let Some(sample) = sample.filter(|sample| sample.has_columns(&result.columns)) {
            sample.compare_chunks(result.chunks.iter().map(|chunk| chunk.as_slice()));
        }
        stream_result(query_desc, &result)
    }
}

/// # Safety
/// `query_desc` must be the ended query that gave the result.
unsafe fn stream_result(query_desc: *mut pg_sys::QueryDesc, result: &collect::Collected) -> Vec<u8> {
    // SAFETY: as the caller promises; the row type is worked out anew from the plan.
    unsafe {
        let target_list = (*(*(*query_desc).plannedstmt).planTree).targetlist;
        let descriptor = pg_sys::ExecCleanTypeFromTL(target_list);
        let chunks: Vec<&[u8]> = result.chunks.iter().map(|chunk| chunk.as_slice()).collect();
        stream(descriptor, &result.columns, &chunks)
    }
}

/// Schema, batches, end: one valid IPC stream.
///
/// # Safety
/// The chunks must have these columns, and `descriptor` must be their row type.
unsafe fn stream(descriptor: pg_sys::TupleDesc, columns: &[Column], chunks: &[&[u8]]) -> Vec<u8> {
    let undeliverable = |reason: Reason| -> ! { CacheError::Undeliverable { reason }.raise() };
    // SAFETY: as the caller promises.
    let schema = unsafe { deliver::schema_message(descriptor, columns) };
    let mut out = schema.unwrap_or_else(|reason| undeliverable(reason));
    let delivery = Delivery::new(columns);
    let pinned = (!delivery.is_verbatim()).then(PinnedSettings::enter);
    for bytes in chunks {
        // SAFETY: chunks come from our encoder.
        let chunk = unsafe { Chunk::new(bytes) };
        let converted;
        let message = if delivery.is_verbatim() {
            chunk.message()
        } else {
            // SAFETY: as the caller promises.
            converted = match unsafe { delivery.convert(chunk) } {
                Ok(converted) => converted,
                Err(reason) => undeliverable(reason),
            };
            // SAFETY: just written by our encoder.
            unsafe { Chunk::new(converted.as_slice()) }.message()
        };
        let bytes = out.len() + message.len() + END_OF_STREAM.len();
        if bytes > LARGEST_BYTEA {
            CacheError::StreamTooLarge { bytes }.raise();
        }
        out.extend_from_slice(message);
    }
    if let Some(pinned) = pinned {
        pinned.leave();
    }
    out.extend_from_slice(&END_OF_STREAM);
    out
}

/// The columns of a query's result, anonymous records included: they do not leave the session.
///
/// # Safety
/// `query_desc` must be a started query.
unsafe fn result_columns(query_desc: *const pg_sys::QueryDesc) -> Vec<Column> {
    // SAFETY: as the caller promises.
    match unsafe { column::columns_of((*query_desc).tupDesc, Records::Local) } {
        Ok(columns) => columns,
        Err(reason) => CacheError::Undeliverable { reason }.raise(),
    }
}

/// A text as a C string that outlives the call of the function.
fn c_string(bytes: &[u8]) -> CString {
    CString::new(bytes).unwrap_or_default()
}
