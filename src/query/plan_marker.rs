//! The verdict on a query, carried inside its plan.
//!
//! A plan may be kept for long (prepared statements, PL functions) and copied; PlannedStmt has no field for extensions.
//! Its `invalItems` list says which catalog rows the plan rests on, as pairs of a cache number and a hash value, and
//! its only readers compare the cache number with that of a changed catalog row (plancache.c, PlanCacheObjectCallback).
//! Items with a negative cache number match nothing, are copied faithfully, and carry 32 bits of the cache's each. Its
//! clock expressions are a list, behind these items. What its readers take for a cache number is the length of that
//! list, and no catalog cache that they ask for has so low a number.

use std::cell::Cell;

use arrow_cache_core::{Hash128, Reason};
use pgrx::pg_sys::{self, NodeTag};

use super::clock::ClockTrees;
use super::eligibility::{QueryTraits, SqlBodies};
use super::hashes::{FactsHash, FormId, SettingsHash, TreeHash};
use super::row_types_and_custom_settings::Extras;
use super::verdict::{Marked, Planned, Under, Verdict, Versions};
use crate::pg::backend_local::Local;
use crate::pg::error_passing::keeping;
use crate::pg::lists::nodes;
use crate::pg::tree::{Tree, children};
use crate::pg::tree_making::list_of;

/// Cache number of the first word; word `i` has `FIRST_WORD - i`. No catalog cache is negative.
const FIRST_WORD: i32 = -0x00AC_0000;
/// Words of every marker of a cacheable query: reason or 0, tree (4), versions and number of the plan (6), flags,
/// form (2), facts (4).
const WORDS: usize = 18;
/// Place of the first word of the form.
const FORM: usize = 12;
/// Words of the settings and the role under which the plan was made, which follow if it is kept.
const PLANNED_UNDER: std::ops::Range<usize> = WORDS..WORDS + 5;
/// Extras follow from here on.
const EXTRAS: usize = PLANNED_UNDER.end;
/// Flag: rows that are computed later may differ.
const READS_SESSION: u32 = 1;
/// Flag: the answer rests on the labels of enums.
const RESTS_ON_ENUMS: u32 = 2;
/// Flag: words of extras follow.
const HAS_EXTRAS: u32 = 4;
/// Flag: words of the settings and the role are there.
const WAS_KEPT: u32 = 8;
/// Flag: constants may decide which relations the plan reads.
const MAY_DROP_RELATIONS: u32 = 16;
/// Flag: it calls aggregates.
const AGGREGATES: u32 = 32;
/// Flag: executing it may garble text.
const RECEIVES_TEXT: u32 = 64;
/// Flag: a list of clock expressions is there.
const HAS_CLOCK: u32 = 128;
/// Flag: it calls functions of users in SQL.
const CALLS_BODIES: u32 = 256;
/// Flag: some of them are kept as text.
const RESOLVES_NAMES: u32 = 512;
/// Flag: some extensions were trusted.
const TRUSTS: u32 = 1024;
/// Flag: some of those functions read relations.
const BODIES_READ: u32 = 2048;
/// Flag: some of those functions are declared pure.
const BODIES_ARE_DECLARED: u32 = 4096;
/// Flag: executing it again gives the same rows.
const REPEATABLE: u32 = 8192;
/// Place of the word that says which parameters the query names that the verdict below a refusal is about: behind all
/// others.
const PARAMS_BELOW: usize = 0x2_0000;
/// First word of a marker that says "cacheable"; any other value is a reason's number plus one, or `UNCHECKED`.
const CACHEABLE: u32 = 0;
/// First word of a marker that says "unchecked"; the form follows, if it is known. No reason has this number.
const UNCHECKED: u32 = u32::MAX;

