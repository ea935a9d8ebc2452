//! What differs between PostgreSQL 15, 17 and 18, and nothing else.
//!
//! With `tree`, the only file with `cfg(feature = "pgNN")`. Also declares the few exported symbols that pgrx
//! does not bind because their headers are internal to the server.

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;

use pgrx::pg_sys;

use crate::pg::backend;
use crate::pg::chain::{direct, guarded, kept};

pub mod tree;

/// Raw hook signature of `ExecutorRun`, whose last argument went away in 18.
#[cfg(not(feature = "pg18"))]
pub type ExecutorRunHook = unsafe extern "C-unwind" fn(
    query_desc: *mut pg_sys::QueryDesc,
    direction: pg_sys::ScanDirection::Type,
    count: u64,
    execute_once: bool,
);
/// Raw hook signature of `ExecutorRun`.
#[cfg(feature = "pg18")]
pub type ExecutorRunHook =
    unsafe extern "C-unwind" fn(query_desc: *mut pg_sys::QueryDesc, direction: pg_sys::ScanDirection::Type, count: u64);

/// Defines the `ExecutorRun` hook of this server version over one version-independent function.
macro_rules! executor_run_hook {
    ($name:ident, $run:path) => {
        #[cfg(not(feature = "pg18"))]
        unsafe extern "C-unwind" fn $name(
            query_desc: *mut pgrx::pg_sys::QueryDesc,
            direction: pgrx::pg_sys::ScanDirection::Type,
            count: u64,
            execute_once: bool,
        ) {
            // SAFETY: the arguments are those PostgreSQL gave to the hook.
            unsafe { $run(query_desc, direction, count, execute_once) }
        }
        #[cfg(feature = "pg18")]
        unsafe extern "C-unwind" fn $name(
            query_desc: *mut pgrx::pg_sys::QueryDesc,
            direction: pgrx::pg_sys::ScanDirection::Type,
            count: u64,
        ) {
            // SAFETY: the arguments are those PostgreSQL gave to the hook.
            unsafe { $run(query_desc, direction, count, true) }
        }
    };
}
pub(crate) use executor_run_hook;

/// Calls the next `ExecutorRun` in line; what it raises jumps over this frame.
///
/// # Safety
/// The arguments must be those of a running `ExecutorRun` hook; `edge` says what else.
pub unsafe fn call_executor_run(
    previous: Option<ExecutorRunHook>,
    query_desc: *mut pg_sys::QueryDesc,
    direction: pg_sys::ScanDirection::Type,
    count: u64,
    _execute_once: bool,
) {
    let run = previous.unwrap_or(standard::standard_ExecutorRun);
    // SAFETY: a hook installed by another library or the server's own function, called with
    // PostgreSQL's own arguments.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        direct!(run(query_desc, direction, count, _execute_once));
        #[cfg(feature = "pg18")]
        direct!(run(query_desc, direction, count));
    }
}

/// The server's own functions behind the hooks, and what planning calls, without pgrx's guard around them.
pub mod standard {
    use std::ffi::{c_char, c_int};

    use pgrx::pg_sys;

