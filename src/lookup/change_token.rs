//! What an answer would rest on if it were computed now, as a text, without computing it. Equal texts stand for the
//! same answer (docs/architecture/exactness-moments.md, Change tokens). Reads shared memory; keeps nothing.

use arrow_cache_core::{HashBuffer, Issuer, Reason};

use super::find::scans_of_answer;
use super::gaps;
use super::question::Question;
use super::rules;
use super::statement::{Statement, describe};
use crate::pg::{allocator, backend, encoding};
use crate::query::trusted_extensions::is_trusted_type;
use crate::query::types::is_foreign;
use crate::query::{Cacheable, Versions, relations};
use crate::shmem::SharedStore;

/// The versions of the definitions at this moment, and the catalogs at least as new as these. To be asked before a
/// query is parsed.
pub fn definitions(store: &SharedStore) -> Versions {
    let versions = rules::definitions(store);
    // SAFETY: called inside a transaction.
    unsafe { kept!(pg_sys::AcceptInvalidationMessages()) };
    versions
}

/// Who makes the tokens of this session.
pub fn issuer(store: &SharedStore) -> Issuer {
    Issuer { seed: store.seed(), start: backend::server_start(), database: backend::database() }
}

/// The token of a question under its snapshot. `parsed_under` is what `definitions` told before its query was parsed.
///
/// # Errors
/// The reason for which nothing can be promised.
pub fn change_token(store: &SharedStore, question: &Question<'_>, parsed_under: Versions) -> Result<Vec<u8>, Reason> {
    if allocator::is_short() {
        return Err(Reason::OutOfMemory);
    }
    // Whoever keeps a token has no `ttl` that bounds how long a change which nobody has told stays unseen.
    if relations::reads_trusted(question.plan) {
        return Err(Reason::ForeignTable);
    }
    let Statement { cacheable, key, relations, snapshot, columns, clock, cuts, .. } = describe(store, question)?;
    let Cacheable { traits, planned, .. } = cacheable;
    // The rows of an answer in the cache are printed when it is served, by the catalogs of that moment. Who keeps a
    // token has the text: the name of a relation, for a value of type regclass, which may have another name by now.
    let is_printed_alike = |type_oid| !is_foreign(type_oid) || is_trusted_type(type_oid);
    if !columns.iter().all(|column| is_printed_alike(column.type_oid)) {
        return Err(Reason::StableFunction);
    }
    // Nobody has checked whether the user may read what the bodies of functions read: that is done when they run.
    if traits.calls_declared {
        return Err(Reason::UserDefinedFunction);
    }
    let scans = scans_of_answer(question.plan, question.params, &traits, &cuts);
    let dependencies = rules::dependencies(store, &relations, &traits, &snapshot, scans.as_deref())?;
    // What was parsed and planned meant the same when the versions were read, and nobody was changing it.
    if !rules::are_settled() || planned.versions != parsed_under || rules::definitions(store) != parsed_under {
        return Err(Reason::DdlInProgress);
    }
    let gaps = if cuts.is_none() { Vec::new() } else { gaps::find(question, &clock, &cuts)? };
    let mut answer = HashBuffer::new();
    answer.seed(store.seed());
    answer.hash(key.0);
    answer.part(&gaps);
    // In other encodings of the client the same answer has other bytes.
    answer.u32(encoding::of_client() as u32);
    if !answer.is_complete() {
        return Err(Reason::OutOfMemory);
    }
    let asks_for_time = !clock.trees.is_none();
    issuer(store).token(answer.finish(), asks_for_time, &dependencies).ok_or(Reason::OutOfMemory)
}
