//! `arrow_cache.schema`: what the columns of a query will be, without running it.

use super::error_context::within;
use super::inner_query::{Pace, check_permitted, plan, under_callers_snapshot};
use super::{arguments, options};
use crate::arrow::column::{self, Records};
use crate::arrow::delivery::deliver::{Delivery, Description};
use crate::arrow::delivery::schema::headroom_for;
use crate::error::{CacheError, or_raise};
use crate::pg::encoding::to_database;
use crate::pg::function_call::FunctionCall;
use crate::pg::returned::{Set, Text, TypeName};
use crate::pg::row_type::RowType;
use crate::pg::sql_function::sql_function;
use crate::shmem;

/// One column: number, name, PostgreSQL type, Arrow type, whether it goes out as it is
/// stored, a note.
type Row = (i32, Text, TypeName, Text, bool, Option<String>);

/// The columns of a query's result as an export with these options would deliver them.
fn schema(call: FunctionCall<'_>) -> Set<Row> {
    Set::new(describe(call))
}

sql_function!(schema, "arrow_cache_schema");

fn describe(call: FunctionCall<'_>) -> Vec<Row> {
    shmem::required();
    let options = options::from_json(arguments::json(call, 1));
    let text = arguments::text(call).unwrap_or_default();
    under_callers_snapshot(|| {
        let plan = within(&text, || {
            let (plan, parameters) = plan(&text, &[], Pace::Whole);
            check_permitted(plan, &text, parameters);
            plan
        });
        // SAFETY: a plan has a topmost node, whose target list is that of the result.
        let row_type = unsafe { RowType::of(kept!(pg_sys::ExecCleanTypeFromTL((*plan.planTree).targetlist))) };
        let columns = column::columns_of(row_type, Records::Local)
            .unwrap_or_else(|reason| CacheError::undeliverable(reason).raise());
        let _headroom = or_raise(headroom_for(&columns));
        let delivery = Delivery::new(row_type, &columns, &options).unwrap_or_else(|error| error.raise());
        let row = |(number, field): (i32, Description)| {
            let (name, arrow_type) = (to_database(&field.name), to_database(&field.arrow_type));
            (number, Text(name), TypeName(field.type_oid), Text(arrow_type), field.zero_copy, field.note)
        };
        (1..).zip(delivery.describe()).map(row).collect()
    })
}
