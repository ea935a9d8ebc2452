//! What this backend knows of the forms of queries (`query::identity`), so that a statement that comes again, with whatever
//! constants, is not judged again: why its like are not cached, what they mean, and a plan that serves a hit without planning
//! (`serve::Template`). And which statements are too quick to be worth a look, by the shapes of their texts.
//!
//! A fixed table of this backend; no other process sees it. What it knows holds for the versions of the definitions under
//! which it was found out, and is dropped when they have moved. A form that is forgotten is only judged once more.

use std::cell::RefCell;
use std::rc::Rc;

use arrow_cache_core::Reason;

use crate::pg::backend;
use crate::pg::backend_local::Local;
use crate::query::Versions;
use crate::query::eligibility::QueryTraits;
use crate::query::hashes::{FactsHash, FormHash, FormId};
use crate::serve::Template;
use crate::{session, settings};

/// Forms remembered, and templates. A power of two. With the size of a template (`serve::Template`) it bounds what a backend keeps: 8 MB.
const PLACES: usize = 256;
/// Templates stand in rows of so many, which share the places for their hashes.
const TEMPLATE_WAYS: usize = 4;
const TEMPLATE_ROWS: usize = PLACES / TEMPLATE_WAYS;
/// Executions in a row that were too quick to be stored, after which the next ones are not looked at.
const QUICK_RUNS: u8 = 16;
/// Of those every so many-th is looked at all the same: another session may have stored an answer.
const LOOK_EVERY: u8 = 64;

/// What was found out about a form by judging it.
#[derive(Clone, Copy, Debug)]
pub enum Finding {
    /// None of its like is cached.
    Refused(Reason),
    /// They may be cached, as far as the query itself goes. What its plan reads is asked of each plan.
    Meant(QueryTraits),
}

struct KnownForm {
    form: FormHash,
    versions: Versions,
    finding: Finding,
    /// A template was kept for the form. It may be forgotten by now.
    has_templates: bool,
}

/// A template, and which plans are like the one that it was made from.
struct Kept {
    form: FormId,
    versions: Versions,
    /// Their facts (`query::plan_facts`).
    facts: FactsHash,
    template: Rc<Template>,
}

/// How quick the executions of statements of one shape are: of a text (`core::text_shape`), or of a prepared plan's form.
#[derive(Clone, Copy)]
struct Speed {
    /// The shape: a hash, or the lower half of the form's key.
    shape: u64,
    /// The setting `min_execution_time` that the executions were compared with, as bits.
    threshold: u64,
    /// The last so many executions were too quick.
    quick_runs: u8,
    /// So many executions were not looked at since the last that was.
    unseen: u8,
    /// Some executions are not that quick, or are answered from the cache: all are looked at.
    mixed: bool,
}

const UNKNOWN: Speed = Speed { shape: 0, threshold: 0, quick_runs: 0, unseen: 0, mixed: false };

/// Templates that others have taken the place of. A placeholder may still point into one of them: no longer so once the next
/// statement of a client is planned.
static RETIRED: Local<RefCell<Vec<Rc<Template>>>> = Local::new(RefCell::new(Vec::new()));
static FORMS: Local<RefCell<Vec<Option<KnownForm>>>> = Local::new(RefCell::new(Vec::new()));
static TEMPLATES: Local<RefCell<Vec<[Option<Kept>; TEMPLATE_WAYS]>>> = Local::new(RefCell::new(Vec::new()));
static SPEEDS: Local<RefCell<[Speed; PLACES]>> = Local::new(RefCell::new([UNKNOWN; PLACES]));

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

/// Remembers what was found out about a form under these versions.
pub fn remember(form: FormHash, versions: Versions, finding: Finding) {
    FORMS.with_borrow_mut(|forms| {
        if current(forms, form, versions).is_some() {
            return;
        }
        if forms.is_empty() {
            forms.resize_with(PLACES, || None);
        }
        forms[place(form.id())] = Some(KnownForm { form, versions, finding, has_templates: false });
    });
}

/// Frees the templates that are no longer used. To be called where no placeholder is: when a client's statement is planned.
pub fn free_retired() {
    RETIRED.take();
}

/// May there be a template for some query of this form?
pub fn has_templates(form: FormHash, versions: Versions) -> bool {
    FORMS.with_borrow(|forms| current(forms, form, versions).is_some_and(|form| form.has_templates))
}

