//! `arrow_cache.why`: what the cache would do with a query, and what stands in its way, without running it.
//!
//! The query is parsed, rewritten and planned like any other, and asked the same questions in the same order: what it
//! says, what it reads, and what this session may do at this moment. Parameters need no values.

use std::ffi::CStr;

use arrow_cache_core::Reason;
use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::admin::required_store;
use crate::error::CacheError;
use crate::export;
use crate::judge::{self, Found, Question};
use crate::query::eligibility;
use crate::query::relations::{self, RelationRefusal};
use crate::query::types::nodes;
use crate::session::PlanningExport;
use crate::settings;
use crate::shmem::SharedStore;

/// Most relations that an answer names.
const NAMED_RELATIONS: usize = 20;

/// Why a query is not cached.
struct Refusal {
    reason: Reason,
    /// What is to blame, as the rest of the sentence "It …".
    offender: Option<Vec<u8>>,
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Self { reason, offender: None }
    }
}

/// Would this query be cached? If so, `detail` says what its answer would rest on; else why not.
///
/// Texts come and go as bytes in the encoding of the database, which Rust's strings need not have; a `bytea` and a `text` of
/// the same bytes are the same value.
#[pg_extern(
    volatile,
    parallel_unsafe,
    sql = "CREATE FUNCTION why(query text) RETURNS TABLE (cacheable bool, reason text, detail text)
           STRICT VOLATILE PARALLEL UNSAFE ROWS 1 LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
#[allow(clippy::type_complexity)]
fn why(
    query: pgrx::datum::AnyElement,
) -> TableIterator<'static, (name!(cacheable, bool), name!(reason, Option<&'static str>), name!(detail, Option<Vec<u8>>))>
{
    let store = required_store();
    // SAFETY: called from a SQL function with a text, so inside a transaction.
    let judged = unsafe {
        let flat = pg_sys::pg_detoast_datum_packed(query.datum().cast_mut_ptr());
        let text = export::c_string(pgrx::varlena_to_byte_slice(flat));
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let judged = judge(&store, &text);
        pg_sys::PopActiveSnapshot();
        judged
    };
    TableIterator::once(match judged {
        Ok(relations) => (true, None, Some([b"rests on ".to_vec(), listed(relations)].concat())),
        Err(Refusal { reason: Reason::OutOfMemory, .. }) => CacheError::OutOfMemory.raise(),
        Err(Refusal { reason, offender }) => {
            let sentence = reason.describe().as_bytes();
            let detail = match offender {
                Some(offender) => [sentence, b" It ", &offender, b"."].concat(),
                None => sentence.to_vec(),
            };
            (false, Some(reason.name()), Some(detail))
        }
    })
}

/// The names of the relations that the query's answer would rest on.
///
/// # Safety
/// Called with an active snapshot, the transaction's own.
unsafe fn judge(store: &SharedStore, text: &CStr) -> Result<Vec<Vec<u8>>, Refusal> {
    // SAFETY: the steps that PostgreSQL itself takes with a query; trees live in the current memory context.
    unsafe {
        let query = one_select(text)?;
        let mut offender = None;
        let meaning = eligibility::judge_tree_naming(query, &mut offender).map_err(|reason| Refusal {
            reason,
            offender: offender.map(|function| [b"calls ".to_vec(), function_name(function)].concat()),
        })?;
        let planning = PlanningExport::enter();
        let options = pg_sys::CURSOR_OPT_PARALLEL_OK as i32;
        let plan = pg_sys::pg_plan_query(query, text.as_ptr(), options, std::ptr::null_mut());
        drop(planning);
        relations::judge(plan).map_err(|RelationRefusal { reason, relation }| Refusal {
            reason,
            offender: Some([b"reads ".to_vec(), relation_name(relation.to_u32())].concat()),
        })?;
        if !settings::enabled() {
            return Err(Reason::Disabled.into());
        }
        let question = Question {
            plan,
            source: text.as_ptr(),
            params: std::ptr::null_mut(),
            snapshot: pg_sys::GetActiveSnapshot(),
            text: None,
            only_asked: true,
            stays_open: false,
            passes_quick: false,
            shape: None,
        };
        match judge::look(store, &question)? {
            Found::Hit(hit) => store.unpin(hit.pin),
            Found::Miss(miss) => match miss.refused {
                // Only running it can tell, or has told so far.
                None | Some(Reason::TooQuick | Reason::TooFewRuns) => {}
                Some(reason) => return Err(reason.into()),
            },
        }
        Ok(relations::of_plan(plan, meaning.extras.relations()).into_iter().map(relation_name).collect())
    }
}

