//! The identity of a rewritten query tree: two hashes, from one walk that looks nothing up.
//!
//! The *form* is all of the tree but the values of its constants. What `eligibility` judges follows from the form and the
//! definitions in the catalogs; a query that reads a setting by a constant name is the one exception, and counts as a form of
//! its own. So what was found out about one query holds for all others of its form, until a definition changes (`known`).
//! What its plan reads does not follow from the form: constants decide which parts the planner drops (`plan_facts`).
//!
//! The *tree* has the values as well, but neither permissions nor where columns come from: it is what name resolution made of the
//! text, and goes into the key. The text is in
//! the key, too, so the tree need only tell what the same text could come to mean another time. That is also why a parse
//! that raced with DDL does no harm: relations and views are protected by their locks, and whatever else a stale catalog
//! could have resolved differently (functions, operators, collations, types, constants, numbers and names of attributes)
//! gives another hash, so the answer is filed under the question that was really asked.

mod rare;

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};

use arrow_cache_core::{KeyBuffer, Reason};
use pgrx::pg_sys::{self, NodeTag};

use super::hashes::{FormHash, TreeHash};
use super::parameters;
use crate::pg::backend_local::Local;
use crate::pg::compat::tree;
use crate::pg::compat::tree::walkers;
use crate::pg::error_passing::direct;
use crate::pg::lists::{integers, nodes, oids};

/// What a query is, apart from its text.
#[derive(Debug)]
pub struct Identity {
    /// All but the values of constants.
    pub form: FormHash,
    /// What the tree is made of, and how much of it.
    shared: KeyBuffer,
    length: usize,
    constants: KeyBuffer,
    frame: KeyBuffer,
}

/// current_setting(text) and current_setting(text, boolean).
pub const CURRENT_SETTING: &[u32] = &[2077, 3294];

/// Stands for a node that is not there, and for the end of a node's parts.
const NOTHING: u32 = 0;
const END: u32 = u32::MAX;

struct Walk {
    form: KeyBuffer,
    /// Values of constants: in the tree alone.
    constants: KeyBuffer,
    /// Permissions, names and origins of columns: in the form alone.
    frame: KeyBuffer,
    /// What is judged depends on constants.
    reads_constants: bool,
    too_deep: bool,
    /// Address of a local of `of`, to see how much stack the walk has used, and how much it may.
    stack_base: usize,
    stack_limit: usize,
}

/// Memory of the last walk, for the next one. Taken while it is in use.
static BUFFERS: Local<Cell<[KeyBuffer; 3]>> = Local::new(Cell::new([const { KeyBuffer::new() }; 3]));
/// What is kept of it at most, in bytes.
const KEPT: usize = 64 * 1024;

/// The identity of a query, under a secret.
///
/// # Errors
/// `TooComplex` for one that nests too deeply to be looked at, `OutOfMemory` for one that there is no memory for.
///
/// # Safety
/// `query` must be a valid rewritten query tree.
pub unsafe fn of(query: *mut pg_sys::Query, seed: u64) -> Result<Identity, Reason> {
    let here = 0u8;
    let [mut form, mut constants, mut frame] = BUFFERS.take();
    form.clear();
    form.u64(seed);
    constants.clear();
    frame.clear();
    let mut walk = Walk {
        form,
        constants,
        frame,
        reads_constants: false,
        too_deep: false,
        stack_base: (&raw const here) as usize,
        // SAFETY: a plain global of the backend, in kilobytes. The server's own check would raise at this depth; the
        // walk must not, and leaves most of the stack to the planner, which needs less per level.
        stack_limit: unsafe { pg_sys::max_stack_depth } as usize * 1024 / 4,
    };
    // SAFETY: as the caller promises.
    unsafe { walk.node(query.cast()) };
    let Walk { form: mut shared, constants, mut frame, reads_constants, too_deep, .. } = walk;
    let length = shared.len();
    frame.u8(u8::from(reads_constants));
    if reads_constants {
        frame.append(&constants);
    }
    shared.append(&frame);
    let form = FormHash(shared.finish());
    if too_deep {
        return Err(Reason::TooComplex);
    }
    if !shared.is_complete() || !constants.is_complete() {
        return Err(Reason::OutOfMemory);
    }
    Ok(Identity { form, shared, length, constants, frame })
}

impl Identity {
    /// All, values of constants included.
    pub fn tree(&mut self) -> TreeHash {
        self.shared.truncate(self.length);
        self.shared.append(&self.constants);
        TreeHash(self.shared.finish())
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        let buffers = [&mut self.shared, &mut self.constants, &mut self.frame].map(std::mem::take);
        if buffers.iter().all(|buffer| buffer.len() <= KEPT) {
            BUFFERS.set(buffers);
        }
    }
}

