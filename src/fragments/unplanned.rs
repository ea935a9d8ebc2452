//! Plans in which some parts have no plan, since they were stored when the statement was planned. Each of these must be
//! there when the plan is started, under its snapshot. If one is not, the client's query is planned in the place of the
//! combined one, in the way in which a placeholder gives way. Keeps nothing.

use super::parts::{Parts, Statement};
use super::recipe::Recipe;
use crate::lookup::Call;
use crate::pg::query_desc::QueryDesc;
use crate::query::scan_of_parts::scan_of_parts;

/// Looks for the stored parts of a plan that is about to be started, if it has no plans for them; they are handed over
/// to its scan. Returns how to plan its query after all if some are gone.
#[inline(never)]
pub fn planned_after_all<'q>(query: QueryDesc<'q>) -> Option<Call<'q>> {
    let scan = scan_of_parts(query.plan())?;
    // SAFETY: a scan of parts has a recipe, which lives as long as the plan. The snapshot of a query is registered.
    unsafe {
        let recipe = Recipe::of_list(scan.custom_private).filter(|recipe| !recipe.question.is_null())?;
        let statement = Statement {
            plan: query.plan(),
            snapshot: query.snapshot(),
            params: query.params(),
            text: query.source(),
            context: query.own_context(),
        };
        let parts = &mut *Parts::look_up(scan.custom_private, statement)?;
        if parts.are_complete() {
            parts.hand_over();
            return None;
        }
        parts.end();
        Some(Call::of_hook(recipe.question, query.source(), recipe.options, query.params()))
    }
}
