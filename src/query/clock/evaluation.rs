//! Clock expressions are computed here, as the statement that asks would compute them: by the server's executor, under
//! the same settings, at the same time. One that has the same value at the far end of the present minute settles.
//!
//! Their functions may raise: a date may be out of range, a zone unknown. Such an ERROR is dropped, without a
//! subtransaction, and the statement is bypassed; if it needs the value, it raises the ERROR itself. That is sound
//! because these functions take no lock, pin nothing and change nothing: they compute, and allocate in a context that
//! is emptied afterwards. Nor does the executor keep anything else of an expression without columns and sub-queries.

use std::cell::Cell;
use std::ffi::CStr;
use std::mem::MaybeUninit;

use arrow_cache_core::{Hash128, HashBuffer, Reason};
use pgrx::pg_sys::{self, Datum, Oid};

use super::carried::{ClockTrees, executable};
use super::cuts::{Cuts, MOST};
use super::expression::{closed, given, type_of};
use super::leaf::{Leaf, Moment};
use super::split::Split;
use super::types::form_of;
use crate::error::is_about_a_value;
use crate::pg::backend_local::Local;
use crate::pg::computing::{Unshown, compute, prepare};
use crate::pg::error_passing::{keeping, unless};
use crate::pg::memory_context::context_below;
use crate::pg::server;
use crate::pg::tree::Tree;
use crate::pg::tree_making::replaced;
use crate::query::parameters;

/// What the clock expressions of a statement are computed with.
#[derive(Clone, Copy)]
pub struct Clock<'q> {
    /// The expressions.
    pub trees: ClockTrees,
    /// The values of the statement's parameters. Without any, a parameter counts as NULL: such a statement is only
    /// asked about.
    pub params: Option<Tree<'q, pg_sys::ParamListInfoData>>,
    /// The statement is started, and all its rows are read, within one message of the client.
    pub one_message: bool,
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
    form: (i16, bool),
}

impl Value {
    const NOTHING: Self = Self { datum: Datum::null(), is_null: true, type_oid: pg_sys::InvalidOid, form: (0, true) };

    /// Returns true if it is the same value, byte for byte.
    ///
    /// # Safety
    /// Two values of one type, which are still there.
    unsafe fn equals(&self, other: &Self) -> bool {
        let (length, by_value) = self.form;
        self.is_null == other.is_null
            && (self.is_null
                // SAFETY: the caller's promise; neither is NULL.
                || unsafe { direct!(server::datumIsEqual(self.datum, other.datum, by_value, length.into())) })
    }
}

/// What a clock expression came to.
#[derive(Clone, Copy)]
pub struct Computed {
    /// Its value.
    pub value: Value,
    /// What its value splits, if it moves all the time: it is a cut.
    pub split: Option<Split>,
    /// The interval that the column is away from it, if the split has one.
    by: Value,
    /// The conditions beside that.
    pub conditions: *mut pg_sys::List,
}

impl Computed {
    /// The cut that its value is, which is not NULL; `None` if there is no telling, or it is none.
    pub(super) fn cut(&self) -> Option<i64> {
        let by = (self.by.type_oid == pg_sys::INTERVALOID && !self.by.is_null)
            // SAFETY: a value of that type that is not NULL, which lives as long as the values do.
            .then(|| unsafe { &*self.by.datum.cast_mut_ptr::<pg_sys::Interval>() });
        self.split?.cut((self.value.type_oid, self.value.datum), by)
    }
}

/// What the clock adds to a question.
#[derive(Clone, Copy)]
pub struct Times {
    /// A hash of all values that are in the key.
    pub hash: Hash128,
    /// Those that are not.
    pub cuts: Cuts,
}

/// The memory of one computation for a key, which runs no code but the server's own; emptied after it.
static CONTEXT: Local<Cell<pg_sys::MemoryContext>> = Local::new(Cell::new(std::ptr::null_mut()));

/// The word before a value, or in the place of one.
const IS_VALUE: u8 = 0;
const IS_CUT: u8 = 1;
const IS_NULL: u8 = 2;

static BUFFER: Local<Cell<HashBuffer>> = Local::new(Cell::new(HashBuffer::new()));