/// The template for plans with these facts of a form.
pub fn template(form: FormId, versions: Versions, facts: FactsHash) -> Option<Rc<Template>> {
    TEMPLATES.with_borrow(|templates| {
        let row = templates.get(row_of(form, facts))?;
        let fitting = row.iter().flatten().find(|kept| kept.is_for(form, facts) && kept.versions == versions)?;
        Some(Rc::clone(&fitting.template))
    })
}

impl Kept {
    fn is_for(&self, form: FormId, facts: FactsHash) -> bool {
        self.form == form && self.facts == facts
    }
}

/// Where templates with these facts may be.
fn row_of(form: FormId, facts: FactsHash) -> usize {
    (form.0 ^ facts.0.hi) as usize % TEMPLATE_ROWS
}

/// Is a template for a query of this form worth keeping? So it is if what the form means is known.
pub fn wants_template(form: FormId, versions: Versions) -> bool {
    FORMS.with_borrow(|forms| {
        forms.get(place(form)).and_then(Option::as_ref).is_some_and(|known| {
            known.form.id() == form && known.versions == versions && !matches!(known.finding, Finding::Refused(_))
        })
    })
}

/// Keeps a template: in the place of one for the same plans, else of one that is no longer of use, else of the one that was kept first.
pub fn keep_template(form: FormId, versions: Versions, facts: FactsHash, template: Rc<Template>) {
    let before = TEMPLATES.with_borrow_mut(|templates| {
        if templates.is_empty() {
            templates.resize_with(TEMPLATE_ROWS, || [const { None }; TEMPLATE_WAYS]);
        }
        let row = &mut templates[row_of(form, facts)];
        let same = row.iter().position(|kept| kept.as_ref().is_some_and(|kept| kept.is_for(form, facts)));
        let free = || row.iter().position(|kept| kept.as_ref().is_none_or(|kept| kept.versions != versions));
        let chosen = same.or_else(free).unwrap_or(0);
        // The first of a row is the one that was kept first.
        row[chosen..].rotate_left(1);
        row[TEMPLATE_WAYS - 1].replace(Kept { form, versions, facts, template })
    });
    RETIRED.with_borrow_mut(|retired| retired.extend(before.map(|kept| kept.template)));
    note_templates(form);
}

/// Notes that there are templates for queries of this form.
pub fn note_templates(form: FormId) {
    FORMS.with_borrow_mut(|forms| {
        if let Some(Some(known)) = forms.get_mut(place(form))
            && known.form.id() == form
        {
            known.has_templates = true;
        }
    });
}

fn threshold() -> u64 {
    settings::min_execution_time_ms().to_bits()
}

/// Notes how an execution of a statement of this shape went.
pub fn note_speed(shape: u64, too_quick: bool) {
    let threshold = threshold();
    SPEEDS.with_borrow_mut(|speeds| {
        let speed = &mut speeds[shape as usize % PLACES];
        if speed.shape != shape || speed.threshold != threshold {
            *speed = Speed { shape, threshold, ..UNKNOWN };
        }
        if too_quick {
            speed.quick_runs = speed.quick_runs.saturating_add(1);
        } else {
            speed.quick_runs = 0;
            speed.mixed = true;
        }
    });
}

/// Notes how the statement went that `session::time_run` was told of, if its run has just ended. Its time is taken from the message
/// that asked for it, so it is rather too long than too short: then the next one like it is looked at.
pub fn note_timed() {
    if let Some(shape) = session::take_timed() {
        let micros = backend::now() - backend::statement_start();
        note_speed(shape, (micros as f64) < settings::min_execution_time_ms() * 1000.0);
    }
}

/// Is the next execution of a statement of this shape too quick to be worth a look, by all that is known?
pub fn is_quick(shape: u64) -> bool {
    if settings::min_execution_time_ms() == 0.0 || settings::debug_serve_fills() {
        return false;
    }
    SPEEDS.with_borrow_mut(|speeds| {
        let speed = &mut speeds[shape as usize % PLACES];
        if speed.shape != shape || speed.mixed || speed.quick_runs < QUICK_RUNS || speed.threshold != threshold() {
            return false;
        }
        speed.unseen += 1;
        if speed.unseen == LOOK_EVERY {
            speed.unseen = 0;
        }
        speed.unseen != 0
    })
}