/// Attaches the verdict to a new plan, before the server's own items, so that it is found at once. It takes the place
/// of an earlier one: a planner hook of another library, called by ours, may have called all hooks once more.
///
/// # Safety
/// `plan` must be a plan just made, in the current memory context.
pub unsafe fn attach(plan: *mut pg_sys::PlannedStmt, verdict: Verdict) {
    // SAFETY: a new plan, whose list of items is NIL or valid.
    let others = unsafe {
        detach(plan);
        std::mem::replace(&mut (*plan).invalItems, std::ptr::null_mut())
    };
    match verdict {
        // SAFETY: a new plan, whose list of items is NIL or valid.
        Verdict::Bypass(reason) => unsafe {
            (*plan).invalItems = kept!(pg_sys::lappend((*plan).invalItems, shared_refusal(reason).cast()));
        },
        Verdict::Unchecked(form) => {
            let form = form.map(|FormId(id)| [id as u32, (id >> 32) as u32]).into_iter().flatten();
            let words: Vec<(usize, u32)> = std::iter::once(UNCHECKED).chain(form).enumerate().collect();
            // SAFETY: as below.
            unsafe { (*plan).invalItems = keeping(|| append((*plan).invalItems, &raw const *words)) };
        }
        Verdict::Cacheable { traits, tree, form, facts, planned, clock } => {
            // SAFETY: extras are kept in the context in which the plan is made.
            let extras: Vec<u32> = unsafe { traits.extras.words().collect() };
            let words = words_of(&traits, tree, form, facts, &planned, (!extras.is_empty(), !clock.is_none()));
            let words_of_under = |under: Under| halves(under.settings.0).into_iter().chain([under.role.to_u32()]);
            let under = planned.under.map(words_of_under).into_iter().flatten();
            let words = words.into_iter().enumerate().chain(PLANNED_UNDER.zip(under)).chain((EXTRAS..).zip(extras));
            let words: Vec<(usize, u32)> = words.collect();
            // SAFETY: a new plan, whose list of items is NIL or valid; the words outlive the call. The expressions lie
            // in the context in which the plan is made.
            unsafe {
                (*plan).invalItems = keeping(|| append((*plan).invalItems, &raw const *words));
                if !clock.is_none() {
                    (*plan).invalItems = kept!(pg_sys::lappend((*plan).invalItems, clock.list().cast()));
                }
            };
        }
    }
    // SAFETY: the list that was just made, and one that only this plan has.
    unsafe { (*plan).invalItems = kept!(pg_sys::list_concat((*plan).invalItems, others)) };
}

/// Puts a refusal before the verdict of a plan, which says that it is cacheable: the plan computes more than the
/// verdict is about, and what it is about stands below (`lookup::clock_free`). `named` says which parameters that names
/// (`parameters::named_by`). All of it comes first, so that it is found at once. False, and nothing is done, if the
/// verdict is another one.
///
/// # Safety
/// As `attach`.
pub unsafe fn attach_above(plan: *mut pg_sys::PlannedStmt, reason: Reason, named: u32) -> bool {
    // SAFETY: a new plan, with a verdict that `attach` has attached.
    unsafe {
        let items = nodes::<pg_sys::PlanInvalItem>((*plan).invalItems);
        let is_cacheable =
            |first: *mut pg_sys::PlanInvalItem| (*first).cacheId == FIRST_WORD && (*first).hashValue == CACHEABLE;
        if !items.clone().next().is_some_and(is_cacheable) {
            return false;
        }
        let params = keeping(|| item(PARAMS_BELOW, named));
        (*plan).invalItems = list_of([shared_refusal(reason), params].into_iter().chain(items));
        true
    }
}

/// Returns true if the plan has a verdict below a refusal, as `attach_above` leaves it. Quick to tell.
#[inline]
pub fn has_verdict_below(plan: Tree<'_, pg_sys::PlannedStmt>) -> bool {
    let mut items = children!(plan.invalItems as PlanInvalItem);
    items.next().is_some_and(|item| item.cacheId == FIRST_WORD)
        && items.next().is_some_and(|item| item.cacheId == FIRST_WORD - PARAMS_BELOW as i32)
}

/// Which parameters the query names that the verdict below a refusal is about.
pub fn params_below(plan: Tree<'_, pg_sys::PlannedStmt>) -> u32 {
    children!(plan.invalItems as PlanInvalItem).nth(1).map_or(u32::MAX, |item| item.hashValue)
}

