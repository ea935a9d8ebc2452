//! `arrow_cache.why`: what the cache would do with a query, and why it would not serve or store its answer, without
//! running it.
//!
//! The query is parsed, rewritten and planned like any other, and checked in the same order: its text and tree, the
//! relations that it reads, and what this session may do at this moment. Parameters need no values. Nothing is kept.

use std::ffi::CStr;

use arrow_cache_core::{Dependency, EACH_ROW, Reason, RoomyVec, Wish, unclear_hint};
use pgrx::pg_sys;

use super::named_relations::{Extent, column_name, is_readable, listed, relation_name};
use super::unindexed_time;
use crate::error::CacheError;
use crate::export::{OwnQuery, Parameters};
use crate::fragments::{grain_of, is_read_whole, least_zoned_blocks, shown_clock};
use crate::invalidation::own_writes;
use crate::invalidation::registration::can_be_tracked;
use crate::lookup::stored_parts::may_have_parts;
use crate::lookup::{self, Found, Lateness, Question, may_depend_on_time};
use crate::pg::backend;
use crate::pg::function_call::FunctionCall;
use crate::pg::inlining::inlined;
use crate::pg::returned::{Set, Text};
use crate::pg::sql_function::sql_function;
use crate::pg::tree::Tree;
use crate::query::asked_values::{Asked, scans_of, values_of};
use crate::query::checking;
use crate::query::checking::{Checked, Offender};
use crate::query::decomposition::{Decomposition, NO_TABLE, Obstacle, Values, decompose};
use crate::query::eligibility::QueryTraits;
use crate::query::handed_times::with_times;
use crate::query::opened_relations::opened_by;
use crate::query::planner_input;
use crate::query::relations::{self, RelationRefusal};
use crate::query::scan_of_parts::is_combined;
use crate::query::trusted_extensions::{extension_of, is_listed, of_pure};
use crate::shmem::{self, SharedStore};
use crate::{export, settings};

/// Why a query is not cached.
struct Refusal {
    reason: Reason,
    /// What in the query is the cause, as the rest of the sentence "It …".
    offender: Option<Vec<u8>>,
    /// Its answer moves, but can be combined of parts that do not.
    has_parts: bool,
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Self { reason, offender: None, has_parts: false }
    }
}

/// What is told of a query that is cacheable: the relations that its answer rests on, or would, and how much of them;
/// and whether it can be combined of parts, as the end of the sentence.
type Findings = (Vec<(u32, Extent)>, Vec<u8>);

