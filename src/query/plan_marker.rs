//! The verdict on a query, carried inside its plan.
//!
//! A plan may be kept for long (prepared statements, PL functions) and copied; PlannedStmt has no
//! field for extensions. But its `invalItems` list says which catalog rows the plan rests on, as
//! pairs of a cache number and a hash value, and its only readers compare the cache number with
//! that of a changed catalog row (plancache.c, PlanCacheObjectCallback). Items with a negative
//! cache number match nothing, are copied faithfully, and carry 32 bits of ours each.

use arrow_cache_core::{CacheKey, Reason};
use pgrx::pg_sys;

use super::Verdict;
use super::eligibility::Meaning;
use super::ordering::OrderedPrefix;
use super::types::nodes;

/// Cache number of the first word; word `i` has `FIRST_WORD - i`. No catalog cache is negative.
const FIRST_WORD: i32 = -0x00AC_0000;
/// Words of a marker: reason or 0, tree (4), catalog version (2), what else is known of the answer.
const WORDS: usize = 8;
/// First word of a marker that says "cacheable"; any other value is a reason's number plus one.
const CACHEABLE: u32 = 0;

/// Attaches the verdict to a new plan.
///
/// # Safety
/// `plan` must be a plan just made, in the current memory context.
pub unsafe fn attach(plan: *mut pg_sys::PlannedStmt, verdict: Verdict) {
    match verdict {
        Verdict::Bypass(reason) => {
            // SAFETY: as the caller promises.
            unsafe { append(plan, 0, reason.index() as u32 + 1) };
        }
        Verdict::Cacheable { meaning: Meaning { tree, reads_settings, may_vary, ordered_by }, catalog_version } => {
            let words: [u32; WORDS] = [
                CACHEABLE,
                tree.hi as u32,
                (tree.hi >> 32) as u32,
                tree.lo as u32,
                (tree.lo >> 32) as u32,
                catalog_version as u32,
                (catalog_version >> 32) as u32,
                u32::from(reads_settings) | u32::from(may_vary) << 1 | ordered_by.pack() << 2,
            ];
            for (index, word) in words.into_iter().enumerate() {
                // SAFETY: as the caller promises.
                unsafe { append(plan, index, word) };
            }
        }
    }
}

/// # Safety
/// As `attach`.
unsafe fn append(plan: *mut pg_sys::PlannedStmt, index: usize, word: u32) {
    // SAFETY: a zeroed node of the right size and tag is a valid PlanInvalItem.
    unsafe {
        let size = std::mem::size_of::<pg_sys::PlanInvalItem>();
        let item: *mut pg_sys::PlanInvalItem = pg_sys::palloc0(size).cast();
        (*item).type_ = pg_sys::NodeTag::T_PlanInvalItem;
        (*item).cacheId = FIRST_WORD - index as i32;
        (*item).hashValue = word;
        (*plan).invalItems = pg_sys::lappend((*plan).invalItems, item.cast());
    }
}

/// Reads the verdict back; a plan without one was made by somebody else.
///
/// # Safety
/// `plan` must be a valid plan.
pub unsafe fn read(plan: *const pg_sys::PlannedStmt) -> Verdict {
    let mut words = [None::<u32>; WORDS];
    // SAFETY: `invalItems` is a list of PlanInvalItem nodes or NIL.
    unsafe {
        for item in nodes::<pg_sys::PlanInvalItem>((*plan).invalItems) {
            let index = FIRST_WORD.wrapping_sub((*item).cacheId);
            if let Some(word) = usize::try_from(index).ok().and_then(|i| words.get_mut(i)) {
                *word = Some((*item).hashValue);
            }
        }
    }
    let word = |index: usize| words[index].map(u64::from);
    match words[0] {
        Some(CACHEABLE) => {}
        Some(number) => {
            let reason = Reason::ALL.get(number as usize - 1).copied();
            return Verdict::Bypass(reason.unwrap_or(Reason::NotAnalyzed));
        }
        None => return Verdict::Bypass(Reason::NotAnalyzed),
    }
    let complete = || {
        let tree = CacheKey { hi: word(1)? | word(2)? << 32, lo: word(3)? | word(4)? << 32 };
        let catalog_version = word(5)? | word(6)? << 32;
        let rest = words[7]?;
        let meaning = Meaning {
            tree,
            reads_settings: rest & 1 != 0,
            may_vary: rest & 2 != 0,
            ordered_by: OrderedPrefix::unpack(rest >> 2),
        };
        Some(Verdict::Cacheable { meaning, catalog_version })
    };
    complete().unwrap_or(Verdict::Bypass(Reason::NotAnalyzed))
}