/// The list of items with the verdict below the refusal of a plan, in the current memory context: the plan must outlive
/// it.
///
/// # Safety
/// The plan must have one (`has_verdict_below`).
pub unsafe fn verdict_below(plan: Tree<'_, pg_sys::PlannedStmt>) -> *mut pg_sys::List {
    // SAFETY: the caller's promise.
    unsafe { kept!(pg_sys::list_copy_tail(plan.invalItems, 2)) }
}

/// Takes our items off the list of a plan, if there are any. The list may be shared.
///
/// # Safety
/// As `attach`.
unsafe fn detach(plan: *mut pg_sys::PlannedStmt) {
    // SAFETY: the caller's promise.
    unsafe {
        let items = nodes::<pg_sys::PlanInvalItem>((*plan).invalItems);
        let is_ours =
            |item: *mut pg_sys::PlanInvalItem| (*item).type_ == NodeTag::T_List || (*item).cacheId <= FIRST_WORD;
        if items.clone().any(is_ours) {
            (*plan).invalItems = items
                .filter(|item| !is_ours(*item))
                .fold(std::ptr::null_mut(), |list, item| kept!(pg_sys::lappend(list, item.cast())));
        }
    }
}

/// The words of every marker that says "cacheable".
fn words_of(
    traits: &QueryTraits,
    tree: TreeHash,
    form: FormId,
    facts: FactsHash,
    planned: &Planned,
    (has_extras, has_clock): (bool, bool),
) -> [u32; WORDS] {
    let mut flags = 0;
    for (set, flag) in [
        (traits.reads_session, READS_SESSION),
        (traits.rests_on_enums, RESTS_ON_ENUMS),
        (has_extras, HAS_EXTRAS),
        (planned.under.is_some(), WAS_KEPT),
        (traits.may_drop_relations, MAY_DROP_RELATIONS),
        (traits.aggregates, AGGREGATES),
        (traits.receives_text, RECEIVES_TEXT),
        (has_clock, HAS_CLOCK),
        (traits.bodies.is_some(), CALLS_BODIES),
        (traits.resolves_names(), RESOLVES_NAMES),
        (traits.trusts, TRUSTS),
        (traits.bodies.is_some_and(|bodies| bodies.read_relations), BODIES_READ),
        (traits.calls_declared(), BODIES_ARE_DECLARED),
        (traits.repeatable, REPEATABLE),
    ] {
        if set {
            flags |= flag;
        }
    }
    let (tree, form, facts) = (halves(tree.0), form.0, halves(facts.0));
    [
        CACHEABLE,
        tree[0],
        tree[1],
        tree[2],
        tree[3],
        planned.versions.catalogs as u32,
        (planned.versions.catalogs >> 32) as u32,
        planned.versions.ddl as u32,
        (planned.versions.ddl >> 32) as u32,
        planned.plan as u32,
        (planned.plan >> 32) as u32,
        flags,
        form as u32,
        (form >> 32) as u32,
        facts[0],
        facts[1],
        facts[2],
        facts[3],
    ]
}

/// A key as four words.
fn halves(key: Hash128) -> [u32; 4] {
    [key.hi as u32, (key.hi >> 32) as u32, key.lo as u32, (key.lo >> 32) as u32]
}

/// The number whose halves are at this place and the next.
fn number_at(words: &[u32], place: usize) -> u64 {
    u64::from(words[place]) | u64::from(words[place + 1]) << 32
}

/// The key whose `halves` begin at this place.
fn key_at(words: &[u32], place: usize) -> Hash128 {
    Hash128 { hi: number_at(words, place), lo: number_at(words, place + 2) }
}

/// Items that say no more than a reason to bypass: made once, and shared by the plans of this backend. Nobody changes
/// an item; copies of plans copy it.
static REFUSALS: Local<[Cell<*mut pg_sys::PlanInvalItem>; Reason::ALL.len()]> =
    Local::new([const { Cell::new(std::ptr::null_mut()) }; Reason::ALL.len()]);

