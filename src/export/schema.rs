//! `arrow_cache.schema`: what the columns of a query will be, without running it.

use pgrx::iter::TableIterator;
use pgrx::pg_sys;

use super::inner::{self, Pace};
use super::{arguments, options, run};
use crate::arrow::column::{self, Records};
use crate::arrow::deliver::{Delivery, Description, headroom_for};
use crate::error::{CacheError, or_raise};
use crate::pg::encoding::to_database;
use crate::pg::sql_function::sql_function;

/// One column, its texts in the encoding of the database: number, name, PostgreSQL type, Arrow type, whether it goes out as it is
/// stored, what there is to know.
type Row = (i32, Vec<u8>, pg_sys::Oid, Vec<u8>, bool, Option<String>);

/// The columns of a query's result as an export with these options would deliver them.
fn schema(call: pg_sys::FunctionCallInfo) -> TableIterator<'static, Row> {
    // SAFETY: `call` is the first call of this function, with a text and a jsonb.
    let rows = unsafe { describe(call) };
    TableIterator::new(rows)
}

sql_function!(arrow_cache_schema, pg_finfo_arrow_cache_schema, schema);

/// # Safety
/// As `schema`.
unsafe fn describe(call: pg_sys::FunctionCallInfo) -> Vec<Row> {
    run::store();
    // SAFETY: as the caller promises. The query is not run.
    unsafe {
        let options = options::from_json(arguments::json(call, 1));
        let text = arguments::text(call).unwrap_or_default();
        inner::push_callers_snapshot();
        let query_desc = inner::within(&text, || {
            let query_desc = inner::prepare(&text, &[], Pace::Whole);
            inner::check_permitted(query_desc);
            query_desc
        });
        let descriptor = pg_sys::ExecCleanTypeFromTL((*(*(*query_desc).plannedstmt).planTree).targetlist);
        let columns = column::columns_of(descriptor, Records::Local)
            .unwrap_or_else(|reason| CacheError::Undeliverable { reason }.raise());
        let _headroom = or_raise(headroom_for(&columns));
        let delivery = Delivery::new(descriptor, &columns, &options).unwrap_or_else(|error| error.raise());
        let rows = delivery.describe();
        pg_sys::FreeQueryDesc(query_desc);
        pg_sys::PopActiveSnapshot();
        let row = |(number, field): (i32, Description)| {
            let (name, arrow_type) = (to_database(&field.name), to_database(&field.arrow_type));
            (number, name, field.type_oid, arrow_type, field.zero_copy, field.note)
        };
        (1..).zip(rows).map(row).collect()
    }
}
