//! The clock in the key: queries that ask for the time, but whose answers change with it by the minute at most.
//!
//! A *clock leaf* asks for the time (`now()`, CURRENT_DATE). A *clock expression* is a largest part of a query that is
//! made of clock leaves, constants, parameters, and functions that are known to fit (`function_table`). Whatever else
//! the query asks, its answer is a function of the rows and of the values of its clock expressions: equal values and
//! equal rows give the same answer. So the values go into the key, and the time itself does not.
//!
//! That is of use only if the values stay the same for a while. Therefore each clock leaf has to lie below something
//! that may be *coarse*: `date_trunc`, a cast to date, a comparison, and so on. Whether it is, the values tell. Or the
//! expression is compared with a column of a table: then its value is a *cut*, which is not in the key. What the
//! comparison splits off stays the same as long as the cut lies between the same two values of the column, the *gap*.
//! The gaps are stored with the answer (`cuts`).
//!
//! A query's clock expressions are found when it is identified or checked (`expression`, `noted`). Its plan carries
//! copies of them (`carried`), which the server's executor computes when the answer is looked up (`evaluation`).

mod carried;
mod column_comparisons;
mod conditions;
mod cuts;
mod evaluation;
mod expression;
mod gaps;
mod leaf;
mod lengths;
mod noted;
mod origin;
mod time_operators;
mod types;

pub use carried::{ClockTrees, executable};
pub use column_comparisons::Comparison;
pub use cuts::Cuts;
pub use evaluation::{Clock, Value, times, value_of};
pub use expression::closed;
pub use gaps::{Allowed, NotSought, gaps};
pub use leaf::{Leaf, asks_for_time, is_time};
pub use noted::ClockExpressions;
pub use origin::EXTREMES;
pub use types::{has_dates, is_compared, is_known, reads_time};
