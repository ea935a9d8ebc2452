//! Functions of the server about tables and their indexes, which the searches for a value call (`pg::index_search`, `pg::table_search`).

use std::ffi::c_int;

use pgrx::pg_sys;

unsafe extern "C-unwind" {
    /// access/relation.h; null for a relation that is gone.
    pub fn try_relation_open(relation: pg_sys::Oid, lock_mode: pg_sys::LOCKMODE) -> pg_sys::Relation;
    /// access/relation.h
    pub fn relation_close(relation: pg_sys::Relation, lock_mode: pg_sys::LOCKMODE);
    /// utils/relcache.h; without indexes that are being dropped.
    pub fn RelationGetIndexList(relation: pg_sys::Relation) -> *mut pg_sys::List;
    /// access/genam.h; this and those that follow.
    pub fn index_open(index: pg_sys::Oid, lock_mode: pg_sys::LOCKMODE) -> pg_sys::Relation;
    pub fn index_close(index: pg_sys::Relation, lock_mode: pg_sys::LOCKMODE);
    pub fn index_getprocid(index: pg_sys::Relation, column: i16, number: u16) -> pg_sys::Oid;
    pub fn index_rescan(
        scan: pg_sys::IndexScanDesc,
        keys: *mut pg_sys::ScanKeyData,
        key_count: c_int,
        order_bys: *mut pg_sys::ScanKeyData,
        order_by_count: c_int,
    );
    pub fn index_getnext_tid(
        scan: pg_sys::IndexScanDesc,
        direction: pg_sys::ScanDirection::Type,
    ) -> pg_sys::ItemPointer;
    pub fn index_fetch_heap(scan: pg_sys::IndexScanDesc, slot: *mut pg_sys::TupleTableSlot) -> bool;
    pub fn index_endscan(scan: pg_sys::IndexScanDesc);
    /// access/skey.h
    pub fn ScanKeyInit(
        key: *mut pg_sys::ScanKeyData,
        column: i16,
        strategy: u16,
        function: pg_sys::Oid,
        argument: pg_sys::Datum,
    );
    pub fn ScanKeyEntryInitialize(
        key: *mut pg_sys::ScanKeyData,
        flags: c_int,
        column: i16,
        strategy: u16,
        subtype: pg_sys::Oid,
        collation: pg_sys::Oid,
        function: pg_sys::Oid,
        argument: pg_sys::Datum,
    );
    /// access/heapam.h; this and the two that follow.
    pub fn heap_beginscan(
        table: pg_sys::Relation,
        snapshot: pg_sys::Snapshot,
        key_count: c_int,
        keys: *mut pg_sys::ScanKeyData,
        parallel: *mut pg_sys::ParallelTableScanDescData,
        options: u32,
    ) -> pg_sys::TableScanDesc;
    pub fn heap_getnextslot(
        scan: pg_sys::TableScanDesc,
        direction: pg_sys::ScanDirection::Type,
        slot: *mut pg_sys::TupleTableSlot,
    ) -> bool;
    pub fn heap_endscan(scan: pg_sys::TableScanDesc);
    /// storage/bufmgr.h
    pub fn RelationGetNumberOfBlocksInFork(table: pg_sys::Relation, fork: pg_sys::ForkNumber::Type) -> u32;
    /// access/tableam.h
    pub fn table_slot_create(table: pg_sys::Relation, list: *mut *mut pg_sys::List) -> *mut pg_sys::TupleTableSlot;
    /// executor/tuptable.h
    pub fn ExecDropSingleTupleTableSlot(slot: *mut pg_sys::TupleTableSlot);
    /// access/htup_details.h
    pub fn heap_attisnull(row: pg_sys::HeapTuple, column: c_int, description: pg_sys::TupleDesc) -> bool;
    /// access/transam.h
    pub fn TransactionIdPrecedes(one: pg_sys::TransactionId, other: pg_sys::TransactionId) -> bool;
}
