//! The templates that this backend keeps (`serve::Template`): plans that serve a hit without planning, each under a form and the facts
//! of the plan that it was made from.
//!
//! A fixed table of this backend; no other process sees it. A template holds for the versions of the definitions under which it was
//! made. One that is forgotten is made again from the next hit.

use std::cell::RefCell;
use std::rc::Rc;

use super::forms;
use crate::pg::backend_local::Local;
use crate::query::Versions;
use crate::query::hashes::{FactsHash, FormId};
use crate::serve::Template;

/// Templates kept. With the size of a template (`serve::Template`) it bounds what a backend keeps: 9 MB.
const PLACES: usize = 256;
/// Templates stand in rows of this many, which share the places for their hashes.
const WAYS: usize = 4;
const ROWS: usize = PLACES / WAYS;

/// A template, and which plans are like the one that it was made from.
struct Kept {
    form: FormId,
    versions: Versions,
    /// Their facts (`query::plan_facts`).
    facts: FactsHash,
    template: Rc<Template>,
}

impl Kept {
    fn is_for(&self, form: FormId, facts: FactsHash) -> bool {
        self.form == form && self.facts == facts
    }
}

static TEMPLATES: Local<RefCell<Vec<[Option<Kept>; WAYS]>>> = Local::new(RefCell::new(Vec::new()));
/// Templates that others have taken the place of. A placeholder may still point into one of them, until the next statement of a client
/// is planned.
static RETIRED: Local<RefCell<Vec<Rc<Template>>>> = Local::new(RefCell::new(Vec::new()));

/// Where templates with these facts may be.
fn row_of(form: FormId, facts: FactsHash) -> usize {
    (form.0 ^ facts.0.hi) as usize % ROWS
}

/// The template for plans with these facts of a form.
pub fn find(form: FormId, versions: Versions, facts: FactsHash) -> Option<Rc<Template>> {
    TEMPLATES.with_borrow(|templates| {
        let row = templates.get(row_of(form, facts))?;
        let fitting = row.iter().flatten().find(|kept| kept.is_for(form, facts) && kept.versions == versions)?;
        Some(Rc::clone(&fitting.template))
    })
}

/// Keeps a template: in the place of one for the same plans, else of one that is no longer of use, else of the one that was kept first.
pub fn keep(form: FormId, versions: Versions, facts: FactsHash, template: Rc<Template>) {
    let before = TEMPLATES.with_borrow_mut(|templates| {
        if templates.is_empty() {
            templates.resize_with(ROWS, || [const { None }; WAYS]);
        }
        let row = &mut templates[row_of(form, facts)];
        let same = row.iter().position(|kept| kept.as_ref().is_some_and(|kept| kept.is_for(form, facts)));
        let free = || row.iter().position(|kept| kept.as_ref().is_none_or(|kept| kept.versions != versions));
        let chosen = same.or_else(free).unwrap_or(0);
        // The first of a row is the one that was kept first.
        row[chosen..].rotate_left(1);
        row[WAYS - 1].replace(Kept { form, versions, facts, template })
    });
    RETIRED.with_borrow_mut(|retired| retired.extend(before.map(|kept| kept.template)));
    forms::note_templates(form);
}

/// Frees the templates that are no longer used. To be called where no placeholder is: when a client's statement is planned.
pub fn free_retired() {
    RETIRED.take();
}