    unsafe extern "C-unwind" {
        /// optimizer/planner.h
        pub fn standard_planner(
            query: *mut pg_sys::Query,
            text: *const c_char,
            options: c_int,
            params: pg_sys::ParamListInfo,
        ) -> *mut pg_sys::PlannedStmt;
        /// executor/executor.h
        pub fn standard_ExecutorStart(query_desc: *mut pg_sys::QueryDesc, flags: c_int);
        /// executor/executor.h
        #[cfg(not(feature = "pg18"))]
        pub fn standard_ExecutorRun(
            query_desc: *mut pg_sys::QueryDesc,
            direction: pg_sys::ScanDirection::Type,
            count: u64,
            execute_once: bool,
        );
        /// executor/executor.h
        #[cfg(feature = "pg18")]
        pub fn standard_ExecutorRun(
            query_desc: *mut pg_sys::QueryDesc,
            direction: pg_sys::ScanDirection::Type,
            count: u64,
        );
        /// executor/executor.h; calls the hooks
        #[cfg(not(feature = "pg18"))]
        pub fn ExecutorRun(
            query_desc: *mut pg_sys::QueryDesc,
            direction: pg_sys::ScanDirection::Type,
            count: u64,
            execute_once: bool,
        );
        /// executor/executor.h; calls the hooks
        #[cfg(feature = "pg18")]
        pub fn ExecutorRun(query_desc: *mut pg_sys::QueryDesc, direction: pg_sys::ScanDirection::Type, count: u64);
        /// optimizer/planner.h; calls the hooks
        pub fn planner(
            query: *mut pg_sys::Query,
            text: *const c_char,
            options: c_int,
            params: pg_sys::ParamListInfo,
        ) -> *mut pg_sys::PlannedStmt;
        /// storage/lmgr.h
        pub fn LockRelationOid(relation: pg_sys::Oid, mode: c_int);
        /// executor/executor.h
        pub fn standard_ExecutorFinish(query_desc: *mut pg_sys::QueryDesc);
        /// executor/executor.h
        pub fn standard_ExecutorEnd(query_desc: *mut pg_sys::QueryDesc);
        /// tcop/utility.h
        pub fn standard_ProcessUtility(
            plan: *mut pg_sys::PlannedStmt,
            text: *const c_char,
            read_only: bool,
            context: pg_sys::ProcessUtilityContext::Type,
            params: pg_sys::ParamListInfo,
            environment: *mut pg_sys::QueryEnvironment,
            receiver: *mut pg_sys::DestReceiver,
            completion: *mut pg_sys::QueryCompletion,
        );
    }
}

/// The name of the session's time zone.
pub fn timezone_name() -> *const c_char {
    unsafe extern "C" {
        /// pgtime.h; returns the address of a field.
        fn pg_get_timezone_name(zone: *mut pg_sys::pg_tz) -> *const c_char;
    }
    // SAFETY: the session has a time zone from its start.
    unsafe { pg_get_timezone_name(pg_sys::session_timezone) }
}

/// The server's description of one of its own settings, which is never freed; null if it has none of this name and kind.
fn setting_of_server(name: &CStr, kind: pg_sys::config_type::Type) -> *mut pg_sys::config_generic {
    // SAFETY: a table of pointers to the descriptions of all settings, made for the caller from 17 on.
    unsafe {
        let mut count = 0;
        #[cfg(feature = "pg15")]
        let table = {
            count += pg_sys::GetNumConfigOptions();
            pg_sys::get_guc_variables()
        };
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        let table = pg_sys::get_guc_variables(&raw mut count);
        let settings = std::slice::from_raw_parts(table, count as usize);
        let own =
            settings.iter().find(|setting| CStr::from_ptr((***setting).name) == name && (***setting).vartype == kind);
        let own = own.map_or(std::ptr::null_mut(), |setting| *setting);
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        pg_sys::pfree(table.cast());
        own
    }
}

/// The value of the setting `timezone_abbreviations`, null before it has one. Looked up by its name once: the table of settings
/// says where the value is.
pub fn timezone_abbreviations() -> *const c_char {
    static PLACE: OnceLock<usize> = OnceLock::new();
    let place = *PLACE.get_or_init(|| {
        let setting = setting_of_server(c"timezone_abbreviations", pg_sys::config_type::PGC_STRING);
        // SAFETY: null, or the description of a string.
        unsafe { setting.cast::<pg_sys::config_string>().as_ref() }.map_or(0, |setting| setting.variable as usize)
    });
    if place == 0 {
        return std::ptr::null();
    }
    // SAFETY: the variable behind the setting, which lives as long as the server.
    unsafe { *(place as *const *const c_char) }
}

