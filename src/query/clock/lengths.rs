//! Numbers that tell how long a difference of two times is: `extract(epoch FROM now() - at) / 60 < 5`. None of them is
//! less for a longer difference than for a shorter one, or, behind a negative divisor, none is greater. So what
//! compares them with a constant turns at one length, which the server's own functions are asked for. Keeps nothing.

use std::cell::Cell;

use pgrx::pg_sys::{self, Datum, Interval, Oid};

use super::expression::both;
use super::time_operators::{Arithmetic, DAY, computing};
use crate::pg::computing::compute_for;
use crate::pg::tree::{Tree, child};
use crate::pg::tree_making::{new_node, replaced};
use crate::query::function_table::has;
use crate::query::function_table::properties::MEASURING;

/// A number that tells how long a difference is.
pub struct Length<'t> {
    /// What it is the length of.
    pub(super) difference: Tree<'t, pg_sys::OpExpr>,
    /// What takes the number from it.
    pub(super) function: Oid,
    /// What it is divided by: the function behind the operator, and the number.
    pub(super) divided: Option<(Oid, Tree<'t, pg_sys::Node>)>,
}

impl<'t> Length<'t> {
    /// The length that a number is.
    pub(super) fn of(number: Tree<'t, pg_sys::Node>) -> Option<Self> {
        let division = number.as_a::<pg_sys::OpExpr>().and_then(|call| {
            let (_, _, function) = computing(call).filter(|(gives, ..)| *gives == Arithmetic::Quotient)?;
            Some((function, both(child!(call.args))?))
        });
        let taken = division.as_ref().map_or(number, |(_, (left, _))| *left).as_a::<pg_sys::FuncExpr>()?;
        has(taken.funcid, MEASURING).then_some(())?;
        let (field, difference) = both(child!(taken.args))?;
        let field = field.constant_text()?;
        FIELDS.iter().any(|listed| field.eq_ignore_ascii_case(listed)).then_some(())?;
        let divided = division.map(|(function, (_, divisor))| (function, divisor));
        Some(Self { difference: difference.as_a()?, function: taken.funcid, divided })
    }

    /// A copy of a comparison that has an interval in the place of the difference (`turn`).
    pub(super) fn of_interval(&self, comparison: Tree<'t, pg_sys::OpExpr>) -> *mut pg_sys::Node {
        let mut replace = |node: Tree<'_, pg_sys::Node>, _depth: u32| {
            (node.as_ptr() == self.difference.as_node().as_ptr()).then(|| {
                let interval = new_node::<pg_sys::CaseTestExpr>();
                // SAFETY: a new node.
                unsafe { ((*interval).typeId, (*interval).typeMod) = (pg_sys::INTERVALOID, -1) };
                interval.cast()
            })
        };
        // SAFETY: a comparison of a valid query.
        unsafe { replaced(comparison.as_node().as_ptr(), &mut replace) }
    }
}

/// The fields that grow with a difference, which has no months. `hour` begins again each day.
const FIELDS: [&[u8]; 3] = [b"epoch", b"day", b"days"];

/// Longest difference at which a comparison may turn. Up to there, two quotients of numeric differ by more than they
/// are rounded by: a microsecond is more than 10⁻¹⁵ of it, and they have 16 digits or more (`select_div_scale`).
const LONGEST: i64 = 4000 * DAY;

/// The shortest interval for which the comparison is not what it is for all shorter ones; `None` if it does not turn.
/// `last` is where one like it was last found to turn, and is set. What it raises, also for differences further away,
/// jumps over the frame.
///
/// # Safety
/// What `prepare` has made of `of_interval`; null, or parameters that are there.
pub(super) unsafe fn turn(
    comparison: *mut pg_sys::ExprState,
    params: pg_sys::ParamListInfo,
    last: &Cell<i64>,
) -> Option<Interval> {
    // As `-` of two timestamps gives it (`interval_justify_hours`).
    let interval = |length: i64| Interval { month: 0, day: (length / DAY) as i32, time: length % DAY };
    let holds = |length: i64| {
        let mut interval = interval(length);
        // SAFETY: the caller's promise; the interval outlives the call.
        let (value, is_null) = unsafe { compute_for(comparison, params, Datum::from(&raw mut interval)) };
        (!is_null).then_some(value.value() != 0)
    };
    let (short, long) = (holds(-i64::MAX)?, holds(i64::MAX)?);
    let turns_between = |shorter: i64, longer: i64| Some(holds(shorter)? == short && holds(longer)? == long);
    // It turns once, if at all.
    let near = (last.get() - 1, last.get());
    let (mut shorter, mut longer) = if turns_between(near.0, near.1)? { near } else { (-LONGEST, LONGEST) };
    if short == long || !turns_between(shorter, longer)? {
        return None;
    }
    while longer - shorter > 1 {
        let middle = i64::midpoint(shorter, longer);
        *(if holds(middle)? == short { &mut shorter } else { &mut longer }) = middle;
    }
    last.set(longer);
    Some(interval(longer))
}
