//! Which functions a cacheable query may call.
//!
//! IMMUTABLE built-in functions always. STABLE ones only from the lists below: their results
//! rest on their arguments and on settings that are part of the key, not on the clock, the
//! session or other tables. Left out on purpose: everything that asks for the current time
//! (`timetz(time)` and `timezone(text, timetz)` among them), the input functions of date and time
//! types (`'today'` is a legal input), and input functions of containers (their elements may be
//! any type). OIDs of built-in functions never change between versions; a test compares the lists
//! with pg_proc.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::types::FIRST_UNPINNED_OID;

/// How a call of a function bears on caching.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FunctionVerdict {
    /// Always the same answer for the same arguments.
    Sound,
    /// The same answer for the same arguments and settings.
    ReadsSettings,
    /// Sound as long as it meets no type with output functions of a user's own, which it would call unseen.
    CallsOutputFunctions,
    /// Sound as long as it meets built-in types only: it looks for casts to JSON of any other.
    ConvertsToJson,
    /// The query must be bypassed.
    Unsound(Reason),
}

/// Judges a function by its OID.
pub fn judge(oid: pg_sys::Oid) -> FunctionVerdict {
    let number = oid.to_u32();
    if number >= FIRST_UNPINNED_OID {
        return FunctionVerdict::Unsound(Reason::UserDefinedFunction);
    }
    if DEFINITIONS_THOUGH_IMMUTABLE.binary_search(&number).is_ok() {
        return FunctionVerdict::Unsound(Reason::StableFunction);
    }
    if SETTINGS_THOUGH_IMMUTABLE.binary_search(&number).is_ok() {
        return FunctionVerdict::ReadsSettings;
    }
    if SETTINGS_ONLY.binary_search(&number).is_ok() {
        return FunctionVerdict::ReadsSettings;
    }
    if OUTPUT.binary_search(&number).is_ok() {
        return FunctionVerdict::CallsOutputFunctions;
    }
    if number == JSONB_OBJECT_AGG || TO_JSON.binary_search(&number).is_ok() {
        return FunctionVerdict::ConvertsToJson;
    }
    // SAFETY: a catalog look-up; the function is named by the query, so it exists.
    match unsafe { pg_sys::func_volatile(oid) } as u8 {
        pg_sys::PROVOLATILE_IMMUTABLE => FunctionVerdict::Sound,
        pg_sys::PROVOLATILE_STABLE => FunctionVerdict::Unsound(Reason::StableFunction),
        _ => FunctionVerdict::Unsound(Reason::VolatileFunction),
    }
}

/// Functions that are marked IMMUTABLE and read the definitions of relations all the same. Ascending.
const DEFINITIONS_THOUGH_IMMUTABLE: &[u32] = &[
    3424, // pg_partition_root(regclass)
    5028, // satisfies_hash_partition(oid,integer,integer,"any")
];

/// Functions that are marked IMMUTABLE and read settings in the key all the same. Ascending.
const SETTINGS_THOUGH_IMMUTABLE: &[u32] = &[
    31,   // byteaout(bytea)
    201,  // float4out(real)
    215,  // float8out(double precision)
    1159, // timezone(text,timestamp with time zone)
    1199, // age(timestamp with time zone,timestamp with time zone)
    1282, // quote_ident(text)
    2069, // timezone(text,timestamp without time zone)
];