/// The next transaction id to be given, as of a moment after the caller last took a snapshot. Read without the lock that
/// `ReadNextFullTransactionId` takes for machines where eight bytes are not read at once.
pub fn next_full_transaction_id() -> u64 {
    const { assert!(cfg!(target_pointer_width = "64"), "64-bit words must be read at once") };
    #[cfg(feature = "pg15")]
    // SAFETY: points into shared memory for the life of the backend.
    let next = unsafe { &raw const (*pg_sys::ShmemVariableCache).nextXid.value };
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    // SAFETY: as above.
    let next = unsafe { &raw const (*pg_sys::TransamVariables).nextXid.value };
    // SAFETY: an aligned word that only ever grows. Taking the snapshot synchronized with whoever moved its xmax, and that
    // process had read a larger value here.
    unsafe { next.read_volatile() }
}

/// Number of this backend among all, used to spread counters over cache lines.
pub fn backend_number() -> usize {
    #[cfg(feature = "pg15")]
    // SAFETY: a plain global of the backend, constant after its start.
    let number = unsafe { pg_sys::MyBackendId };
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    // SAFETY: a plain global of the backend, constant after its start.
    let number = unsafe { pg_sys::MyProcNumber };
    usize::try_from(number).unwrap_or(0)
}

/// Creates a DSA area in `place` that can never grow beyond `size` bytes.
///
/// # Safety
/// `place` must point to `size` writable bytes of shared memory; called once, by the postmaster.
pub unsafe fn create_area(place: *mut c_void, size: usize, tranche: i32) -> *mut pg_sys::dsa_area {
    #[cfg(feature = "pg15")]
    // SAFETY: as the caller promises.
    let area = unsafe { pg_sys::dsa_create_in_place(place, size, tranche, std::ptr::null_mut()) };
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    // SAFETY: as the caller promises; the two segment sizes are never used, the limit below
    // forbids segments.
    let area = unsafe {
        pg_sys::dsa_create_in_place_ext(place, size, tranche, std::ptr::null_mut(), 1024 * 1024, 1024 * 1024)
    };
    // SAFETY: the area was created just now.
    unsafe { pg_sys::dsa_set_size_limit(area, size) };
    area
}

/// The head of `PgStat_SubXactStatus` (pgstat_internal.h), the same in 15 to 18.
#[repr(C)]
struct SubXactStatus {
    nest_level: i32,
    previous: *mut SubXactStatus,
    pending_drops: [*mut c_void; 2],
    pending_drops_count: i32,
    first: *mut pg_sys::PgStat_TableXactStatus,
}

unsafe extern "C" {
    /// `bytea_output`, an enum setting (utils/bytea.h).
    pub static bytea_output: i32;
    /// `xmlbinary`, an enum setting (utils/xml.h).
    pub static xmlbinary: i32;
    /// `xmloption`, an enum setting (utils/xml.h).
    pub static xmloption: i32;
    /// `lc_monetary` (utils/pg_locale.h).
    pub static locale_monetary: *const c_char;
    /// `lc_numeric` (utils/pg_locale.h).
    pub static locale_numeric: *const c_char;
    /// `lc_time` (utils/pg_locale.h).
    pub static locale_time: *const c_char;
}

unsafe extern "C-unwind" {
    /// catalog/pg_inherits.h
    fn find_all_inheritors(
        parent: pg_sys::Oid,
        lock_mode: pg_sys::LOCKMODE,
        parents: *mut *mut pg_sys::List,
    ) -> *mut pg_sys::List;
    /// utils/pgstat_internal.h
    fn pgstat_get_xact_stack_level(nest_level: i32) -> *mut SubXactStatus;
    /// executor/tstoreReceiver.h
    fn SetTuplestoreDestReceiverParams(
        receiver: *mut pg_sys::DestReceiver,
        store: *mut pg_sys::Tuplestorestate,
        context: pg_sys::MemoryContext,
        detoast: bool,
        target: pg_sys::TupleDesc,
        map_failure: *const c_char,
    );
}