/// The values of all clock expressions: as one hash, under a secret, or as cuts.
///
/// # Errors
/// `MovingClock` if one of them changes by less than a minute and is no cut, if it asks for the arrival of a message
/// that is not the only one, or if it cannot be computed.
pub fn times(clock: &Clock<'_>, seed: u64) -> Result<Times, Reason> {
    if clock.trees.is_none() {
        return Ok(Times { hash: Hash128::NONE, cuts: Cuts::NONE });
    }
    let mut key = BUFFER.take();
    key.clear();
    key.seed(seed);
    let context = kept_context();
    let add_all = |values: &[Computed]| {
        let mut cuts = Cuts::NONE;
        values.iter().try_for_each(|computed| add(&mut key, &mut cuts, computed)).map(|()| cuts)
    };
    // SAFETY: the context is ours; emptying it cannot raise, since it has no callbacks.
    let cuts = unsafe {
        let cuts = computed_in(context, clock, add_all);
        direct!(pg_sys::MemoryContextReset(context));
        cuts?.ok_or(Reason::MovingClock)?
    };
    let hash = key.is_complete().then(|| key.finish()).ok_or(Reason::OutOfMemory)?;
    BUFFER.set(key);
    Ok(Times { hash, cuts })
}

/// Adds a value to the key or, if it is one, to the cuts. `None` if there is no telling it.
fn add(key: &mut HashBuffer, cuts: &mut Cuts, computed: &Computed) -> Option<()> {
    let Computed { value, split, .. } = computed;
    if value.is_null {
        // Comparing anything with it gives NULL.
        key.u8(IS_NULL);
    } else if split.is_some() {
        key.u8(IS_CUT);
        cuts.add(computed.cut()?)?;
    } else {
        key.u8(IS_VALUE);
        let (length, by_value) = value.form;
        // SAFETY: a value that was just computed, of the type that its function returns.
        unsafe { parameters::add_datum(key, value.datum, by_value, length) };
    }
    Some(())
}

/// The value that an expression which asks for the time has now, as a constant in the current memory context. `None` if
/// it is no clock expression, asks for the arrival of a message, has parameters, is NULL, cannot be computed, or is of
/// a type that is passed by reference.
pub fn constant_now(expression: Tree<'_, pg_sys::Node>) -> Option<*mut pg_sys::Const> {
    let found = closed(expression).filter(|found| found.asks && !found.asks_for_message && !found.has_params)?;
    let _unshown = Unshown::new();
    // SAFETY: the expression is as long as its computation.
    let value = unsafe {
        let copy = Tree::enter(executable(expression, &found))?;
        unless(is_about_a_value, || keeping(|| value_of(copy, None, || Some(prepare(copy.as_ptr()))))).flatten()?
    };
    let (length, by_value) = value.form;
    if value.is_null || !by_value {
        return None;
    }
    let none = pg_sys::InvalidOid;
    // SAFETY: a new node, for a value of this type.
    Some(unsafe { kept!(pg_sys::makeConst(value.type_oid, -1, none, length.into(), value.datum, false, true)) })
}

/// Computes the values of all clock expressions, and does something with them, which may run anything, other
/// computations of such values too.
///
/// # Errors
/// As `times`.
pub fn with_values<R>(clock: &Clock<'_>, act: impl FnOnce(&[Computed]) -> R) -> Result<R, Reason> {
    // SAFETY: the parent is there as long as this statement. Nobody uses what lies in the context any more.
    unsafe {
        let context = context_below(pg_sys::CurrentMemoryContext, NAME);
        let result = computed_in(context, clock, act);
        kept!(pg_sys::MemoryContextDelete(context));
        result
    }
}

/// As `with_values`, in a memory context.
///
/// # Safety
/// The context must stay there, and nobody else may empty it meanwhile.
unsafe fn computed_in<R>(
    context: pg_sys::MemoryContext,
    clock: &Clock<'_>,
    act: impl FnOnce(&[Computed]) -> R,
) -> Result<R, Reason> {
    // SAFETY: the caller's promise. The expressions lie in a context that is still there, since the statement that
    // carries them is being planned or started.
    unsafe {
        let caller = pg_sys::MemoryContextSwitchTo(context);
        let mut values = UNWRITTEN;
        let result = computed(clock, &mut values).ok_or(Reason::MovingClock).map(act);
        pg_sys::MemoryContextSwitchTo(caller);
        result
    }
}

const NAME: &CStr = c"pg_arrow_cache clock";

fn kept_context() -> pg_sys::MemoryContext {
    if CONTEXT.get().is_null() {
        // SAFETY: the parent lives as long as the backend.
        CONTEXT.set(unsafe { context_below(pg_sys::TopMemoryContext, NAME) });
    }
    CONTEXT.get()
}

/// Room for results, of which only as many are written as there are expressions: writing all of them would take longer
/// than computing one.
type Results = [MaybeUninit<Computed>; MOST];

const UNWRITTEN: Results = [const { MaybeUninit::uninit() }; MOST];

/// The first results.
///
/// # Safety
/// So many were written.
unsafe fn written_ones(results: &mut Results, count: usize) -> &mut [Computed] {
    // SAFETY: the caller promises that these were written; there are no more than there is room for.
    unsafe { std::slice::from_raw_parts_mut(results.as_mut_ptr().cast(), count.min(MOST)) }
}

