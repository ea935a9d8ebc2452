//! `arrow_cache.schema`: what the columns of a query will be, without running it.

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::inner::{self, Pace};
use super::{arguments, options, run};
use crate::arrow::column::{self, Records};
use crate::arrow::deliver::{Delivery, Description, headroom_for};
use crate::encoding::to_database;
use crate::error::{CacheError, or_raise};

/// One column, its texts in the encoding of the database: number, name, PostgreSQL type, Arrow type, whether it goes out as it is
/// stored, what there is to know.
type Row = (i32, Vec<u8>, pg_sys::Oid, Vec<u8>, bool, Option<String>);

/// The columns of a query's result as an export with these options would deliver them.
#[pg_extern(sql = "
CREATE FUNCTION schema(query text, options jsonb DEFAULT '{}')
    RETURNS TABLE (ord int, name text, pg_type regtype, arrow_type text, zero_copy bool, note text)
    STRICT VOLATILE PARALLEL UNSAFE ROWS 20
    LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
")]
#[allow(clippy::type_complexity, reason = "the macro wants the row type spelled out")]
fn schema(
    call: pg_sys::FunctionCallInfo,
) -> TableIterator<
    'static,
    (
        name!(ord, i32),
        name!(name, Vec<u8>),
        name!(pg_type, pg_sys::Oid),
        name!(arrow_type, Vec<u8>),
        name!(zero_copy, bool),
        name!(note, Option<String>),
    ),
> {
    // SAFETY: `call` is the first call of this function, with a text and a jsonb.
    let rows = unsafe { describe(call) };
    TableIterator::new(rows)
}

/// # Safety
/// As `schema`.
unsafe fn describe(call: pg_sys::FunctionCallInfo) -> Vec<Row> {
    run::store();
    // SAFETY: as the caller promises. The query is planned and not started.
    unsafe {
        let options = options::from_json(arguments::json(call, 1));
        let text = arguments::text(call).unwrap_or_default();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let query_desc = inner::prepare(&text, &[], Pace::Whole);
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