/// Called by the server's walkers for each part of a node that they take apart.
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, walk: *mut c_void) -> bool {
    // SAFETY: the context is the Walk of `of`, lent to nobody else while the walker calls.
    unsafe { (*walk.cast::<Walk>()).node(node) }
}

fn bits(flags: &[bool]) -> u32 {
    flags.iter().fold(0, |bits, flag| bits << 1 | u32::from(*flag))
}

/// # Safety
/// `text` must be null or NUL-terminated.
unsafe fn add_text(key: &mut KeyBuffer, text: *const c_char) {
    if text.is_null() {
        key.u32(NOTHING);
    } else {
        // SAFETY: as the caller promises.
        key.part(unsafe { CStr::from_ptr(text) }.to_bytes());
    }
}

impl Walk {
    /// Adds a node and all below it. True stops the walk.
    ///
    /// # Safety
    /// `node` must be null or a valid node of a query tree.
    unsafe fn node(&mut self, node: *mut pg_sys::Node) -> bool {
        let here = 0u8;
        if node.is_null() {
            self.form.u32(NOTHING);
            return false;
        }
        if self.stack_base.abs_diff((&raw const here) as usize) > self.stack_limit {
            self.too_deep = true;
            return true;
        }
        // SAFETY: as the caller promises; each cast follows the node's tag.
        unsafe {
            let tag = (*node).type_;
            self.form.u32(tag as u32);
            match tag {
                NodeTag::T_List => {
                    let items = nodes::<pg_sys::Node>(node.cast());
                    self.form.u32(items.len() as u32);
                    for item in items {
                        if self.node(item) {
                            return true;
                        }
                    }
                    false
                }
                NodeTag::T_Var => {
                    self.var(&*node.cast());
                    false
                }
                NodeTag::T_Const => {
                    self.constant(&*node.cast());
                    false
                }
                NodeTag::T_RangeTblRef => {
                    self.form.u32((*node.cast::<pg_sys::RangeTblRef>()).rtindex as u32);
                    false
                }
                NodeTag::T_TargetEntry => self.target(&*node.cast()),
                NodeTag::T_FromExpr => {
                    let from = &*node.cast::<pg_sys::FromExpr>();
                    self.node(from.fromlist.cast()) || self.node(from.quals)
                }
                NodeTag::T_OpExpr | NodeTag::T_DistinctExpr | NodeTag::T_NullIfExpr => {
                    let operator = &*node.cast::<pg_sys::OpExpr>();
                    self.oids([operator.opno, operator.opresulttype, operator.opcollid, operator.inputcollid]);
                    self.node(operator.args.cast())
                }
                NodeTag::T_FuncExpr => {
                    let call = &*node.cast::<pg_sys::FuncExpr>();
                    self.reads_constants |= CURRENT_SETTING.contains(&call.funcid.to_u32());
                    self.oids([call.funcid, call.funcresulttype, call.funccollid, call.inputcollid]);
                    self.form.u32(u32::from(call.funcretset) | u32::from(call.funcvariadic) << 1);
                    // The modifier of a length coercion is one of its arguments, a constant.
                    self.form.u32(walkers::exprTypmod(node).cast_unsigned());
                    self.node(call.args.cast())
                }
                NodeTag::T_BoolExpr => {
                    let expression = &*node.cast::<pg_sys::BoolExpr>();
                    self.form.u32(expression.boolop);
                    self.node(expression.args.cast())
                }
                NodeTag::T_SortGroupClause => {
                    let clause = &*node.cast::<pg_sys::SortGroupClause>();
                    self.form.u32(clause.tleSortGroupRef);
                    self.oids([clause.eqop, clause.sortop]);
                    self.form.u32(u32::from(clause.nulls_first) | u32::from(clause.hashable) << 1);
                    false
                }
                NodeTag::T_RangeTblEntry => {
                    // The walker of the query descends into it by itself, right after this.
                    self.range_table_entry(&*node.cast());
                    false
                }
                NodeTag::T_Query => self.query(node.cast()),
                _ => self.other(node),
            }
        }
    }

    fn oids<const N: usize>(&mut self, oids: [pg_sys::Oid; N]) {
        self.form.words(oids.map(pg_sys::Oid::to_u32));
    }

    /// # Safety
    /// The lists must be NIL or valid.
    unsafe fn lengths<const N: usize>(&mut self, lists: [*mut pg_sys::List; N]) {
        // SAFETY: as the caller promises.
        self.form.words(lists.map(|list| unsafe { list.as_ref() }.map_or(0, |list| list.length as u32)));
    }

    /// # Safety
    /// `text` must be null or NUL-terminated.
    unsafe fn text(&mut self, text: *const c_char) {
        // SAFETY: as the caller promises.
        unsafe { add_text(&mut self.form, text) };
    }