/// Computes the values; `None` if one of them cannot be computed, or moves and splits nothing.
///
/// # Safety
/// The expressions must be in memory.
unsafe fn computed<'r>(clock: &Clock<'_>, results: &'r mut Results) -> Option<&'r [Computed]> {
    // SAFETY: the caller's promise.
    unsafe {
        let has_params = clock.trees.entries().iter().any(|one| one.has_params);
        let trees = match clock.params {
            None if has_params => clock.trees.without_params(),
            Some(params) if has_params && params.paramFetch.is_some() => return None,
            _ => clock.trees,
        };
        let clock = Clock { trees, ..*clock };
        let _unshown = Unshown::new();
        let place = std::ptr::from_mut(results);
        let count = unless(is_about_a_value, || keeping(|| run(&clock, place))).flatten()?;
        let values = written_ones(results, count);
        for (one, entry) in values.iter_mut().zip(trees.entries()) {
            if entry.may_settle && settles(entry.expression()?, &one.value, clock.params) {
                one.split = None;
            } else if one.split.is_none() {
                return None;
            }
        }
        Some(values)
    }
}

/// Computes the values; `None` if an expression asks for the arrival of a message that is not the only one, or is none
/// of ours. Returns how many values it has written. What the functions raise jumps over this frame.
///
/// # Safety
/// The expressions must be in memory, `results` valid, and no frame between here and `keeping` may have pending
/// destructors.
unsafe fn run(clock: &Clock<'_>, results: *mut Results) -> Option<usize> {
    let mut count = 0;
    // SAFETY: the caller's promise.
    for entry in unsafe { clock.trees.entries() } {
        if entry.asks_for_message && !clock.one_message {
            return None;
        }
        // SAFETY: the caller's promise.
        let beside =
            |one: Tree<'_, pg_sys::Node>| unsafe { value_of(one, clock.params, || Some(prepare(one.as_ptr()))) };
        let by = match entry.by() {
            Some(one) => beside(one)?,
            None => Value::NOTHING,
        };
        // SAFETY: the caller's promise.
        unsafe {
            let value = value_of(entry.expression()?, clock.params, || entry.prepared())?;
            (*results).get_mut(count)?.write(Computed { value, split: entry.split, by, conditions: entry.conditions });
        }
        count += 1;
    }
    Some(count)
}

/// The value that was found last to settle, if it is passed by value, with its type and the minute. Whether another
/// expression has the same value decides on nothing but whether it is worth being kept.
static SETTLED: Local<Cell<Option<(i64, Oid, Datum)>>> = Local::new(Cell::new(None));

/// Returns true if an expression that has this value now has it at the far end of the present minute, too.
///
/// # Safety
/// The expression must be in memory, and the value one of it.
unsafe fn settles(
    expression: Tree<'_, pg_sys::Node>,
    value: &Value,
    params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
) -> bool {
    let present = Moment::present();
    let known = (present.minute(), value.type_oid, value.datum);
    // There are few booleans.
    let is_kept = value.form.1 && !value.is_null && value.type_oid != pg_sys::BOOLOID;
    if is_kept && SETTLED.get() == Some(known) {
        return true;
    }
    // SAFETY: the caller's promise. The copy is as long as its computation; values of one expression.
    let settles = unsafe {
        let far = present.at_far_end();
        let other = replaced(expression.as_ptr(), &mut |node, _depth| Some(Leaf::of(node)?.at(far)));
        let Some(other) = Tree::enter(other) else { return false };
        let other = unless(is_about_a_value, || keeping(|| value_of(other, params, || Some(prepare(other.as_ptr())))))
            .flatten();
        other.is_some_and(|other| other.equals(value))
    };
    if settles && is_kept {
        SETTLED.set(Some(known));
    }
    settles
}

/// The value of an expression, which is `prepared` if it is neither a constant nor a parameter; `None` if it
/// cannot be, or is of a type that clock expressions do not have. What it raises jumps over this frame.
///
/// # Safety
/// As `compute`.
unsafe fn value_of(
    expression: Tree<'_, pg_sys::Node>,
    params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
    prepared: impl FnOnce() -> Option<*mut pg_sys::ExprState>,
) -> Option<Value> {
    let type_oid = type_of(expression);
    let form = form_of(type_oid)?;
    let (datum, is_null) = match given(expression.without_relabelling(), params) {
        Some(given) => given,
        // SAFETY: the caller's promise.
        None => unsafe { compute(prepared()?, params.map_or(std::ptr::null_mut(), Tree::as_ptr)) },
    };
    Some(Value { datum, is_null, type_oid, form })
}