/// The row that is returned: whether the query is cacheable, the reason if it is not, and details.
type Answer = (bool, Option<&'static str>, Option<Text>);

/// Would this query be cached? If so, `detail` tells what its answer would rest on; else why not.
fn why(call: FunctionCall<'_>) -> Set<Answer> {
    let store = shmem::required();
    let text = export::query_text(call).unwrap_or_default();
    // SAFETY: a snapshot is active.
    let checked = export::under_callers_snapshot(|| export::within(&text, || unsafe { check(&store, &text) }));
    let is_unclear = unclear_hint(text.to_bytes()).is_some();
    Set::once(match checked {
        Ok((relations, parts)) => {
            let hint = if is_unclear { b"; a hint before it is not understood".to_vec() } else { Vec::new() };
            let details = [b"rests on ".to_vec(), listed(relations), parts, hint];
            (true, None, Some(Text(details.concat())))
        }
        Err(Refusal { reason: Reason::OutOfMemory, .. }) => CacheError::out_of_memory().raise(),
        Err(Refusal { reason, offender, has_parts }) => {
            let sentence = reason.describe().as_bytes();
            let mut detail = match offender {
                Some(offender) => [sentence, b" It ", &offender, b"."].concat(),
                None => sentence.to_vec(),
            };
            if has_parts {
                detail.extend_from_slice(b" It can be combined of stored parts.");
            }
            if is_unclear {
                detail.extend_from_slice(b" A hint before it is not understood.");
            }
            (false, Some(reason.name()), Some(Text(detail)))
        }
    })
}

sql_function!(why, "arrow_cache_why");

/// What is to be told of the query, if it is cacheable. A user who may not run the query gets the server's error about
/// that, and learns nothing else.
///
/// # Safety
/// Called with an active snapshot.
unsafe fn check(store: &SharedStore, text: &CStr) -> Result<Findings, Refusal> {
    // SAFETY: the steps that PostgreSQL itself takes with a query; trees live in the current memory context.
    unsafe {
        let (query, types) = one_select(text)?;
        let with_bodies = inlined(query.as_ptr()).ok().flatten().map_or(query.as_ptr(), |inlined| inlined.query);
        let with_times = Tree::enter(with_bodies).and_then(with_times).unwrap_or(with_bodies);
        let query = query.replaced_by(with_times);
        // Planning changes the tree.
        let Some(tree) = Tree::enter(query.as_ptr()) else { return Err(Reason::NotSelect.into()) };
        let checked = checking::check(tree);
        let of_query = checked.traits.as_ref().map_err(|reason| *reason);
        let clock_free = shown_clock::apart(tree, of_query, None, store.seed())
            .and_then(|parts| Tree::enter(parts.part))
            .map(|part| (part, checking::check(part)))
            .filter(|(_, of_part)| of_part.traits.is_ok());
        let is_apart = clock_free.is_some();
        let (tree, checked) = clock_free.unwrap_or((tree, checked));
        let query = query.replaced_by(tree.as_ptr());
        let Checked { traits, offender, .. } = checked;
        let parts = traits.as_ref().map_or(Parts::Untold, |traits| combined(tree, traits));
        let plan = query.plan(pg_sys::CURSOR_OPT_PARALLEL_OK, Parameters::NONE);
        // The executor reads parameters when it starts.
        export::check_permitted(plan, text, Parameters::nulls(&types));
        let traits = traits.map_err(|reason| Refusal { offender: offender.map(told), ..reason.into() })?;
        let checked = relations::check(plan).and_then(|_| planner_input::check(plan, &opened_by(plan)));
        checked.map_err(|RelationRefusal { reason, relation }| Refusal {
            offender: Some(reads(relation)),
            ..reason.into()
        })?;
        if !settings::enabled() {
            return Err(Reason::Disabled.into());
        }
        let params = if types.is_empty() { None } else { Tree::enter(Parameters::nulls(&types).as_ptr()) };
        let question =
            Question { params, ..Question::only_asked(plan, text, kept!(pg_sys::GetActiveSnapshot()).as_ref()) };
        let parts = parts.by_plan(plan);
        let has_parts = |reason| reason == Reason::MovingClock && matches!(parts, Parts::Possible(_));
        let found = lookup::find(store, &question, Lateness::Refused).map_err(|reason| Refusal {
            reason,
            offender: moving(reason, &question, &traits),
            has_parts: has_parts(reason),
        });
        let (rests_on, wishes) = dependencies(store, found?)?;
        let relations = relations::of_plan(plan, traits.extras.relations());
        let extents = relations.into_iter().map(|own| (own, extent(store, &question, own, &rests_on, &wishes)));
        let extents = extents.collect();
        let mut told = parts.told();
        if is_apart {
            told.extend_from_slice(b"; the clock is applied to the stored answer");
        }
        Ok((extents, told))
    }
}

/// What an answer rests on, or would, and the columns that would have to be tracked so that it rested on less.
fn dependencies(store: &SharedStore, found: Found) -> Result<(Vec<Dependency>, Vec<Wish>), Refusal> {
    match found {
        Found::Hit(hit, _) => {
            let rests_on = Vec::copy_of(store.view(&hit.pin).dependencies());
            store.unpin(hit.pin);
            Ok((rests_on.map_err(Reason::from)?, Vec::new()))
        }
        Found::Miss(miss) => match miss.refused {
            // Only running the query can tell, or has told so far.
            None | Some(Reason::TooQuick | Reason::TooFewRuns) => {
                Ok((miss.guarantees.dependencies, miss.guarantees.wishes))
            }
            Some(reason) => Err(reason.into()),
        },
    }
}

/// How much of a relation the answer to a question rests on, by what it rests on, and by the columns that would have to
/// be tracked so that it rested on less.
fn extent(
    store: &SharedStore,
    question: &Question<'_>,
    relation: u32,
    rests_on: &[Dependency],
    wishes: &[Wish],
) -> Extent {
    let coarse = store.versions().coarse(backend::database(), relation);
    if rests_on.iter().any(|dependency| (dependency.relation, dependency.slot) == (relation, coarse)) {
        let tracked = store.registry().columns_of(backend::database(), relation).unwrap_or_default();
        let scans = scans_of(question.plan, question.params).unwrap_or_default();
        let asked = values_of(&scans, relation, |column| tracked.place_of(column));
        let columns = asked.into_iter().flat_map(|Asked { values, probes }| {
            values.into_iter().map(|(column, _)| column).chain(probes.into_iter().map(|probe| probe.tracked()))
        });
        let mut columns: Vec<i16> = columns.collect();
        columns.sort_unstable();
        columns.dedup();
        return Extent::Rows(columns);
    }
    let is_wished = |wish: &&Wish| wish.relation == relation && wish.column != EACH_ROW && can_be_tracked(relation);
    let wished = wishes.iter().find(is_wished);
    wished.map_or(Extent::Whole, |wish| Extent::Untracked(wish.column))
}

/// What a query is refused for, as the rest of the sentence "It …".
fn told(offender: Offender) -> Vec<u8> {
    match offender {
        Offender::Function(blamed) => {
            let because = blamed
                .because
                .or_else(|| reads_now(blamed.function))
                .map_or(String::new(), |because| format!(", {because}"));
            let extension = prospect(blamed.function).map_or(Vec::new(), |(name, sentence)| {
                [b" of the extension ", name.to_bytes(), sentence.as_bytes()].concat()
            });
            [b"calls ".to_vec(), function_name(blamed.function), extension, because.into_bytes()].concat()
        }
        Offender::Relation(relation) => reads(relation),
    }
}

/// What trusting the extension that a function belongs to would change, as the end of the sentence "It calls …".
/// Nothing if it belongs to none.
fn prospect(function: pg_sys::Oid) -> Option<(&'static CStr, &'static str)> {
    let extension = extension_of(pg_sys::ProcedureRelationId, function)?;
    let sentence = match of_pure(function) {
        Some(_) if !is_listed(extension.name) => {
            ", which would count like a built-in one if pg_arrow_cache.trusted_extensions named that extension"
        }
        _ => ", which trusting that extension does not change",
    };
    Some((extension.name, sentence))
}

/// Parses, analyzes and rewrites a text that is one SELECT. Returns the types of its parameters, too.
fn one_select(text: &CStr) -> Result<(OwnQuery<'_>, Vec<pg_sys::Oid>), Refusal> {
    let refused =
        |reason: Reason, what: String| Refusal { offender: Some(format!("is {what}").into_bytes()), ..reason.into() };
    let raw = export::parse_one(text).map_err(|found| match found {
        0 => refused(Reason::NotSelect, "empty".into()),
        more => refused(Reason::NotSelect, format!("{more} statements")),
    })?;
    let statement = export::node_of(raw);
    match statement.tag() {
        pg_sys::NodeTag::T_SelectStmt => {}
        pg_sys::NodeTag::T_InsertStmt
        | pg_sys::NodeTag::T_UpdateStmt
        | pg_sys::NodeTag::T_DeleteStmt
        | pg_sys::NodeTag::T_MergeStmt => return Err(refused(Reason::NotSelect, export::command_name(statement))),
        pg_sys::NodeTag::T_ExplainStmt => return Err(Reason::Explain.into()),
        tag => {
            use pg_sys::NodeTag::{T_DeclareCursorStmt, T_ExecuteStmt, T_PrepareStmt};
            let copies_a_query = statement.as_a::<pg_sys::CopyStmt>().is_some_and(|copy| !copy.query.is_null());
            let wraps_a_query = copies_a_query || matches!(tag, T_DeclareCursorStmt | T_ExecuteStmt | T_PrepareStmt);
            let advice = if wraps_a_query { ": ask about its query, which may be cached" } else { "" };
            return Err(refused(Reason::UtilityStatement, export::command_name(statement) + advice));
        }
    }
    // There are as many parameters as the highest number, which may be large.
    let (query, types) = OwnQuery::analyze(raw, text, std::iter::empty());
    if query.command() == pg_sys::CmdType::CMD_UTILITY {
        return Err(refused(Reason::UtilityStatement, "SELECT INTO".into()));
    }
    Ok((query.rewrite(), types))
}

/// What is wrong with the function that reads a time from a text: time, timestamp, timestamptz, timetz.
fn reads_now(function: pg_sys::Oid) -> Option<&'static str> {
    const INPUTS: [u32; 4] = [pg_sys::F_TIME_IN, pg_sys::F_TIMESTAMP_IN, pg_sys::F_TIMESTAMPTZ_IN, pg_sys::F_TIMETZ_IN];
    let reads = INPUTS.contains(&function.to_u32());
    reads.then_some("which reads the word `now` in a text as the present time (`to_timestamp` with a format does not)")
}