/// STABLE functions that read settings in the key and nothing else. Ascending.
const SETTINGS_ONLY: &[u32] = &[
    886,  // cash_in(cstring)
    887,  // cash_out(money)
    939,  // generate_series(timestamp with time zone,timestamp with time zone,interval)
    1085, // date_out(date)
    1151, // timestamptz_out(timestamp with time zone)
    1160, // interval_in(cstring,oid,integer)
    1161, // interval_out(interval)
    1171, // date_part(text,timestamp with time zone)
    1174, // timestamptz(date)
    1176, // timestamptz(date,time without time zone)
    1178, // date(timestamp with time zone)
    1189, // timestamptz_pl_interval(timestamp with time zone,interval)
    1190, // timestamptz_mi_interval(timestamp with time zone,interval)
    1217, // date_trunc(text,timestamp with time zone)
    1284, // date_trunc(text,timestamp with time zone,text)
    1305, // "overlaps"(timestamp with time zone,interval,timestamp with time zone,interval)
    1306, // "overlaps"(timestamp with time zone,timestamp with time zone,timestamp with time zone,interval)
    1307, // "overlaps"(timestamp with time zone,interval,timestamp with time zone,timestamp with time zone)
    1313, // timestamp_out(timestamp without time zone)
    1388, // timetz(timestamp with time zone)
    1768, // to_char(interval,text)
    1770, // to_char(timestamp with time zone,text)
    1772, // to_char(numeric,text)
    1773, // to_char(integer,text)
    1774, // to_char(bigint,text)
    1775, // to_char(real,text)
    1776, // to_char(double precision,text)
    1777, // to_number(text,text)
    1778, // to_timestamp(text,text)
    1780, // to_date(text,text)
    2019, // "time"(timestamp with time zone)
    2027, // "timestamp"(timestamp with time zone)
    2028, // timestamptz(timestamp without time zone)
    2049, // to_char(timestamp without time zone,text)
    2351, // date_lt_timestamptz(date,timestamp with time zone)
    2352, // date_le_timestamptz(date,timestamp with time zone)
    2353, // date_eq_timestamptz(date,timestamp with time zone)
    2354, // date_gt_timestamptz(date,timestamp with time zone)
    2355, // date_ge_timestamptz(date,timestamp with time zone)
    2356, // date_ne_timestamptz(date,timestamp with time zone)
    2357, // date_cmp_timestamptz(date,timestamp with time zone)
    2377, // timestamptz_lt_date(timestamp with time zone,date)
    2378, // timestamptz_le_date(timestamp with time zone,date)
    2379, // timestamptz_eq_date(timestamp with time zone,date)
    2380, // timestamptz_gt_date(timestamp with time zone,date)
    2381, // timestamptz_ge_date(timestamp with time zone,date)
    2382, // timestamptz_ne_date(timestamp with time zone,date)
    2383, // timestamptz_cmp_date(timestamp with time zone,date)
    2520, // timestamp_lt_timestamptz(timestamp without time zone,timestamp with time zone)
    2521, // timestamp_le_timestamptz(timestamp without time zone,timestamp with time zone)
    2522, // timestamp_eq_timestamptz(timestamp without time zone,timestamp with time zone)
    2523, // timestamp_gt_timestamptz(timestamp without time zone,timestamp with time zone)
    2524, // timestamp_ge_timestamptz(timestamp without time zone,timestamp with time zone)
    2525, // timestamp_ne_timestamptz(timestamp without time zone,timestamp with time zone)
    2526, // timestamp_cmp_timestamptz(timestamp without time zone,timestamp with time zone)
    2527, // timestamptz_lt_timestamp(timestamp with time zone,timestamp without time zone)
    2528, // timestamptz_le_timestamp(timestamp with time zone,timestamp without time zone)
    2529, // timestamptz_eq_timestamp(timestamp with time zone,timestamp without time zone)
    2530, // timestamptz_gt_timestamp(timestamp with time zone,timestamp without time zone)
    2531, // timestamptz_ge_timestamp(timestamp with time zone,timestamp without time zone)
    2532, // timestamptz_ne_timestamp(timestamp with time zone,timestamp without time zone)
    2533, // timestamptz_cmp_timestamp(timestamp with time zone,timestamp without time zone)
    2549, // interval_pl_timestamptz(interval,timestamp with time zone)
    3462, // make_timestamptz(integer,integer,integer,integer,integer,double precision)
    3463, // make_timestamptz(integer,integer,integer,integer,integer,double precision,text)
    3506, // enum_in(cstring,oid)
    3507, // enum_out(anyenum)
    3528, // enum_first(anyenum)
    3529, // enum_last(anyenum)
    3530, // enum_range(anyenum,anyenum)
    3531, // enum_range(anyenum)
    3811, // money(integer)
    3812, // money(bigint)
    3823, // "numeric"(money)
    3824, // money(numeric)
    4135, // in_range(timestamp with time zone,timestamp with time zone,interval,boolean,boolean)
    6203, // "extract"(text,timestamp with time zone)
];

/// STABLE functions that call the output functions of their arguments' types. Ascending.
const OUTPUT: &[u32] = &[
    384,  // array_to_string(anyarray,text,text)
    395,  // array_to_string(anyarray,text)
    751,  // array_out(anyarray)
    1285, // quote_literal(anyelement)
    1290, // quote_nullable(anyelement)
    2003, // textanycat(text,anynonarray)
    2004, // anytextcat(anynonarray,text)
    2291, // record_out(record)
    3058, // concat("any")
    3059, // concat_ws(text,"any")
    3539, // format(text,"any")
    3540, // format(text)
    3835, // range_out(anyrange)
    4232, // multirange_out(anymultirange)
];

/// STABLE functions that convert any type to JSON, by a cast if the user has defined one. Ascending.
const TO_JSON: &[u32] = &[
    3153, // array_to_json(anyarray)
    3154, // array_to_json(anyarray,boolean)
    3155, // row_to_json(record)
    3156, // row_to_json(record,boolean)
    3173, // json_agg_transfn(internal,anyelement)
    3175, // json_agg(anyelement)
    3176, // to_json(anyelement)
    3180, // json_object_agg_transfn(internal,"any","any")
    3197, // json_object_agg("any","any")
    3198, // json_build_array("any")
    3199, // json_build_array()
    3200, // json_build_object("any")
    3201, // json_build_object()
    3265, // jsonb_agg_transfn(internal,anyelement)
    3266, // jsonb_agg_finalfn(internal)
    3267, // jsonb_agg(anyelement)
    3268, // jsonb_object_agg_transfn(internal,"any","any")
    3269, // jsonb_object_agg_finalfn(internal)
    3271, // jsonb_build_array("any")
    3272, // jsonb_build_array()
    3273, // jsonb_build_object("any")
    3274, // jsonb_build_object()
    3787, // to_jsonb(anyelement)
];

/// jsonb_object_agg("any", "any"), which does the same and is marked IMMUTABLE all the same.
const JSONB_OBJECT_AGG: u32 = 3270;
