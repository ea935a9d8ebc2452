//! What this backend knows of the forms of queries (`query::identity`), so that a statement that comes again, with
//! whatever constants, is not checked again: why queries of this form are not cached, or which traits they have. And
//! which columns their last hit had, so that the catalogs need not be asked about these.
//!
//! A fixed table of this backend; no other process sees it. What it knows holds for the versions of the definitions
//! under which it was found out, and is dropped when they have moved. A form that is forgotten is only checked once
//! more.

use std::cell::RefCell;
use std::rc::Rc;

use arrow_cache_core::Reason;

use super::rules;
use crate::arrow::column::Column;
use crate::pg::backend_local::Local;
use crate::query::Versions;
use crate::query::eligibility::QueryTraits;
use crate::query::hashes::{FormHash, FormId};

/// Forms remembered. A power of two.
const PLACES: usize = 256;

/// What was found out about a form by checking a query of it.
#[derive(Clone, Copy, Debug)]
pub enum Finding {
    /// No query of this form is cached.
    Refused(Reason),
    /// They may be cached, as far as the query itself goes. What its plan reads is asked of each plan.
    Eligible(QueryTraits),
}

struct KnownForm {
    form: FormHash,
    versions: Versions,
    finding: Finding,
    /// The columns of the last hit of a query of the form. Constants may decide on their types.
    columns: Option<Rc<[Column]>>,
}

static FORMS: Local<RefCell<Vec<Option<KnownForm>>>> = Local::new(RefCell::new(Vec::new()));

fn place(form: FormId) -> usize {
    form.0 as usize % PLACES
}

/// What is known of a form under these versions of the definitions.
pub fn finding(form: FormHash, versions: Versions) -> Option<Finding> {
    FORMS.with_borrow(|forms| current(forms, form, versions).map(|form| form.finding))
}

fn current(forms: &[Option<KnownForm>], form: FormHash, versions: Versions) -> Option<&KnownForm> {
    let known = forms.get(place(form.id()))?.as_ref()?;
    (known.form == form && known.versions == versions).then_some(known)
}

/// Remembers what was found out about a form under these versions. Not while somebody is changing definitions: it may
/// be what was true before. Nor in a transaction that has changed some itself: it may be rolled back.
pub fn remember(form: FormHash, versions: Versions, finding: Finding) {
    if !rules::are_settled() || rules::check_own_writes(&[]).is_err() {
        return;
    }
    FORMS.with_borrow_mut(|forms| {
        if current(forms, form, versions).is_some() {
            return;
        }
        if forms.is_empty() {
            forms.resize_with(PLACES, || None);
        }
        forms[place(form.id())] = Some(KnownForm { form, versions, finding, columns: None });
    });
}

/// The columns of the last hit of a query of this form under these versions.
pub fn columns(form: FormId, versions: Versions) -> Option<Rc<[Column]>> {
    FORMS.with_borrow(|forms| {
        let known = forms.get(place(form))?.as_ref()?;
        (known.form.id() == form && known.versions == versions).then(|| known.columns.clone())?
    })
}

/// Notes the columns of a hit of a query of this form, if queries of it are known to be eligible under these versions.
pub fn note_columns(form: FormId, versions: Versions, columns: &Rc<[Column]>) {
    FORMS.with_borrow_mut(|forms| {
        if let Some(Some(known)) = forms.get_mut(place(form))
            && known.form.id() == form
            && known.versions == versions
            && matches!(known.finding, Finding::Eligible(_))
        {
            known.columns = Some(Rc::clone(columns));
        }
    });
}
