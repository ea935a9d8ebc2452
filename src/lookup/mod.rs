//! The lookup: from a started statement to its hit or miss, or to the reason why it is bypassed.
//!
//! The walk of a statement, and where each step is:
//!
//! 1. Its query is planned (`planning`, `call`): is it eligible? The verdict is attached to the plan (`verdict`). What
//!    was found out is remembered for queries of the same form (`forms`).
//! 2. If its answer seems to be stored, a placeholder takes the place of the plan, and nothing is planned
//!    (`placeholder`).
//! 3. The plan starts (`start`). It is looked up if it is the client's own statement (`portal`), and worth a lookup
//!    (`quick_statements`, by the `price` of one). What is bypassed may be timed nevertheless (`timing`).
//! 4. The answer is looked up (`find`): what is asked (`question`, `statement`), and whether the stored answer may be
//!    given now.
//! 5. A hit is served. A miss is executed, and its answer stored if it may be, and if it is worth that (`admission`).
//!    Whatever came of it is counted and logged (`outcome`).
//!
//! Whether an answer may be given or stored is asked of `rules`, by all ways to an answer.
//!
//! `gaps` finds out between which rows a time lies, for an answer that is about to be stored.
//!
//! `single_flight` lets one of those who miss the same answer compute it, while the others wait (`held_claims`,
//! `waited`).
//!
//! `observation` looks at the queries that functions run below a miss, if they are declared pure. `change_token` says
//! what an answer rests on without looking it up.
//!
//! State of this backend only (`forms`, `held_claims`, `price`, `quick_statements`, `single_flight`, `waited`); what is
//! shared is read through `shmem`.

pub mod admission;
mod call;
mod change_token;
pub mod clock_free;
mod find;
mod fingerprint;
mod forms;
mod gaps;
mod held_claims;
pub mod observation;
mod outcome;
mod placeholder;
mod planning;
pub mod portal;
mod price;
mod question;
pub mod quick_statements;
mod rules;
pub mod single_flight;
pub mod staleness;
mod start;
mod statement;
pub mod stored_parts;
pub mod timing;
mod unclear_hints;
mod value_rules;
mod verdict;
mod waited;

pub use call::Call;
pub use change_token::{change_token, definitions, issuer};
pub use find::{Lateness, find};
pub use gaps::not_sought;
pub use outcome::{Found, Guarantees, Miss, Missed};
pub use placeholder::{Pending, is_answered, pending, serve_pending};
pub use planning::{Planning, before_planning, concerns, may_be_kept};
pub use question::Question;
pub use rules::{definitions as definition_versions, have_changed, snapshot};
pub use start::{Task, at_start, pass_at_once, scrolls, skip};
pub use statement::may_depend_on_time;
pub use value_rules::Probed;
pub use verdict::{Eligible, after_planning, leave_unchecked, refuse};
