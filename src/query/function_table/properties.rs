//! What a function can be known for. Each property is a bit.

// Found in the server's code by scripts/functions/audit.py. All others are given by hand.

/// Marked IMMUTABLE, and depends on its arguments alone, and on definitions whose change outdates results, in each
/// version that has it.
pub const CLEAN: u32 = 1;
/// Marked IMMUTABLE, and reads settings in the key and nothing else. The row names them.
pub const READING: u32 = 1 << 1;

// Functions that a query may call though they are not marked IMMUTABLE. The audit checks that they read no more. Left
// out on purpose: everything that asks for the current time (`timetz(time)` and `timezone(text, timetz)` among them);
// the input functions of date and time types (`'today'` is a legal input; `eligibility::coercions` has an exception for
// dates); and what reads containers and rows, whose parts may be of any type (`eligibility::readings` looks at them).

/// STABLE, and reads settings in the key and nothing else.
pub const SETTINGS: u32 = 1 << 3;
/// STABLE, and reads the text search configuration that `default_text_search_config` names, and nothing else.
pub const SEARCHING: u32 = 1 << 4;
/// STABLE, and calls the output functions of its arguments' types, or converts these to JSON, by a cast if a user has
/// defined one.
pub const OUTPUT: u32 = 1 << 5;
/// Does the same, and is marked IMMUTABLE all the same.
pub const OUTPUT_THOUGH_IMMUTABLE: u32 = 1 << 7;

/// Asks for the time, the user or a setting. Where such a function is refused, that is the reason (`checking`).
pub const ASKING: u32 = 1 << 2;
/// `age` with one argument, which counts from the present date: CURRENT_DATE is in its body.
pub const FROM_TODAY: u32 = 1 << 21;
/// Makes rows out of JSON whose columns the query lists.
pub const LISTING_COLUMNS: u32 = 1 << 9;

// Functions in clock expressions (`clock::expression`). Those that have no other types than dates, times, numbers and
// booleans are known by that, and change in steps if they give dates, integers or booleans.

/// Takes or gives texts, and does nothing but compute. An ERROR of it may be dropped: it holds nothing when it raises.
pub const CLOCK: u32 = 1 << 15;
/// Changes in steps, by its other arguments perhaps, while the time that it is asked about goes on.
pub const COARSE: u32 = 1 << 16;
/// Makes a text of any number of values of any type.
pub const GATHERING: u32 = 1 << 17;
/// Joins a text and the output of a value. It is written in SQL.
pub const JOINING: u32 = 1 << 18;
/// Takes a number from an interval (`clock::lengths`).
pub const MEASURING: u32 = 1 << 19;
/// `age` with two arguments, of which the first one may be the clock.
pub const AGE: u32 = 1 << 20;