    /// # Safety
    /// `list` must be NIL or a list of strings.
    unsafe fn names(&mut self, list: *const pg_sys::List) {
        // SAFETY: as the caller promises.
        unsafe {
            let names = nodes::<pg_sys::String>(list);
            self.form.u32(names.len() as u32);
            for name in names {
                self.text((*name).sval);
            }
        }
    }

    fn var(&mut self, var: &pg_sys::Var) {
        self.form.words([
            var.varno as u32,
            var.varattno as u32,
            var.varlevelsup,
            var.vartypmod.cast_unsigned(),
            var.vartype.to_u32(),
            var.varcollid.to_u32(),
        ]);
    }

    /// `'today'::date` is a constant too, and another one each day.
    ///
    /// # Safety
    /// `constant` must be valid.
    unsafe fn constant(&mut self, constant: &pg_sys::Const) {
        self.form.words([
            constant.consttype.to_u32(),
            constant.constcollid.to_u32(),
            constant.consttypmod.cast_unsigned(),
            u32::from(constant.constisnull),
        ]);
        if !constant.constisnull {
            // SAFETY: a non-null constant holds a value of its declared length and passing.
            unsafe {
                let length = constant.constlen as i16;
                parameters::add_datum(&mut self.constants, constant.constvalue, constant.constbyval, length);
            }
        }
    }

    /// # Safety
    /// `target` must be valid.
    unsafe fn target(&mut self, target: &pg_sys::TargetEntry) -> bool {
        self.form.words([target.resno as u32, target.ressortgroupref, u32::from(target.resjunk)]);
        self.frame.words([target.resorigtbl.to_u32(), target.resorigcol as u32]);
        // SAFETY: as the caller promises.
        unsafe {
            add_text(&mut self.frame, target.resname);
            self.type_of(target.expr.cast());
            self.node(target.expr.cast())
        }
    }

    /// # Safety
    /// `expression` must be a valid expression.
    unsafe fn type_of(&mut self, expression: *const pg_sys::Node) {
        // SAFETY: as the caller promises.
        unsafe {
            self.form.words([
                walkers::exprType(expression).to_u32(),
                walkers::exprCollation(expression).to_u32(),
                walkers::exprTypmod(expression).cast_unsigned(),
            ]);
        }
    }

    /// # Safety
    /// `entry` must be valid.
    unsafe fn range_table_entry(&mut self, entry: &pg_sys::RangeTblEntry) {
        let flags = [
            entry.inh,
            entry.lateral,
            entry.funcordinality,
            entry.self_reference,
            entry.tablesample.is_null(),
            entry.securityQuals.is_null(),
        ];
        self.form.words([
            entry.rtekind,
            entry.relid.to_u32(),
            entry.relkind as u32,
            entry.jointype,
            entry.ctelevelsup,
            bits(&flags),
        ]);
        self.frame.u8(u8::from(entry.security_barrier));
        // SAFETY: as the caller promises.
        unsafe {
            self.text(entry.ctename);
            // Relations are protected by their locks, so the names of their columns are left out.
            if entry.rtekind != pg_sys::RTEKind::RTE_RELATION && !entry.eref.is_null() {
                self.names((*entry.eref).colnames);
            }
            for list in [entry.coltypes, entry.colcollations] {
                for oid in oids(list) {
                    self.form.u32(oid.to_u32());
                }
            }
            for modifier in integers(entry.coltypmods) {
                self.form.u32(modifier.cast_unsigned());
            }
            tree::for_each_permission_word(entry, |word| self.frame.u64(word));
        }
    }

    /// # Safety
    /// `query` must be valid.
    unsafe fn query(&mut self, query: *mut pg_sys::Query) -> bool {
        // SAFETY: as the caller promises. The walker calls `visit` for each part, null ones included.
        unsafe {
            let own = &*query;
            let flags = [
                own.hasModifyingCTE,
                own.hasForUpdate,
                own.hasDistinctOn,
                own.hasRecursive,
                own.hasRowSecurity,
                own.groupDistinct,
                own.rowMarks.is_null(),
                own.utilityStmt.is_null(),
                own.groupingSets.is_null(),
            ];
            self.form.words([own.commandType, own.limitOption, bits(&flags)]);
            tree::for_each_permission_word_of_query(own, |word| self.frame.u64(word));
            let flags = pg_sys::QTW_EXAMINE_RTES_BEFORE | pg_sys::QTW_EXAMINE_SORTGROUP;
            let context = (&raw mut *self).cast();
            if self.node(own.groupingSets.cast())
                || direct!(walkers::query_tree_walker(query, Some(visit), context, flags as i32))
            {
                return true;
            }
            self.form.u32(END);
            false
        }
    }
}