/// Directs a tuplestore receiver to `store`, whose tuples live in `context`.
///
/// # Safety
/// `receiver` must have been made for `DestTuplestore`; the others must be live.
pub unsafe fn receive_into_tuplestore(
    receiver: *mut pg_sys::DestReceiver,
    store: *mut pg_sys::Tuplestorestate,
    context: pg_sys::MemoryContext,
) {
    // SAFETY: as the caller promises.
    unsafe {
        guarded!(SetTuplestoreDestReceiverParams(
            receiver,
            store,
            context,
            false,
            std::ptr::null_mut(),
            std::ptr::null()
        ));
    }
}

/// A relation whose tuples the transaction has changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ChangedRelation {
    /// Its OID.
    pub oid: u32,
    /// Tuples were updated.
    pub updated: bool,
    /// Tuples were deleted.
    pub deleted: bool,
}

/// Calls `visit` with every relation whose tuples this transaction has changed so far, as counted
/// by the heap access method itself, whatever path the change took.
///
/// Nothing is listed while `track_counts` is off: see `publication::note_counting`.
pub fn for_each_changed_relation(mut visit: impl FnMut(ChangedRelation)) {
    // SAFETY: the function returns the newest level, pushing an empty one at most; the list lives
    // in TopTransactionContext and nothing below changes it.
    unsafe {
        let nest_level = backend::transaction_nest_level();
        let mut level = guarded!(pgstat_get_xact_stack_level(nest_level));
        while !level.is_null() {
            let mut table = (*level).first;
            while !table.is_null() {
                let parent = (*table).parent;
                #[cfg(feature = "pg15")]
                let oid = (*parent).t_id;
                #[cfg(any(feature = "pg17", feature = "pg18"))]
                let oid = (*parent).id;
                let counts = &*table;
                visit(ChangedRelation {
                    oid: oid.to_u32(),
                    updated: counts.tuples_updated > 0,
                    deleted: counts.tuples_deleted > 0 || counts.truncdropped,
                });
                table = counts.next;
            }
            level = (*level).previous;
        }
    }
}

/// Calls `visit` with every relation that this transaction will tell the other backends to read the definition of anew,
/// maybe more than once; InvalidOid stands for all relations. Only at the outermost level of a transaction.
pub fn for_each_redefined_relation(mut visit: impl FnMut(pg_sys::Oid)) {
    const RELATION: i8 = pg_sys::SHAREDINVALRELCACHE_ID as i8;
    let mut messages: *mut pg_sys::SharedInvalidationMessage = std::ptr::null_mut();
    let mut unused = false;
    // SAFETY: the function copies what is collected so far into an array of its own, whose messages are told apart by
    // their first byte.
    unsafe {
        let count = pg_sys::xactGetCommittedInvalidationMessages(&raw mut messages, &raw mut unused);
        if messages.is_null() {
            return;
        }
        for message in std::slice::from_raw_parts(messages, count as usize) {
            if message.id == RELATION {
                visit(message.rc.relId);
            }
        }
        pg_sys::pfree(messages.cast());
    }
}

/// The oldest id of a running transaction, prepared ones included; the next id when none runs.
pub fn oldest_active_transaction() -> u32 {
    unsafe extern "C-unwind" {
        /// storage/procarray.h
        fn GetOldestActiveTransactionId() -> u32;
    }
    // SAFETY: reads the process array; called by a backend outside of recovery that holds no lock.
    unsafe { guarded!(GetOldestActiveTransactionId()) }
}

/// Where the server keeps the function that it calls with each value of `track_counts` before the setting takes it; null if that
/// is not found.
pub fn counting_hook() -> *mut pg_sys::GucBoolAssignHook {
    let setting = setting_of_server(c"track_counts", pg_sys::config_type::PGC_BOOL).cast::<pg_sys::config_bool>();
    if setting.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: the description of a switch.
    unsafe { &raw mut (*setting).assign_hook }
}

/// Does the server keep the list that `for_each_changed_relation` reads?
pub fn counts_changes() -> bool {
    // SAFETY: a plain global of the backend.
    unsafe { pg_sys::pgstat_track_counts }
}

