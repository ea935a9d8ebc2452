//! Clock expressions are computed here, as the statement that asks would compute them: by the server's executor, under
//! the same settings, at the same time.
//!
//! Their functions may raise: a date may be out of range, a zone unknown. Such an ERROR is dropped, without a
//! subtransaction, and the statement is bypassed; if it needs the value, it raises the ERROR itself. That is sound
//! because these functions take no lock, pin nothing and change nothing: they compute, and allocate in a context that
//! is emptied afterwards. Nor does the executor keep anything else of an expression without columns and sub-queries.

use arrow_cache_core::{HashBuffer, Reason};
use pgrx::pg_sys::{self, Datum, Oid};

use super::carried::{Carried, ClockTrees};
use super::column_comparisons::Split;
use super::cuts::Cuts;
use super::expression::type_of;
use super::lengths::turn;
use super::noted::Noted;
use super::types::form_of;
use crate::error::is_about_a_value;
use crate::pg::computing::{Unshown, compute};
use crate::pg::error_passing::{keeping, unless};
use crate::pg::memory_context::context_below;
use crate::pg::tree::Tree;
use crate::query::parameters;

/// Tells whether an expression that has this value, with these parameters, will have it for a while. The expression
/// must be in memory, and the value one of it.
pub type Settles = unsafe fn(Tree<'_, pg_sys::Node>, &Value, Option<Tree<'_, pg_sys::ParamListInfoData>>) -> bool;

/// What the clock expressions of a statement are computed with.
#[derive(Clone, Copy)]
pub struct Clock<'q> {
    /// The expressions.
    pub trees: ClockTrees,
    /// The values of the statement's parameters.
    pub params: Option<Tree<'q, pg_sys::ParamListInfoData>>,
    /// The statement is started, and all its rows are read, within one message of the client.
    pub one_message: bool,
    /// Tells whether a value will stay the same for long enough to be of use in a key (`clock_settling`). Neither
    /// answer makes a wrong key.
    pub settles: Settles,
}

/// A value.
#[derive(Clone, Copy)]
pub struct Value {
    /// The value; of a type that is passed by reference, in the context of the computation.
    pub datum: Datum,
    /// It is NULL.
    pub is_null: bool,
    /// Its type.
    pub type_oid: Oid,
    /// The length of values of that type, and whether they are passed by value.
    pub form: (i16, bool),
}

/// What a clock expression came to.
#[derive(Clone, Copy)]
struct Computed {
    /// Its value.
    value: Value,
    /// What its value splits, if it moves all the time: it is a cut.
    split: Option<Split>,
    /// The interval that the column is away from it, if the split has one.
    by: Option<Value>,
}

impl Computed {
    /// The cut that its value is, which is not NULL; `None` if there is no telling, or it is none.
    fn cut(&self) -> Option<i64> {
        let by = self.by.filter(|by| by.type_oid == pg_sys::INTERVALOID && !by.is_null);
        // SAFETY: a value of that type that is not NULL, which lives as long as the values do.
        let by = by.map(|by| unsafe { &*by.datum.cast_mut_ptr::<pg_sys::Interval>() });
        self.split?.cut((self.value.type_oid, self.value.datum), by)
    }
}

/// The word before a value, or in the place of one.
const IS_VALUE: u8 = 0;
const IS_CUT: u8 = 1;
const IS_NULL: u8 = 2;

/// Adds the values of all clock expressions to a key, but for those that are cuts, which it returns.
///
/// # Errors
/// `MovingClock` if one of them changes by less than a minute and is no cut, if it asks for the arrival of a message
/// that is not the only one, or if it cannot be computed.
pub fn times(clock: &Clock<'_>, key: &mut HashBuffer) -> Result<Cuts, Reason> {
    if clock.trees.is_none() {
        return Ok(Cuts::NONE);
    }
    let cuts = in_own_memory(|| {
        let mut cuts = Cuts::NONE;
        // SAFETY: the statement that carries the expressions is being planned or started.
        let values = unsafe { computed(clock) }?;
        let mut add_each = |(place, one)| add(key, &mut cuts, place, one);
        values.iter().enumerate().try_for_each(&mut add_each).map(|()| cuts)
    });
    cuts.ok_or(Reason::MovingClock)
}

/// Adds the value of the expression in a place to the key or, if it is a cut, to the cuts. `None` if it is a cut that
/// cannot be told.
fn add(key: &mut HashBuffer, cuts: &mut Cuts, place: usize, computed: &Computed) -> Option<()> {
    let Computed { value, split, .. } = computed;
    if value.is_null {
        // Comparing anything with it gives NULL.
        key.u8(IS_NULL);
    } else if split.is_some() {
        key.u8(IS_CUT);
        cuts.add(place, computed.cut()?)?;
    } else {
        key.u8(IS_VALUE);
        let (length, by_value) = value.form;
        // SAFETY: a value that was just computed, of the type that its function returns.
        unsafe { parameters::add_datum(key, value.datum, by_value, length) };
    }
    Some(())
}