fn shared_refusal(reason: Reason) -> *mut pg_sys::PlanInvalItem {
    let shared = &REFUSALS[reason.index()];
    if shared.get().is_null() {
        // SAFETY: the context lives as long as the backend.
        unsafe {
            let caller = pg_sys::MemoryContextSwitchTo(pg_sys::TopMemoryContext);
            shared.set(keeping(|| item(0, reason.index() as u32 + 1)));
            pg_sys::MemoryContextSwitchTo(caller);
        }
    }
    shared.get()
}

/// Returns true if the plan of a SELECT reads nothing, as can be told without a verdict. Such a plan gets none: some
/// clients send thousands of statements such as `SELECT 1`.
fn reads_nothing(plan: &pg_sys::PlannedStmt) -> bool {
    plan.relationOids.is_null() && plan.subplans.is_null() && plan.commandType == pg_sys::CmdType::CMD_SELECT
}

/// The reason to bypass that the plan's verdict is, if it is one and was the first thing attached to the plan: quick to
/// tell, for clients that send thousands of such statements.
pub fn refusal_of(plan: Tree<'_, pg_sys::PlannedStmt>) -> Option<Reason> {
    let Some(first) = children!(plan.invalItems as PlanInvalItem).next() else {
        return reads_nothing(&plan).then_some(Reason::NoRelation);
    };
    if first.cacheId != FIRST_WORD || first.hashValue == CACHEABLE {
        return None;
    }
    Reason::ALL.get(first.hashValue as usize - 1).copied()
}

/// A new item with one word. What it raises jumps over the frame.
///
/// # Safety
/// Called with a current memory context.
unsafe fn item(index: usize, word: u32) -> *mut pg_sys::PlanInvalItem {
    // SAFETY: a zeroed node of the right size and tag is a valid PlanInvalItem.
    unsafe {
        let size = std::mem::size_of::<pg_sys::PlanInvalItem>();
        let item: *mut pg_sys::PlanInvalItem = direct!(pg_sys::palloc0(size)).cast();
        (*item).type_ = pg_sys::NodeTag::T_PlanInvalItem;
        (*item).cacheId = FIRST_WORD - index as i32;
        (*item).hashValue = word;
        item
    }
}

/// Appends an item for each word and its place. All of them behind one guard of the caller's, for there are two calls
/// of the server for each; what they raise jumps over the frame.
///
/// # Safety
/// As `item`; `words` must be valid.
unsafe fn append(list: *mut pg_sys::List, words: *const [(usize, u32)]) -> *mut pg_sys::List {
    let mut list = list;
    // SAFETY: the words outlive the call; a list of items that only this function appends to.
    unsafe {
        for (index, word) in &*words {
            list = direct!(pg_sys::lappend(list, item(*index, *word).cast()));
        }
    }
    list
}

/// The form of the query, if the plan says that it is cacheable or unchecked, and its verdict is the first thing that
/// was attached: quick to tell, for statements that are too quick to be looked up.
pub fn form_of(plan: Tree<'_, pg_sys::PlannedStmt>) -> Option<FormId> {
    let mut items = children!(plan.invalItems as PlanInvalItem);
    let first = items.next()?;
    let place = match first.hashValue {
        _ if first.cacheId != FIRST_WORD => return None,
        CACHEABLE => FORM,
        UNCHECKED => 1,
        _ => return None,
    };
    let mut word = |skipped| items.nth(skipped).map(|item| (item.cacheId, u64::from(item.hashValue)));
    let ((low_id, low), (high_id, high)) = (word(place - 1)?, word(0)?);
    (low_id == FIRST_WORD - place as i32 && high_id == low_id - 1).then_some(FormId(low | high << 32))
}