/// Clears the fields of a plan that name parts of its old tree. `stub` keeps its range table.
///
/// # Safety
/// `stub` must be a PlannedStmt that this backend owns.
pub unsafe fn strip_plan(stub: *mut pg_sys::PlannedStmt) {
    #[cfg(feature = "pg18")]
    // SAFETY: as the caller promises.
    unsafe {
        (*stub).partPruneInfos = std::ptr::null_mut();
    }
    let _ = stub;
}

/// Copies what a plan says about permissions apart from its range table, into the current memory context.
///
/// # Safety
/// `stub` must be a PlannedStmt that this backend owns.
pub unsafe fn copy_permissions(stub: *mut pg_sys::PlannedStmt) {
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    // SAFETY: as the caller promises.
    unsafe {
        (*stub).permInfos = pg_sys::copyObjectImpl((*stub).permInfos.cast()).cast();
    }
    #[cfg(feature = "pg18")]
    // SAFETY: as the caller promises.
    unsafe {
        (*stub).unprunableRelids = pg_sys::bms_copy((*stub).unprunableRelids);
    }
    let _ = stub;
}

/// Defines a function that tells how children of a node may be left out. Where that stands moved in 18.
macro_rules! pruning_of {
    ($name:ident, $node:ty) => {
        /// How children of this node may be left out; null if they may not.
        ///
        /// # Safety
        /// `plan` must be the valid plan of the node.
        pub unsafe fn $name(plan: *const pg_sys::PlannedStmt, node: &$node) -> *const pg_sys::PartitionPruneInfo {
            #[cfg(not(feature = "pg18"))]
            {
                let _ = plan;
                node.part_prune_info
            }
            #[cfg(feature = "pg18")]
            // SAFETY: as the caller promises.
            unsafe {
                numbered_pruning(plan, node.part_prune_index)
            }
        }
    };
}
pruning_of!(pruning_of_append, pg_sys::Append);
pruning_of!(pruning_of_merge_append, pg_sys::MergeAppend);

/// # Safety
/// `plan` must be valid and have such a number, unless it is negative.
#[cfg(feature = "pg18")]
unsafe fn numbered_pruning(plan: *const pg_sys::PlannedStmt, number: i32) -> *const pg_sys::PartitionPruneInfo {
    if number < 0 {
        return std::ptr::null();
    }
    // SAFETY: as the caller promises.
    unsafe { pg_sys::list_nth((*plan).partPruneInfos, number) }.cast()
}

/// The heap table access method; relations of any other are not cached.
pub const HEAP_TABLE_AM_OID: u32 = 2;

unsafe extern "C-unwind" {
    /// catalog/partition.h, which pgrx does not bind.
    fn get_partition_ancestors(relation: pg_sys::Oid) -> *mut pg_sys::List;
}

/// The partitioned tables that a partition is part of, the nearest first: a list of OIDs in the current memory context.
pub fn partition_ancestors(relation: pg_sys::Oid) -> *mut pg_sys::List {
    // SAFETY: reads a catalog; what it raises for a relation that is no partition any more is caught.
    unsafe { guarded!(get_partition_ancestors(relation)) }
}

/// Attributes of pg_index: the operator classes of its columns, and its predicate.
pub const INDEX_CLASSES: u32 = pg_sys::Anum_pg_index_indclass;
/// See `INDEX_CLASSES`.
pub const INDEX_PREDICATE: u32 = pg_sys::Anum_pg_index_indpred;
/// See `INDEX_CLASSES`: its expressions.
pub const INDEX_EXPRESSIONS: u32 = pg_sys::Anum_pg_index_indexprs;
/// Attributes of pg_partitioned_table (catalog/pg_partitioned_table.h, the same in 15 to 18): the operator classes of the key's columns, and
/// its expressions.
pub const PARTITION_CLASSES: u32 = 6;
/// See `PARTITION_CLASSES`.
pub const PARTITION_EXPRESSIONS: u32 = 8;

