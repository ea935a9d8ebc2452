//! The verdict on a query, carried inside its plan.
//!
//! A plan may be kept for long (prepared statements, PL functions) and copied; PlannedStmt has no field for extensions.
//! Its `invalItems` list says which catalog rows the plan rests on. Its only readers take each item for a PlanInvalItem
//! and compare the number of its catalog cache with that of a changed catalog row (plancache.c,
//! PlanCacheObjectCallback), but for the executor, which leaves the list out of what it sends to parallel workers.
//! So the verdict stands there first, as an extensible node that has no such number where they look for one.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::mem::offset_of;

use arrow_cache_core::Reason;
use pgrx::pg_sys::{self, NodeTag};

use super::eligibility::QueryTraits;
use super::hashes::FormId;
use super::verdict::{Cacheable, Verdict};
use crate::pg::backend_local::Local;
use crate::pg::lists::node_at;
use crate::pg::memory_context::room_for;
use crate::pg::tree::Tree;
use crate::pg::tree_making::new_node;

/// A catalog cache whose items the plan cache compares one by one.
const FUNCTIONS: i32 = pg_sys::SysCacheIdentifier::PROCOID as i32;
const NAME: &CStr = c"arrow_cache_verdict";

/// The verdict as a node.
#[repr(C)]
#[derive(Clone, Copy)]
struct Marker {
    tag: NodeTag,
    /// What readers of the list take for the number of a catalog cache: none has this. Lies in the padding of
    /// ExtensibleNode.
    no_cache: i32,
    name: *const c_char,
    verdict: Verdict,
    /// The plan computes more than the verdict is about, so that it is refused itself: the verdict is about its
    /// clock-free part.
    of_part: bool,
    /// The hash value of the item behind it, by which the server can be told to make the plan anew; 0 if there is none.
    renewal: u32,
}

const _: () = assert!(offset_of!(Marker, no_cache) == offset_of!(pg_sys::PlanInvalItem, cacheId));
const _: () = assert!(offset_of!(Marker, name) == offset_of!(pg_sys::ExtensibleNode, extnodename));

impl Marker {
    const fn of(verdict: Verdict) -> Self {
        Self { tag: NodeTag::T_ExtensibleNode, no_cache: -1, name: NAME.as_ptr(), verdict, of_part: false, renewal: 0 }
    }

    /// A list of this marker alone, in the current memory context. `None` when there is no memory.
    fn into_list(self) -> Option<*mut pg_sys::List> {
        // SAFETY: the marker is written where the list points to.
        unsafe {
            let listed = Listed::<Self>::make(|own| &raw mut (*own).more)?;
            (&raw mut (*listed).more).write(self);
            Some(listed.cast())
        }
    }

    /// A list of a marker that plans share. `None` when there is no memory.
    fn list_of_shared(&'static self) -> Option<*mut pg_sys::List> {
        // SAFETY: a constant, to which nobody writes.
        unsafe { Listed::<()>::make(|_| std::ptr::from_ref(self).cast_mut()).map(|listed| listed.cast()) }
    }
}

/// A list of one marker with its cell behind it, as the server allocates short ones (nodes/pg_list.h), and more.
#[repr(C)]
struct Listed<T> {
    list: pg_sys::List,
    cell: pg_sys::ListCell,
    more: T,
}

impl<T> Listed<T> {
    /// The list of what `marker` tells, in the current memory context. `None` when there is no memory.
    ///
    /// # Safety
    /// What it tells must be a marker as long as the list is used.
    unsafe fn make(marker: impl FnOnce(*mut Self) -> *mut Marker) -> Option<*mut Self> {
        const { assert!(offset_of!(Self, cell) == offset_of!(pg_sys::List, initial_elements)) };
        // SAFETY: a live context, and room for what is written.
        unsafe {
            let place = room_for::<Self>(pg_sys::CurrentMemoryContext)?;
            let list = pg_sys::List {
                type_: NodeTag::T_List,
                length: 1,
                max_length: 1,
                elements: &raw mut (*place).cell,
                ..pg_sys::List::default()
            };
            (&raw mut (*place).list).write(list);
            (&raw mut (*place).cell).write(pg_sys::ListCell { ptr_value: marker(place).cast() });
            Some(place)
        }
    }
}

struct Methods(pg_sys::ExtensibleNodeMethods);

// SAFETY: a constant table of function pointers and literals.
unsafe impl Sync for Methods {}

static METHODS: Methods = Methods(pg_sys::ExtensibleNodeMethods {
    extnodename: NAME.as_ptr(),
    node_size: size_of::<Marker>(),
    nodeCopy: Some(copy),
    nodeEqual: Some(equal),
    nodeOut: Some(write_nothing),
    nodeRead: Some(read_nothing),
});

/// Makes the node known by name. Called once, in the postmaster.
pub fn register() {
    // SAFETY: a constant table, registered once while libraries are preloaded.
    unsafe { kept!(pg_sys::RegisterExtensibleNodeMethods(&raw const METHODS.0)) };
}