/// A function's name with its argument types, qualified if need be.
fn function_name(function: pg_sys::Oid) -> Vec<u8> {
    // SAFETY: a catalog search; an unknown OID gives its number.
    unsafe { CStr::from_ptr(kept!(pg_sys::format_procedure(function))) }.to_bytes().to_vec()
}

/// What reads a relation, as the rest of the sentence "It …".
fn reads(relation: pg_sys::Oid) -> Vec<u8> {
    let name =
        if is_readable(relation) { relation_name(relation) } else { b"a relation that you may not read".to_vec() };
    [b"reads ".to_vec(), name].concat()
}

/// What has a query move with the clock though it compares the time with columns alone, as the rest of the sentence "It
/// …". `None` if another reason stands in the way.
fn moving(reason: Reason, question: &Question<'_>, traits: &QueryTraits) -> Option<Vec<u8>> {
    if reason != Reason::MovingClock {
        return None;
    }
    let plan = question.plan;
    let unindexed = unindexed_time::compared_column(question).map(|(relation, column)| compares(relation, column));
    unindexed.or_else(|| may_depend_on_time(plan, traits).then(|| ASKS_FOR_OTHER_RIGHTS.to_vec()))
}

/// As `moving`.
const ASKS_FOR_OTHER_RIGHTS: &[u8] =
    b"leaves out partitions by the time, and may call functions for their rows that some role may not execute";