/// Does something in a memory context of its own, of which nobody uses anything afterwards.
pub(super) fn in_own_memory<R>(act: impl FnOnce() -> R) -> R {
    // SAFETY: the parent is there as long as this statement.
    unsafe {
        let context = context_below(pg_sys::CurrentMemoryContext, c"pg_arrow_cache clock");
        let caller = pg_sys::MemoryContextSwitchTo(context);
        let result = act();
        pg_sys::MemoryContextSwitchTo(caller);
        kept!(pg_sys::MemoryContextDelete(context));
        result
    }
}

/// Returns true if the values of all parameters that the expressions name are there, and need not be fetched.
///
/// # Safety
/// The expressions must be in memory.
pub(super) unsafe fn are_given(clock: &Clock<'_>) -> bool {
    // SAFETY: the caller's promise.
    let mut entries = unsafe { clock.trees.entries() }.iter();
    match clock.params {
        None => !entries.any(|one| one.noted.found.has_params),
        Some(params) if params.paramFetch.is_none() => true,
        Some(_) => !entries.any(|one| one.noted.found.has_params || !one.conditions.is_null()),
    }
}

/// Computes the values, in the current memory context; `None` if one of them cannot be computed, or moves and splits
/// nothing.
///
/// # Safety
/// The expressions must be in memory.
unsafe fn computed<'r>(clock: &Clock<'_>) -> Option<&'r [Computed]> {
    // SAFETY: the caller's promise; room for as many results as are written.
    unsafe {
        if !are_given(clock) {
            return None;
        }
        let _unshown = Unshown::new();
        let entries = clock.trees.entries();
        let results: *mut Computed = kept!(pg_sys::palloc(size_of_val(entries).max(1))).cast();
        unless(is_about_a_value, || keeping(|| run(clock, results))).flatten()?;
        let values = std::slice::from_raw_parts_mut(results, entries.len());
        for (one, entry) in values.iter_mut().zip(entries) {
            if entry.noted.found.may_settle && (clock.settles)(entry.expression()?, &one.value, clock.params) {
                one.split = None;
            } else if one.split.is_none() {
                return None;
            }
        }
        Some(values)
    }
}

/// Computes and writes the values; `None` if an expression asks for the arrival of a message that is not the only one,
/// or is none of ours. What the functions raise jumps over this frame.
///
/// # Safety
/// The expressions must be in memory, `results` have room for theirs, and no frame between here and `keeping` may have
/// pending destructors.
unsafe fn run(clock: &Clock<'_>, results: *mut Computed) -> Option<()> {
    // SAFETY: the caller's promise.
    unsafe {
        for (place, entry) in clock.trees.entries().iter().enumerate() {
            let Noted { found, split, by, .. } = entry.noted;
            if found.asks_for_message && !clock.one_message {
                return None;
            }
            let [expression, interval] = entry.prepared();
            let value = value_of(type_of(entry.expression()?), expression, clock.params)?;
            let by = match Tree::enter(by) {
                Some(by) if type_of(by) == pg_sys::BOOLOID => turning(entry, interval, clock.params),
                Some(by) => Some(value_of(type_of(by), interval, clock.params)?),
                None => None,
            };
            results.add(place).write(Computed { value, split, by });
        }
    }
    Some(())
}

/// The interval at which a comparison turns, which was made ready; `None` if there is none (`turn`). What it raises
/// jumps over this frame.
///
/// # Safety
/// As `turn`, or null.
unsafe fn turning(
    entry: &Carried,
    prepared: *mut pg_sys::ExprState,
    params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
) -> Option<Value> {
    let (type_oid, params) = (pg_sys::INTERVALOID, params.map_or(std::ptr::null_mut(), Tree::as_ptr));
    let form = form_of(type_oid).filter(|_| !prepared.is_null())?;
    // SAFETY: the caller's promise; as many bytes as are written.
    let at = unsafe {
        let room: *mut pg_sys::Interval = direct!(pg_sys::palloc(size_of::<pg_sys::Interval>())).cast();
        room.write(turn(prepared, params, &entry.turned)?);
        room
    };
    Some(Value { datum: Datum::from(at), is_null: false, type_oid, form })
}

/// The value of an expression of a type, which was made ready; `None` if that has failed, or clock expressions do not
/// have that type. What it raises jumps over this frame.
///
/// # Safety
/// As `compute`, or null.
pub unsafe fn value_of(
    type_oid: Oid,
    prepared: *mut pg_sys::ExprState,
    params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
) -> Option<Value> {
    let form = form_of(type_oid).filter(|_| !prepared.is_null())?;
    // SAFETY: the caller's promise.
    let (datum, is_null) = unsafe { compute(prepared, params.map_or(std::ptr::null_mut(), Tree::as_ptr)) };
    Some(Value { datum, is_null, type_oid, form })
}