/// Copies a marker with all that it points to, in the current memory context. What the server raises jumps over the
/// frame.
unsafe extern "C-unwind" fn copy(new: *mut pg_sys::ExtensibleNode, old: *const pg_sys::ExtensibleNode) {
    // SAFETY: the server gives a node of the registered size, and one that is ours by its name.
    unsafe {
        let mut marker = *old.cast::<Marker>();
        if let Verdict::Cacheable(Cacheable { traits: QueryTraits { extras, .. }, clock, .. }) = &mut marker.verdict {
            (*extras, *clock) = (extras.copied(), clock.copied());
        }
        new.cast::<Marker>().write(marker);
    }
}

unsafe extern "C-unwind" fn equal(one: *const pg_sys::ExtensibleNode, other: *const pg_sys::ExtensibleNode) -> bool {
    std::ptr::eq(one, other)
}

/// The text of a plan (`debug_print_plan`) has the name of the node and nothing else of it.
unsafe extern "C-unwind" fn write_nothing(_: *mut pg_sys::StringInfoData, _: *const pg_sys::ExtensibleNode) {}

/// Of a plan that was read from a text nobody knows whether its answer may be kept.
unsafe extern "C-unwind" fn read_nothing(node: *mut pg_sys::ExtensibleNode) {
    // SAFETY: the server gives a node of the registered size.
    unsafe { node.cast::<Marker>().write(Marker::of(Verdict::Bypass(Reason::NotAnalyzed))) };
}

const REASONS: usize = Reason::ALL.len();

/// Markers that say no more than a reason to bypass, which plans share. Nobody changes one; copies of plans copy it.
struct Refusals([Marker; REASONS]);

// SAFETY: constants; the pointers in them are to a literal.
unsafe impl Sync for Refusals {}

static REFUSALS: Refusals = {
    let mut refusals = [Marker::of(Verdict::Bypass(Reason::ALL[0])); REASONS];
    let mut place = 1;
    while place < REASONS {
        refusals[place] = Marker::of(Verdict::Bypass(Reason::ALL[place]));
        place += 1;
    }
    Refusals(refusals)
};

/// Attaches the verdict to a new plan, before the server's own items. It takes the place of an earlier one: a planner
/// hook of another library, called by ours, may have called all hooks once more.
///
/// # Safety
/// `plan` must be a plan just made, in the current memory context.
pub unsafe fn attach(plan: *mut pg_sys::PlannedStmt, verdict: Verdict) {
    // SAFETY: a new plan, whose list of items is NIL or valid, and may be shared. Nobody writes to a shared marker.
    unsafe {
        let items = (*plan).invalItems;
        let others = if of_items(items).is_some() { kept!(pg_sys::list_copy_tail(items, 1)) } else { items };
        let none = std::ptr::null_mut();
        let own = match verdict {
            Verdict::Bypass(reason) => REFUSALS.0[reason.index()].list_of_shared().unwrap_or(none),
            verdict if may_be_kept(&verdict) => {
                let renewal = next_renewal();
                let own = Marker { renewal, ..Marker::of(verdict) }.into_list();
                own.map_or(none, |own| kept!(pg_sys::lappend(own, renewal_item(renewal).cast())))
            }
            // Without memory the plan says nothing, so that its statements are bypassed.
            verdict => Marker::of(verdict).into_list().unwrap_or(none),
        };
        (*plan).invalItems = if others.is_null() { own } else { kept!(pg_sys::list_concat(own, others)) };
    }
}

/// Returns true if the plan with this verdict may be run more than once, and it may turn out that a new one would be of
/// more use.
fn may_be_kept(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Unchecked(_))
        || matches!(verdict, Verdict::Cacheable(cacheable) if cacheable.planned.settings.is_some())
}

/// The last number of a plan that can be made anew.
static RENEWALS: Local<Cell<u32>> = Local::new(Cell::new(0));

fn next_renewal() -> u32 {
    // Plans that meet by chance, with each other or with a function, are made anew together.
    let next = RENEWALS.get().wrapping_add(1).max(1);
    RENEWALS.set(next);
    next
}

/// An item that says that the plan rests on a function, by a hash value that need not be one of a function.
fn renewal_item(hash: u32) -> *mut pg_sys::PlanInvalItem {
    let item = new_node::<pg_sys::PlanInvalItem>();
    // SAFETY: a new node.
    unsafe { ((*item).cacheId, (*item).hashValue) = (FUNCTIONS, hash) };
    item
}

/// Has the server make the plan anew before the next execution of its statement, if it keeps the plan: as if something
/// had changed that the plan rests on.
pub fn ask_for_new_plan(plan: Tree<'_, pg_sys::PlannedStmt>) {
    if let Some(Marker { renewal: hash @ 1.., .. }) = of(plan) {
        // SAFETY: tells those who have asked to be told of changes of functions in this backend. They look for things
        // with this hash value, and cannot raise.
        unsafe { kept!(pg_sys::CallSyscacheCallbacks(FUNCTIONS, *hash)) };
    }
}