/// What compares a column with the time, as the rest of the sentence "It …".
fn compares(relation: pg_sys::Oid, column: i16) -> Vec<u8> {
    if !is_readable(relation) {
        return reads(relation);
    }
    let advice = b" with the time itself, which is cached if a B-tree index of the table begins with that column";
    let name = column_name(relation, column);
    [b"compares ".to_vec(), name, b" of ".to_vec(), relation_name(relation), advice.to_vec()].concat()
}

/// Whether the answer of a query can be combined of parts.
enum Parts {
    /// It aggregates no table that has parts.
    Untold,
    /// It can; of zones of this plain table, if that is read whole.
    Possible(Option<pg_sys::Oid>),
    /// It is, in a grain with keys of these names.
    InGrain(Vec<u8>),
    /// It cannot.
    Impossible(Obstacle),
}

impl Parts {
    /// The same, as the server's own plan of the query decides.
    fn by_plan(self, plan: Tree<'_, pg_sys::PlannedStmt>) -> Self {
        if let Some(names) = grain_of(plan) {
            return Self::InGrain(names.iter().map(|name| name.to_bytes()).collect::<Vec<_>>().join(b", ".as_slice()));
        }
        match self {
            Self::Possible(Some(table)) if !is_combined(plan) && !is_read_whole(plan, table) => {
                Self::Impossible("The plan does not read the whole table.")
            }
            other => other,
        }
    }

    /// As the end of the sentence.
    fn told(&self) -> Vec<u8> {
        match self {
            Self::Untold => Vec::new(),
            Self::Possible(_) => b"; can be combined of stored parts".to_vec(),
            Self::InGrain(names) => [b"; combined of stored parts that hold all values of ", names.as_slice()].concat(),
            Self::Impossible(obstacle) => [b"; cannot be combined of stored parts: ", obstacle.as_bytes()].concat(),
        }
    }
}

/// Whether the answer of a query can be combined of parts, as far as the query tells.
fn combined(query: Tree<'_, pg_sys::Query>, traits: &QueryTraits) -> Parts {
    if !may_have_parts(traits) || own_writes::has_transaction_id() {
        return Parts::Untold;
    }
    match decompose(query, least_zoned_blocks(), None) {
        Ok(Decomposition { part, .. }) if part.is_zoned && traits.clocks > 0 => {
            Parts::Impossible("It asks each range of blocks for the time.")
        }
        Ok(Decomposition { part, .. }) if part.is_zoned => Parts::Possible(Some(part.relation)),
        Ok(Decomposition { part, .. }) => {
            // The values of parameters are known when it is executed.
            let asked = part.asked(None, Values::Present).or_else(|_| part.asked(None, Values::Lasting));
            if asked.is_ok_and(|asked| asked.leaves(part.relation).is_ok()) {
                return Parts::Possible(None);
            }
            Parts::Impossible(
                "Among its partitions are foreign or temporary tables, new ones, or such as code of users chooses.",
            )
        }
        Err(NO_TABLE) => Parts::Untold,
        Err(obstacle) => Parts::Impossible(obstacle),
    }
}
