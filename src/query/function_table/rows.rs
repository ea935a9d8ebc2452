//! The properties of functions. Those that are given by hand are edited here; all else is written by
//! scripts/functions/audit.py.

use super::properties::*;

#[rustfmt::skip]
pub(super) const FUNCTIONS: &[(u32, u32)] = &[
    (31, READING), // byteaout(bytea): bytea_output
    (89, SETTINGS), // version()
    (118, READING), // point_out(point): extra_float_digits
    (120, READING), // lseg_out(lseg): extra_float_digits
    (122, READING), // path_out(path): extra_float_digits
    (124, READING), // box_out(box): extra_float_digits
    (201, READING), // float4out(float4): extra_float_digits
    (215, READING), // float8out(float8): extra_float_digits
    (228, CLEAN | COARSE), // dround(float8)
    (229, CLEAN | COARSE), // dtrunc(float8)
    (274, ASKING), // timeofday()
    (348, READING), // poly_out(polygon): extra_float_digits
    (384, OUTPUT), // array_to_string(anyarray,text,text)
    (395, OUTPUT), // array_to_string(anyarray,text)
    (401, CLEAN | CLOCK), // text(bpchar)
    (406, CLEAN | CLOCK), // text(name)
    (407, CLEAN | CLOCK), // name(text)
    (408, CLEAN | CLOCK), // bpchar(name)
    (409, CLEAN | CLOCK), // name(bpchar)
    (710, ASKING), // getpgusername()
    (745, ASKING), // current_user()
    (746, ASKING), // session_user()
    (751, OUTPUT), // array_out(anyarray)
    (886, SETTINGS), // cash_in(cstring)
    (887, SETTINGS), // cash_out(money)
    (939, SETTINGS), // generate_series(timestamptz,timestamptz,interval)
    (1085, SETTINGS), // date_out(date)
    (1144, READING), // time_out(time): DateStyle
    (1151, SETTINGS), // timestamptz_out(timestamptz)
    (1159, READING | CLOCK), // timezone(text,timestamptz): TimeZone, timezone_abbreviations
    (1160, SETTINGS), // interval_in(cstring,oid,int4)
    (1161, SETTINGS), // interval_out(interval)
    (1171, SETTINGS | CLOCK | COARSE), // date_part(text,timestamptz)
    (1172, CLEAN | CLOCK | COARSE | MEASURING), // date_part(text,interval)
    (1174, SETTINGS), // timestamptz(date)
    (1176, SETTINGS), // timestamptz(date,time)
    (1178, SETTINGS), // date(timestamptz)
    (1189, SETTINGS), // timestamptz_pl_interval(timestamptz,interval)
    (1190, SETTINGS), // timestamptz_mi_interval(timestamptz,interval)
    (1199, READING | AGE), // age(timestamptz,timestamptz): TimeZone
    (1217, SETTINGS | CLOCK | COARSE), // date_trunc(text,timestamptz)
    (1218, CLEAN | CLOCK | COARSE), // date_trunc(text,interval)
    (1258, CLEAN | CLOCK), // textcat(text,text)
    (1273, CLEAN | CLOCK | COARSE), // date_part(text,timetz)
    (1282, READING), // quote_ident(text): quote_all_identifiers
    (1284, READING | SETTINGS | CLOCK | COARSE), // date_trunc(text,timestamptz,text): TimeZone, timezone_abbreviations
    (1285, OUTPUT), // quote_literal(anyelement)
    (1290, OUTPUT), // quote_nullable(anyelement)
    (1299, ASKING), // now()
    (1305, SETTINGS), // overlaps(timestamptz,interval,timestamptz,interval)
    (1306, SETTINGS), // overlaps(timestamptz,timestamptz,timestamptz,interval)
    (1307, SETTINGS), // overlaps(timestamptz,interval,timestamptz,timestamptz)
    (1313, SETTINGS), // timestamp_out(timestamp)
    (1342, CLEAN | COARSE), // round(float8)
    (1343, CLEAN | COARSE), // trunc(float8)
    (1351, READING), // timetz_out(timetz): DateStyle
    (1385, CLEAN | CLOCK | COARSE), // date_part(text,time)
    (1386, FROM_TODAY), // age(timestamptz)
    (1388, SETTINGS), // timetz(timestamptz)
    (1400, CLEAN | CLOCK), // name(varchar)
    (1401, CLEAN | CLOCK), // varchar(name)
    (1451, READING), // circle_out(circle): extra_float_digits
    (1491, READING), // line_out(line): extra_float_digits
    (1619, SETTINGS), // pg_typeof(any)
    (1703, CLEAN | COARSE), // numeric(numeric,int4)
    (1707, CLEAN | COARSE), // round(numeric,int4)
    (1709, CLEAN | COARSE), // trunc(numeric,int4)
    (1711, CLEAN | COARSE), // ceil(numeric)
    (1712, CLEAN | COARSE), // floor(numeric)
    (1728, CLEAN | COARSE), // mod(numeric,numeric)
    (1729, CLEAN | COARSE), // numeric_mod(numeric,numeric)
    (1768, SETTINGS | CLOCK | COARSE), // to_char(interval,text)
    (1770, SETTINGS | CLOCK | COARSE), // to_char(timestamptz,text)
    (1772, SETTINGS), // to_char(numeric,text)
    (1773, SETTINGS), // to_char(int4,text)
    (1774, SETTINGS), // to_char(int8,text)
    (1775, SETTINGS), // to_char(float4,text)
    (1776, SETTINGS), // to_char(float8,text)
    (1777, SETTINGS), // to_number(text,text)
    (1778, SETTINGS), // to_timestamp(text,text)
    (1780, SETTINGS), // to_date(text,text)
    (1973, CLEAN | COARSE), // div(numeric,numeric)
    (2003, OUTPUT | JOINING), // textanycat(text,anynonarray)
    (2004, OUTPUT | JOINING), // anytextcat(anynonarray,text)
    (2019, SETTINGS), // time(timestamptz)
    (2020, CLEAN | CLOCK | COARSE), // date_trunc(text,timestamp)
    (2021, CLEAN | CLOCK | COARSE), // date_part(text,timestamp)
    (2027, SETTINGS), // timestamp(timestamptz)
    (2028, SETTINGS), // timestamptz(timestamp)
    (2049, SETTINGS | CLOCK | COARSE), // to_char(timestamp,text)
    (2058, CLEAN | AGE), // age(timestamp,timestamp)
    (2059, FROM_TODAY), // age(timestamp)
    (2069, READING | CLOCK), // timezone(text,timestamp): TimeZone, timezone_abbreviations
    (2077, ASKING), // current_setting(text)
    (2167, CLEAN | COARSE), // ceiling(numeric)
    (2291, OUTPUT), // record_out(record)
    (2308, CLEAN | COARSE), // ceil(float8)
    (2309, CLEAN | COARSE), // floor(float8)
    (2320, CLEAN | COARSE), // ceiling(float8)
    (2351, SETTINGS), // date_lt_timestamptz(date,timestamptz)
    (2352, SETTINGS), // date_le_timestamptz(date,timestamptz)
    (2353, SETTINGS), // date_eq_timestamptz(date,timestamptz)
    (2354, SETTINGS), // date_gt_timestamptz(date,timestamptz)
    (2355, SETTINGS), // date_ge_timestamptz(date,timestamptz)
    (2356, SETTINGS), // date_ne_timestamptz(date,timestamptz)
    (2357, SETTINGS), // date_cmp_timestamptz(date,timestamptz)
    (2377, SETTINGS), // timestamptz_lt_date(timestamptz,date)
    (2378, SETTINGS), // timestamptz_le_date(timestamptz,date)
    (2379, SETTINGS), // timestamptz_eq_date(timestamptz,date)
    (2380, SETTINGS), // timestamptz_gt_date(timestamptz,date)
    (2381, SETTINGS), // timestamptz_ge_date(timestamptz,date)
    (2382, SETTINGS), // timestamptz_ne_date(timestamptz,date)
    (2383, SETTINGS), // timestamptz_cmp_date(timestamptz,date)
    (2410, READING), // int2vectorrecv(internal): DateStyle, IntervalStyle, TimeZone
    (2411, READING), // int2vectorsend(int2vector): DateStyle, IntervalStyle, TimeZone
    (2420, READING), // oidvectorrecv(internal): DateStyle, IntervalStyle, TimeZone
    (2421, READING), // oidvectorsend(oidvector): DateStyle, IntervalStyle, TimeZone
    (2476, READING), // timestamptz_recv(internal,oid,int4): TimeZone
    (2520, SETTINGS), // timestamp_lt_timestamptz(timestamp,timestamptz)
    (2521, SETTINGS), // timestamp_le_timestamptz(timestamp,timestamptz)
    (2522, SETTINGS), // timestamp_eq_timestamptz(timestamp,timestamptz)
    (2523, SETTINGS), // timestamp_gt_timestamptz(timestamp,timestamptz)
    (2524, SETTINGS), // timestamp_ge_timestamptz(timestamp,timestamptz)
    (2525, SETTINGS), // timestamp_ne_timestamptz(timestamp,timestamptz)
    (2526, SETTINGS), // timestamp_cmp_timestamptz(timestamp,timestamptz)
    (2527, SETTINGS), // timestamptz_lt_timestamp(timestamptz,timestamp)
    (2528, SETTINGS), // timestamptz_le_timestamp(timestamptz,timestamp)
    (2529, SETTINGS), // timestamptz_eq_timestamp(timestamptz,timestamp)
    (2530, SETTINGS), // timestamptz_gt_timestamp(timestamptz,timestamp)
    (2531, SETTINGS), // timestamptz_ge_timestamp(timestamptz,timestamp)
    (2532, SETTINGS), // timestamptz_ne_timestamp(timestamptz,timestamp)
    (2533, SETTINGS), // timestamptz_cmp_timestamp(timestamptz,timestamp)
    (2549, SETTINGS), // interval_pl_timestamptz(interval,timestamptz)
    (2614, READING), // xmlexists(text,xml): DateStyle, IntervalStyle, TimeZone
    (2647, ASKING), // transaction_timestamp()
    (2648, ASKING), // statement_timestamp()
    (2649, ASKING), // clock_timestamp()
    (2931, READING), // xpath(text,xml,_text): DateStyle, IntervalStyle, TimeZone
    (2932, READING), // xpath(text,xml): DateStyle, IntervalStyle, TimeZone
    (3049, READING), // xpath_exists(text,xml,_text): DateStyle, IntervalStyle, TimeZone
    (3050, READING), // xpath_exists(text,xml): DateStyle, IntervalStyle, TimeZone
    (3058, OUTPUT | GATHERING), // concat(any)
    (3059, OUTPUT | GATHERING), // concat_ws(text,any)
    (3153, OUTPUT), // array_to_json(anyarray)
    (3154, OUTPUT), // array_to_json(anyarray,bool)
    (3155, OUTPUT), // row_to_json(record)
    (3156, OUTPUT), // row_to_json(record,bool)
    (3173, OUTPUT), // json_agg_transfn(internal,anyelement)
    (3175, OUTPUT), // json_agg(anyelement)
    (3176, OUTPUT), // to_json(anyelement)
    (3180, OUTPUT), // json_object_agg_transfn(internal,any,any)
    (3197, OUTPUT), // json_object_agg(any,any)
    (3198, OUTPUT), // json_build_array(any)
    (3199, OUTPUT), // json_build_array()
    (3200, OUTPUT), // json_build_object(any)
    (3201, OUTPUT), // json_build_object()
    (3204, LISTING_COLUMNS), // json_to_record(json)
    (3205, LISTING_COLUMNS), // json_to_recordset(json)
    (3265, OUTPUT), // jsonb_agg_transfn(internal,anyelement)
    (3266, OUTPUT), // jsonb_agg_finalfn(internal)
    (3267, OUTPUT), // jsonb_agg(anyelement)
    (3268, OUTPUT), // jsonb_object_agg_transfn(internal,any,any)
    (3269, OUTPUT), // jsonb_object_agg_finalfn(internal)
    (3270, OUTPUT_THOUGH_IMMUTABLE), // jsonb_object_agg(any,any)
    (3271, OUTPUT), // jsonb_build_array(any)
    (3272, OUTPUT), // jsonb_build_array()
    (3273, OUTPUT), // jsonb_build_object(any)
    (3274, OUTPUT), // jsonb_build_object()
    (3294, ASKING), // current_setting(text,bool)
    (3462, SETTINGS), // make_timestamptz(int4,int4,int4,int4,int4,float8)
    (3463, SETTINGS | CLOCK), // make_timestamptz(int4,int4,int4,int4,int4,float8,text)
    (3490, LISTING_COLUMNS), // jsonb_to_record(jsonb)
    (3491, LISTING_COLUMNS), // jsonb_to_recordset(jsonb)
    (3506, SETTINGS), // enum_in(cstring,oid)
    (3507, SETTINGS), // enum_out(anyenum)
    (3528, SETTINGS), // enum_first(anyenum)
    (3529, SETTINGS), // enum_last(anyenum)
    (3530, SETTINGS), // enum_range(anyenum,anyenum)
    (3531, SETTINGS), // enum_range(anyenum)
    (3539, OUTPUT | GATHERING), // format(text,any)
    (3540, OUTPUT | GATHERING), // format(text)
    (3749, SEARCHING), // to_tsvector(text)
    (3750, SEARCHING), // to_tsquery(text)
    (3751, SEARCHING), // plainto_tsquery(text)
    (3754, SEARCHING), // ts_headline(text,tsquery,text)
    (3755, SEARCHING), // ts_headline(text,tsquery)
    (3760, SEARCHING), // ts_match_tt(text,text)
    (3761, SEARCHING), // ts_match_tq(text,tsquery)
    (3787, OUTPUT), // to_jsonb(anyelement)
    (3811, SETTINGS), // money(int4)
    (3812, SETTINGS), // money(int8)
    (3823, SETTINGS), // numeric(money)
    (3824, SETTINGS), // money(numeric)
    (3835, OUTPUT), // range_out(anyrange)
    (4005, READING), // jsonb_path_exists(jsonb,jsonpath,jsonb,bool): DateStyle, TimeZone, lc_time
    (4006, READING), // jsonb_path_query(jsonb,jsonpath,jsonb,bool): DateStyle, TimeZone, lc_time
    (4007, READING), // jsonb_path_query_array(jsonb,jsonpath,jsonb,bool): DateStyle, TimeZone, lc_time
    (4008, READING), // jsonb_path_query_first(jsonb,jsonpath,jsonb,bool): DateStyle, TimeZone, lc_time
    (4009, READING), // jsonb_path_match(jsonb,jsonpath,jsonb,bool): DateStyle, TimeZone, lc_time
    (4010, READING), // jsonb_path_exists_opr(jsonb,jsonpath): DateStyle, TimeZone, lc_time
    (4011, READING), // jsonb_path_match_opr(jsonb,jsonpath): DateStyle, TimeZone, lc_time
    (4135, SETTINGS), // in_range(timestamptz,timestamptz,interval,bool,bool)
    (4203, SEARCHING), // ts_headline(jsonb,tsquery,text)
    (4204, SEARCHING), // ts_headline(jsonb,tsquery)
    (4207, SEARCHING), // ts_headline(json,tsquery,text)
    (4208, SEARCHING), // ts_headline(json,tsquery)
    (4209, SEARCHING), // to_tsvector(jsonb)
    (4210, SEARCHING), // to_tsvector(json)
    (4213, SEARCHING), // jsonb_to_tsvector(jsonb,jsonb)
    (4215, SEARCHING), // json_to_tsvector(json,jsonb)
    (4232, OUTPUT), // multirange_out(anymultirange)
    (4639, READING), // brin_minmax_multi_summary_out(pg_brin_minmax_multi_summary): extra_float_digits
    (5001, SEARCHING), // phraseto_tsquery(text)
    (5009, SEARCHING), // websearch_to_tsquery(text)
    (5019, READING), // pg_mcv_list_out(pg_mcv_list): bytea_output
    (6177, CLEAN | COARSE), // date_bin(interval,timestamp,timestamp)
    (6178, CLEAN | COARSE), // date_bin(interval,timestamptz,timestamptz)
    (6199, CLEAN | CLOCK | COARSE), // extract(text,date)
    (6200, CLEAN | CLOCK | COARSE), // extract(text,time)
    (6201, CLEAN | CLOCK | COARSE), // extract(text,timetz)
    (6202, CLEAN | CLOCK | COARSE), // extract(text,timestamp)
    (6203, SETTINGS | CLOCK | COARSE), // extract(text,timestamptz)
    (6204, CLEAN | CLOCK | COARSE | MEASURING), // extract(text,interval)
    (6222, READING), // date_add(timestamptz,interval,text): TimeZone, timezone_abbreviations
    (6273, READING), // date_subtract(timestamptz,interval,text): TimeZone, timezone_abbreviations
    (6274, READING), // generate_series(timestamptz,timestamptz,interval,text): TimeZone, timezone_abbreviations
    (6285, OUTPUT), // jsonb_object_agg_strict_transfn(internal,any,any)
    (6286, OUTPUT), // jsonb_object_agg_unique_transfn(internal,any,any)
    (6287, OUTPUT), // jsonb_object_agg_unique_strict_transfn(internal,any,any)
    (6288, OUTPUT_THOUGH_IMMUTABLE), // jsonb_object_agg_strict(any,any)
    (6289, OUTPUT_THOUGH_IMMUTABLE), // jsonb_object_agg_unique(any,any)
    (6290, OUTPUT_THOUGH_IMMUTABLE), // jsonb_object_agg_unique_strict(any,any)
    (6295, READING), // array_agg_deserialize(bytea,internal): client_encoding
];