/// Parses, analyzes and rewrites a text that is one SELECT.
///
/// # Safety
/// As `judge`.
unsafe fn one_select(text: &CStr) -> Result<*mut pg_sys::Query, Refusal> {
    let not_select =
        |what: String| Refusal { reason: Reason::NotSelect, offender: Some(format!("is {what}").into_bytes()) };
    // SAFETY: as the caller promises; each cast follows the node's tag.
    unsafe {
        let mut statements = nodes::<pg_sys::RawStmt>(pg_sys::pg_parse_query(text.as_ptr()));
        let raw = match (statements.next(), statements.len()) {
            (Some(raw), 0) => raw,
            (None, _) => return Err(not_select("empty".into())),
            (Some(_), more) => return Err(not_select(format!("{} statements", more + 1))),
        };
        let command = command_name((*raw).stmt);
        match (*(*raw).stmt).type_ {
            pg_sys::NodeTag::T_SelectStmt => {}
            pg_sys::NodeTag::T_InsertStmt
            | pg_sys::NodeTag::T_UpdateStmt
            | pg_sys::NodeTag::T_DeleteStmt
            | pg_sys::NodeTag::T_MergeStmt => return Err(not_select(command)),
            pg_sys::NodeTag::T_ExplainStmt => return Err(Reason::Explain.into()),
            _ => {
                return Err(Refusal {
                    reason: Reason::UtilityStatement,
                    offender: Some(format!("is {command}").into_bytes()),
                });
            }
        }
        let (mut types, mut count) = (std::ptr::null_mut(), 0);
        let query = pg_sys::parse_analyze_varparams(raw, text.as_ptr(), &mut types, &mut count, std::ptr::null_mut());
        if (*query).commandType == pg_sys::CmdType::CMD_UTILITY {
            let offender = Some("is SELECT INTO".into());
            return Err(Refusal { reason: Reason::UtilityStatement, offender });
        }
        // A SELECT is rewritten to exactly one query.
        Ok(nodes::<pg_sys::Query>(pg_sys::QueryRewrite(query)).next().unwrap_or(query))
    }
}

/// # Safety
/// `statement` must be a valid raw statement.
unsafe fn command_name(statement: *mut pg_sys::Node) -> String {
    // SAFETY: as the caller promises; tag names are literals of the server.
    unsafe { CStr::from_ptr(pg_sys::GetCommandTagName(pg_sys::CreateCommandTag(statement))) }
        .to_string_lossy()
        .into_owned()
}

/// A function's name with its argument types, qualified if need be.
fn function_name(function: pg_sys::Oid) -> Vec<u8> {
    // SAFETY: a catalog look-up; an unknown OID gives its number.
    unsafe { CStr::from_ptr(pg_sys::format_procedure(function)) }.to_bytes().to_vec()
}

/// A relation's qualified name.
fn relation_name(relation: u32) -> Vec<u8> {
    let relation = pg_sys::Oid::from(relation);
    // SAFETY: catalog look-ups; the relation is locked, and if its name is gone all the same, its number stands for it.
    unsafe {
        let name = pg_sys::get_rel_name(relation);
        let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(relation));
        if name.is_null() || schema.is_null() {
            return relation.to_u32().to_string().into_bytes();
        }
        CStr::from_ptr(pg_sys::quote_qualified_identifier(schema, name)).to_bytes().to_vec()
    }
}

/// Names in alphabetical order, with an end.
fn listed(mut names: Vec<Vec<u8>>) -> Vec<u8> {
    if names.is_empty() {
        return b"its own text alone".to_vec();
    }
    names.sort_unstable();
    let more = names.len().saturating_sub(NAMED_RELATIONS);
    names.truncate(NAMED_RELATIONS);
    let mut list = names.join(b", ".as_slice());
    if more > 0 {
        list.extend_from_slice(format!(" and {more} more").as_bytes());
    }
    list
}