/// Attribute number `index`, from 0, of a row type. The array moved in 18.
///
/// # Safety
/// `descriptor` must be valid and have more than `index` attributes.
pub unsafe fn tuple_attribute(descriptor: pg_sys::TupleDesc, index: usize) -> *mut pg_sys::FormData_pg_attribute {
    #[cfg(not(feature = "pg18"))]
    // SAFETY: `attrs` is the flexible array at the end of the struct.
    unsafe {
        (&raw mut (*descriptor).attrs).cast::<pg_sys::FormData_pg_attribute>().add(index)
    }
    #[cfg(feature = "pg18")]
    // SAFETY: the full attributes follow the array of compact ones (tupdesc.h, TupleDescAttr).
    unsafe {
        let natts = (*descriptor).natts as usize;
        let compact = (&raw mut (*descriptor).compact_attrs).cast::<pg_sys::CompactAttribute>();
        compact.add(natts).cast::<pg_sys::FormData_pg_attribute>().add(index)
    }
}

/// The OIDs of a relation and of all that inherit from it, partitions included; nothing is locked.
///
/// # Safety
/// Called with a current memory context.
pub unsafe fn all_inheritors(root: pg_sys::Oid) -> *mut pg_sys::List {
    // SAFETY: as the caller promises; nobody asks for the numbers of parents.
    unsafe { guarded!(find_all_inheritors(root, pg_sys::NoLock as _, std::ptr::null_mut())) }
}

/// Raises the server's own error if the current user does not own the relation.
///
/// # Safety
/// The relation must be locked.
pub unsafe fn check_owner(relation: pg_sys::Oid) {
    // SAFETY: catalog look-ups by OID.
    unsafe {
        #[cfg(feature = "pg15")]
        let owns = pg_sys::pg_class_ownercheck(relation, pg_sys::GetUserId());
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        let owns = pg_sys::object_ownercheck(pg_sys::RelationRelationId, relation, pg_sys::GetUserId());
        if !owns {
            let kind = pg_sys::get_relkind_objtype(pg_sys::get_rel_relkind(relation));
            pg_sys::aclcheck_error(pg_sys::AclResult::ACLCHECK_NOT_OWNER, kind, pg_sys::get_rel_name(relation));
        }
    }
}

/// A name such as `schema.table` or `"Odd Name"`, taken apart.
///
/// # Safety
/// Called with a current memory context.
pub unsafe fn qualified_name(name: &std::ffi::CStr) -> *mut pg_sys::List {
    #[cfg(feature = "pg15")]
    // SAFETY: the text is copied; a malformed name raises the server's own error.
    unsafe {
        pg_sys::textToQualifiedNameList(pg_sys::cstring_to_text(name.as_ptr()))
    }
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    // SAFETY: as above; without an error context a malformed name raises too.
    unsafe {
        pg_sys::stringToQualifiedNameList(name.as_ptr(), std::ptr::null_mut())
    }
}

/// Runs a started query through all hooks, for `count` rows (0: all). `once` says that it will not be run again, so that
/// parallel workers may be used.
///
/// # Safety
/// `query_desc` must be a started query.
pub unsafe fn executor_run(
    query_desc: *mut pg_sys::QueryDesc,
    direction: pg_sys::ScanDirection::Type,
    count: u64,
    once: bool,
) {
    #[cfg(not(feature = "pg18"))]
    // SAFETY: as the caller promises.
    unsafe {
        kept!(standard::ExecutorRun(query_desc, direction, count, once));
    }
    #[cfg(feature = "pg18")]
    // SAFETY: as the caller promises. The server finds out by itself whether this is the only run.
    unsafe {
        let _ = once;
        kept!(standard::ExecutorRun(query_desc, direction, count));
    }
}

/// Tells whoever asks that a query has had so many rows in all.
///
/// # Safety
/// `query_desc` must be a started query.
pub unsafe fn set_processed(query_desc: *mut pg_sys::QueryDesc, rows: u64) {
    // SAFETY: as the caller promises.
    unsafe {
        (*(*query_desc).estate).es_processed = rows;
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        {
            (*(*query_desc).estate).es_total_processed = rows;
        }
    }
}