/// The form of the query, or of its clock-free part, if the plan can be made anew.
pub fn kept_form_of(plan: Tree<'_, pg_sys::PlannedStmt>) -> Option<FormId> {
    match of(plan)? {
        Marker { renewal: 1.., verdict: Verdict::Cacheable(Cacheable { form, .. }), .. } => Some(*form),
        _ => None,
    }
}

/// Notes on a plan that its verdict, "cacheable", is about its clock-free part alone (`lookup::clock_free`). Returns
/// false, and does nothing, if it has another verdict.
///
/// # Safety
/// As `attach`.
pub unsafe fn attach_above(plan: *mut pg_sys::PlannedStmt) -> bool {
    // SAFETY: a new plan. A marker that says "cacheable" was made for this plan alone.
    unsafe {
        let Some(marker) = of_items((*plan).invalItems) else { return false };
        let is_cacheable = matches!((*marker).verdict, Verdict::Cacheable(_));
        // Other markers are constants, in memory that cannot be written to.
        if is_cacheable {
            (*marker).of_part = true;
        }
        is_cacheable
    }
}

/// The marker that comes first in a list of items, if one does.
///
/// # Safety
/// `items` must be those of a plan.
#[inline(always)]
unsafe fn of_items(items: *const pg_sys::List) -> Option<*mut Marker> {
    // SAFETY: the caller's promise. An extensible node with this very name was made or copied here.
    unsafe {
        node_at::<pg_sys::ExtensibleNode>(items, 0)
            .filter(|node| {
                (**node).type_ == NodeTag::T_ExtensibleNode && std::ptr::eq((**node).extnodename, NAME.as_ptr())
            })
            .map(|node| node.cast())
    }
}

/// The marker of a plan.
#[inline(always)]
fn of(plan: Tree<'_, pg_sys::PlannedStmt>) -> Option<&Marker> {
    // SAFETY: the items of a valid plan, which live as long as it.
    unsafe { of_items(plan.invalItems).map(|marker| &*marker) }
}

/// Returns true if the verdict of a plan is about its clock-free part. Quick to tell.
#[inline]
pub fn is_about_part(plan: Tree<'_, pg_sys::PlannedStmt>) -> bool {
    of(plan).is_some_and(|marker| marker.of_part)
}

/// The list of items for a plan of the clock-free part alone, in the current memory context. The plan must outlive it.
pub fn items_of_part(plan: Tree<'_, pg_sys::PlannedStmt>) -> *mut pg_sys::List {
    of(plan).and_then(|marker| Marker { of_part: false, ..*marker }.into_list()).unwrap_or(std::ptr::null_mut())
}

/// Returns true if the plan of a SELECT reads nothing, as can be told without a verdict. Such a plan gets none: some
/// clients send thousands of statements such as `SELECT 1`.
fn reads_nothing(plan: &pg_sys::PlannedStmt) -> bool {
    plan.relationOids.is_null() && plan.subplans.is_null() && plan.commandType == pg_sys::CmdType::CMD_SELECT
}

/// The reason to bypass that the plan's verdict is, if it is one: quick to tell, for clients that send thousands of
/// such statements.
#[inline]
pub fn refusal_of(plan: Tree<'_, pg_sys::PlannedStmt>) -> Option<Reason> {
    match of(plan) {
        Some(Marker { of_part: true, .. }) => Some(Reason::MovingClock),
        Some(Marker { verdict: Verdict::Bypass(reason), .. }) => Some(*reason),
        None if plan.invalItems.is_null() && reads_nothing(&plan) => Some(Reason::NoRelation),
        _ => None,
    }
}

/// The form of the query, if the plan says that it is cacheable or unchecked: quick to tell, for statements that are
/// too quick to be looked up.
#[inline]
pub fn form_of(plan: Tree<'_, pg_sys::PlannedStmt>) -> Option<FormId> {
    match of(plan)? {
        Marker { of_part: true, .. } => None,
        Marker { verdict: Verdict::Cacheable(Cacheable { form, .. }), .. } => Some(*form),
        Marker { verdict: Verdict::Unchecked(form), .. } => *form,
        _ => None,
    }
}

/// What the plan stands for, if it is a placeholder.
#[inline]
pub fn stands_for(plan: Tree<'_, pg_sys::PlannedStmt>) -> Option<*mut c_void> {
    match of(plan)?.verdict {
        Verdict::StandsFor(answer) => Some(answer),
        _ => None,
    }
}

/// The list of items of a placeholder that stands for `answer`, in the current memory context. `None` when there is no
/// memory.
pub fn items_of_placeholder(answer: *mut c_void) -> Option<*mut pg_sys::List> {
    Marker::of(Verdict::StandsFor(answer)).into_list()
}

/// Reads the verdict back; a plan without one reads nothing, or was made by somebody else.
pub fn read(plan: Tree<'_, pg_sys::PlannedStmt>) -> Verdict {
    match of(plan) {
        Some(Marker { of_part: true, .. }) => Verdict::Bypass(Reason::MovingClock),
        Some(marker) => marker.verdict,
        None if reads_nothing(&plan) => Verdict::Bypass(Reason::NoRelation),
        None => Verdict::Bypass(Reason::NotAnalyzed),
    }
}