/// Reads the verdict back; a plan without one reads nothing, or was made by somebody else.
pub fn read(plan: Tree<'_, pg_sys::PlannedStmt>) -> Marked {
    // What was attached stands there in order, before items of the server's.
    let mut words = [0; EXTRAS];
    let mut count = 0;
    for item in children!(plan.invalItems as PlanInvalItem) {
        if item.cacheId == FIRST_WORD - count as i32
            && let Some(word) = words.get_mut(count)
        {
            *word = item.hashValue;
            count += 1;
        } else if count > 0 {
            break;
        }
    }
    match words.get(..count) {
        Some(words @ [CACHEABLE, ..]) => cacheable(words, plan).unwrap_or(Marked::Bypass(Reason::NotAnalyzed)),
        Some([UNCHECKED, ..]) => Marked::Unchecked(form_of(plan)),
        Some([number, ..]) => {
            let reason = Reason::ALL.get(*number as usize - 1).copied();
            Marked::Bypass(reason.unwrap_or(Reason::NotAnalyzed))
        }
        _ if reads_nothing(&plan) => Marked::Bypass(Reason::NoRelation),
        _ => Marked::Bypass(Reason::NotAnalyzed),
    }
}

/// The verdict of a marker that says "cacheable"; `None` if some of its words are missing.
fn cacheable(words: &[u32], plan: Tree<'_, pg_sys::PlannedStmt>) -> Option<Marked> {
    let (words, further) = words.split_first_chunk::<WORDS>()?;
    let flags = words[11];
    let planned = Planned {
        versions: Versions { catalogs: number_at(words, 5), ddl: number_at(words, 7) },
        plan: number_at(words, 9),
        under: if flags & WAS_KEPT == 0 { None } else { Some(under_of(further.first_chunk()?)) },
    };
    let traits = QueryTraits {
        reads_session: flags & READS_SESSION != 0,
        rests_on_enums: flags & RESTS_ON_ENUMS != 0,
        extras: if flags & HAS_EXTRAS == 0 { Extras::NONE } else { read_extras(plan) },
        repeatable: flags & REPEATABLE != 0,
        may_drop_relations: flags & MAY_DROP_RELATIONS != 0,
        // Asked when the plan is made, and not later.
        unites: false,
        aggregates: flags & AGGREGATES != 0,
        receives_text: flags & RECEIVES_TEXT != 0,
        trusts: flags & TRUSTS != 0,
        clocks: 0,
        // What they mean is in the hash of the tree.
        bodies: (flags & CALLS_BODIES != 0).then_some(SqlBodies {
            hash: Hash128::NONE,
            by_name: flags & RESOLVES_NAMES != 0,
            read_relations: flags & BODIES_READ != 0,
            are_declared: flags & BODIES_ARE_DECLARED != 0,
        }),
    };
    let asks_for_time = flags & HAS_CLOCK != 0;
    let (tree, facts) = (TreeHash(key_at(words, 1)), FactsHash(key_at(words, 14)));
    let form = FormId(number_at(words, FORM));
    Some(Marked::Cacheable { traits, tree, form, facts, planned, asks_for_time })
}

/// What the words of `PLANNED_UNDER` say.
fn under_of(words: &[u32; 5]) -> Under {
    Under { settings: SettingsHash(key_at(words, 0)), role: words[4].into() }
}

/// The words behind those of every marker, which `attach` has appended in order.
fn read_extras(plan: Tree<'_, pg_sys::PlannedStmt>) -> Extras {
    let items = children!(plan.invalItems as PlanInvalItem);
    let is_extra = |number: i32| number <= FIRST_WORD - EXTRAS as i32 && number > FIRST_WORD - PARAMS_BELOW as i32;
    Extras::from_words(items.filter(|item| is_extra(item.cacheId)).map(|item| item.hashValue))
}

/// The clock expressions of a plan whose marker says that it has some. They live as long as the plan.
pub fn read_clock(plan: Tree<'_, pg_sys::PlannedStmt>) -> ClockTrees {
    let mut items = children!(plan.invalItems as PlanInvalItem);
    let found = items.find(|item| item.type_ == NodeTag::T_List);
    found.map_or(ClockTrees::NONE, |list| ClockTrees::from_list(list.as_ptr().cast()))
}
