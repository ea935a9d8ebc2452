//! `arrow_cache.why`: what the cache would do with a query, and what stands in its way, without running it.
//!
//! The query is parsed, rewritten and planned like any other, and asked the same questions in the same order: what it
//! says, what it reads, and what this session may do at this moment. Parameters need no values.

use std::ffi::CStr;

use arrow_cache_core::{Reason, RoomyVec};
use pgrx::iter::TableIterator;
use pgrx::pg_sys;

use crate::error::{CacheError, or_raise};
use crate::functions::admin::required_store;
use crate::lookup;
use crate::lookup::{Found, Question};
use crate::pg::error_passing::kept;
use crate::pg::lists::nodes;
use crate::pg::sql_function::sql_function;
use crate::pg::tree::Tree;
use crate::pg::{privileges, server};
use crate::query::opened_relations::opened_by;
use crate::query::relations::{self, RelationRefusal};
use crate::query::{eligibility, planner_input};
use crate::session::PlanningExport;
use crate::shmem::SharedStore;
use crate::{export, settings};

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

/// What is told: whether the query is cacheable, the reason if it is not, and details.
type Answer = (bool, Option<&'static str>, Option<Vec<u8>>);

/// Would this query be cached? If so, `detail` says what its answer would rest on; else why not.
///
/// Texts come and go as bytes in the encoding of the database, which Rust's strings need not have; a `bytea` and a `text` of
/// the same bytes are the same value.
fn why(call: pg_sys::FunctionCallInfo) -> TableIterator<'static, Answer> {
    let store = required_store();
    // SAFETY: called as a SQL function with a text, so inside a transaction.
    let judged = unsafe {
        let text = export::query_text(call).unwrap_or_default();
        export::push_callers_snapshot();
        let judged = export::within(&text, || judge(&store, &text));
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

sql_function!(arrow_cache_why, pg_finfo_arrow_cache_why, why);

/// The relations that the query's answer would rest on.
///
/// Who may not run the query is told so, as by the server, and nothing else.
///
/// # Safety
/// Called with an active snapshot.
unsafe fn judge(store: &SharedStore, text: &CStr) -> Result<Vec<u32>, Refusal> {
    // SAFETY: the steps that PostgreSQL itself takes with a query; trees live in the current memory context.
    unsafe {
        let (query, types) = one_select(text)?;
        let mut offender = None;
        // Planning changes the tree.
        let traits = Tree::enter(query)
            .map_or(Err(Reason::NotSelect), |query| eligibility::check_query_naming(query, &mut offender));
        let planning = PlanningExport::enter();
        let (source, options) = (text.as_ptr(), pg_sys::CURSOR_OPT_PARALLEL_OK as i32);
        let plan = kept!(server::pg_plan_query(query, source, options, std::ptr::null_mut()));
        drop(planning);
        let query_desc = export::describe(plan, text, nulls(&types));
        export::check_permitted(query_desc);
        pg_sys::FreeQueryDesc(query_desc);
        let traits = traits.map_err(|reason| Refusal {
            reason,
            offender: offender.map(|function| [b"calls ".to_vec(), function_name(function)].concat()),
        })?;
        let ddl = lookup::definitions(store).ddl;
        let Some(tree) = Tree::enter(plan) else { return Err(Reason::NotAnalyzed.into()) };
        let judged =
            relations::check(tree).and_then(|_| planner_input::check(tree, &opened_by(tree), traits.unites, ddl));
        judged.map_err(|RelationRefusal { reason, relation }| {
            let name = if is_readable(relation) {
                relation_name(relation)
            } else {
                b"a relation that you may not read".to_vec()
            };
            Refusal { reason, offender: Some([b"reads ".to_vec(), name].concat()) }
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
        match lookup::look(store, &question)? {
            Found::Hit(hit, _) => store.unpin(hit.pin),
            Found::Miss(miss) => match miss.refused {
                // Only running it can tell, or has told so far.
                None | Some(Reason::TooQuick | Reason::TooFewRuns) => {}
                Some(reason) => return Err(reason.into()),
            },
        }
        Ok(relations::of_plan(tree, traits.extras.relations()))
    }
}

/// NULL for each parameter: the executor looks at parameters when it starts.
///
/// # Safety
/// Called with a current memory context.
unsafe fn nulls(types: &[pg_sys::Oid]) -> pg_sys::ParamListInfo {
    // SAFETY: the list has room for as many parameters as it was made for.
    unsafe {
        let list = pg_sys::makeParamList(types.len() as i32);
        let params = (&raw mut (*list).params).cast::<pg_sys::ParamExternData>();
        for (index, ptype) in types.iter().enumerate() {
            let value = pg_sys::Datum::null();
            params.add(index).write(pg_sys::ParamExternData { value, isnull: true, pflags: 0, ptype: *ptype });
        }
        list
    }
}

/// Parses, analyzes and rewrites a text that is one SELECT. Returns the types of its parameters, too.
///
/// # Safety
/// As `judge`.
unsafe fn one_select(text: &CStr) -> Result<(*mut pg_sys::Query, Vec<pg_sys::Oid>), Refusal> {
    let not_select =
        |what: String| Refusal { reason: Reason::NotSelect, offender: Some(format!("is {what}").into_bytes()) };
    // SAFETY: as the caller promises; each cast follows the node's tag.
    unsafe {
        let source = text.as_ptr();
        let mut statements = nodes::<pg_sys::RawStmt>(kept!(server::pg_parse_query(source)));
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
        let (all_types, all) = (&raw mut types, &raw mut count);
        let query = kept!(server::parse_analyze_varparams(raw, source, all_types, all, std::ptr::null_mut()));
        // As many as the highest number, which may be anything.
        let types = if count == 0 { &[] } else { std::slice::from_raw_parts(types, count as usize) };
        let types = or_raise(Vec::copy_of(types));
        if (*query).commandType == pg_sys::CmdType::CMD_UTILITY {
            let offender = Some("is SELECT INTO".into());
            return Err(Refusal { reason: Reason::UtilityStatement, offender });
        }
        // A SELECT is rewritten to exactly one query.
        Ok((nodes::<pg_sys::Query>(kept!(server::QueryRewrite(query))).next().unwrap_or(query), types))
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

/// May the user read the relation itself, or a column of it? Of others, which a view or a policy reads, the name is not told.
fn is_readable(relation: pg_sys::Oid) -> bool {
    privileges::has(privileges::current_role(), relation, pg_sys::ACL_SELECT)
}

/// A relation's qualified name.
fn relation_name(relation: pg_sys::Oid) -> Vec<u8> {
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

/// Names in alphabetical order, with an end. Those that the user may not know are counted.
fn listed(relations: Vec<u32>) -> Vec<u8> {
    let relations = relations.into_iter().map(pg_sys::Oid::from);
    let (readable, others): (Vec<_>, Vec<_>) = relations.partition(|relation| is_readable(*relation));
    let more = readable.len().saturating_sub(NAMED_RELATIONS);
    let mut names = Vec::new();
    for name in readable.into_iter().map(relation_name) {
        let place = names.partition_point(|earlier| *earlier < name);
        names.insert(place, name);
        names.truncate(NAMED_RELATIONS);
    }
    let mut parts = Vec::new();
    if !names.is_empty() {
        parts.push(names.join(b", ".as_slice()));
    }
    if more > 0 {
        parts.push(format!("{more} more").into_bytes());
    }
    if !others.is_empty() {
        parts.push(format!("{} that you may not read", others.len()).into_bytes());
    }
    if parts.is_empty() { b"its own text alone".to_vec() } else { parts.join(b" and ".as_slice()) }
}
