//! Whether a role may lack the right to execute a built-in function that cacheable queries call. The server asks when
//! it starts a plan, or computes a part of it in advance, so a role meets the error in those plans alone that have the
//! call. No query tree names all functions of its plans: the planner adds comparisons of its own. So this is asked of
//! all of them. Reads catalogs; keeps nothing.

use super::volatility::{self, FunctionVerdict};
use crate::pg::built_in_functions;

/// Returns true if EXECUTE was withdrawn from one of them. Those that no cacheable query calls do not
/// count: initdb withdraws some itself. `None` if that cannot be told now.
pub fn any() -> Option<bool> {
    let is_called = |verdict| !matches!(verdict, FunctionVerdict::Unsound(_));
    Some(built_in_functions::withdrawn()?.into_iter().any(|function| is_called(volatility::check(function))))
}
