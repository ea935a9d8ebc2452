//! A row of a catalog, held while it is read.

use std::ffi::CStr;

use pgrx::pg_sys;

/// An argument or a column of a function's declaration.
pub struct DeclaredArgument {
    /// Its type.
    pub type_oid: pg_sys::Oid,
    /// True if it is an argument.
    pub is_input: bool,
    /// True if it is a column, or another result.
    pub is_output: bool,
}

/// A row from a cache of the server's. It is given back when this is dropped, by an error too.
pub struct CatalogRow {
    cache: i32,
    tuple: pg_sys::HeapTuple,
}

impl CatalogRow {
    /// The row of an object in a cache whose key is its OID. `None` if there is none.
    pub fn find(cache: pg_sys::SysCacheIdentifier::Type, object: pg_sys::Oid) -> Option<Self> {
        let cache = cache as i32;
        // SAFETY: a search with the one key that the caches of objects by OID have.
        let tuple = unsafe { kept!(pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(object))) };
        // Made only where there is one: it gives back what it holds.
        (!tuple.is_null()).then(|| Self { cache, tuple })
    }

    /// The row of the cast from one type to another. `None` if there is none.
    pub fn find_cast(from: pg_sys::Oid, to: pg_sys::Oid) -> Option<Self> {
        let cache = pg_sys::SysCacheIdentifier::CASTSOURCETARGET as i32;
        // SAFETY: a search with as many keys as the cache has.
        let tuple =
            unsafe { kept!(pg_sys::SearchSysCache2(cache, pg_sys::Datum::from(from), pg_sys::Datum::from(to))) };
        // Made only where there is one: it gives back what it holds.
        (!tuple.is_null()).then(|| Self { cache, tuple })
    }

    /// The statistics of a column of a relation, without those of its children. `None` if there are none.
    pub fn find_statistics(relation: pg_sys::Oid, column: i16) -> Option<Self> {
        let cache = pg_sys::SysCacheIdentifier::STATRELATTINH as i32;
        let [relation, column, inherits] =
            [pg_sys::Datum::from(relation), pg_sys::Datum::from(column), pg_sys::Datum::from(false)];
        // SAFETY: a search with as many keys as the cache has.
        let tuple = unsafe { kept!(pg_sys::SearchSysCache3(cache, relation, column, inherits)) };
        // Made only where there is one: it gives back what it holds.
        (!tuple.is_null()).then(|| Self { cache, tuple })
    }

    /// The row, for calls of the server while it is held.
    pub fn as_tuple(&self) -> pg_sys::HeapTuple {
        self.tuple
    }

    /// Returns true if a snapshot, which must be an MVCC one, sees the transaction that has written the row. What a row
    /// says of the rows of a table need not hold of those that an older snapshot sees: they may have been deleted
    /// before it was written. Not what this transaction has done, since its snapshot may be older.
    pub fn is_seen_by(&self, snapshot: &pg_sys::SnapshotData) -> bool {
        // SAFETY: the tuple is held, and has the head that it has in its table. The server looks at the transactions of
        // the snapshot.
        unsafe {
            let head = (*self.tuple).t_data;
            let frozen = pg_sys::HEAP_XMIN_FROZEN as u16;
            let maker = (*head).t_choice.t_heap.t_xmin;
            (*head).t_infomask & frozen == frozen
                || maker.into_inner() < pg_sys::FirstNormalTransactionId.into_inner()
                || (!kept!(pg_sys::TransactionIdIsCurrentTransactionId(maker))
                    && !kept!(pg_sys::XidInMVCCSnapshot(maker, (&raw const *snapshot).cast_mut())))
        }
    }

    /// The columns of fixed width of a row of statistics (`STATRELATTINH`); `None` for a row of another catalog.
    pub fn statistics(&self) -> Option<&pg_sys::FormData_pg_statistic> {
        // SAFETY: the tuple is held, and this is the layout of its catalog's rows.
        (self.cache == pg_sys::SysCacheIdentifier::STATRELATTINH as i32)
            .then(|| unsafe { &*pg_sys::GETSTRUCT(self.tuple).cast::<pg_sys::FormData_pg_statistic>() })
    }

    /// The columns of fixed width of a function's row (`PROCOID`); `None` for a row of another catalog.
    pub fn function(&self) -> Option<&pg_sys::FormData_pg_proc> {
        // SAFETY: the tuple is held, and this is the layout of its catalog's rows.
        (self.cache == pg_sys::SysCacheIdentifier::PROCOID as i32)
            .then(|| unsafe { &*pg_sys::GETSTRUCT(self.tuple).cast::<pg_sys::FormData_pg_proc>() })
    }

    /// The arguments and results that a function's row (`PROCOID`) declares, in their order; `None` for a row of
    /// another catalog.
    pub fn arguments(&self) -> Option<Vec<DeclaredArgument>> {
        self.function()?;
        let (mut types, mut names, mut modes) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the tuple is a row of pg_proc. The server returns palloc'd arrays with as many elements as it counts;
        // without modes, all are arguments.
        unsafe {
            let count = kept!(pg_sys::get_func_arg_info(self.tuple, &raw mut types, &raw mut names, &raw mut modes));
            let argument = |index: usize| {
                let mode = if modes.is_null() { pg_sys::PROARGMODE_IN } else { *modes.add(index) as u8 };
                DeclaredArgument {
                    type_oid: *types.add(index),
                    is_input: !matches!(mode, pg_sys::PROARGMODE_OUT | pg_sys::PROARGMODE_TABLE),
                    is_output: !matches!(mode, pg_sys::PROARGMODE_IN | pg_sys::PROARGMODE_VARIADIC),
                }
            };
            Some((0..count as usize).map(argument).collect())
        }
    }

    /// The columns of fixed width of a relation's row (`RELOID`); `None` for a row of another catalog.
    pub fn relation(&self) -> Option<&pg_sys::FormData_pg_class> {
        // SAFETY: the tuple is held, and this is the layout of its catalog's rows.
        (self.cache == pg_sys::SysCacheIdentifier::RELOID as i32)
            .then(|| unsafe { &*pg_sys::GETSTRUCT(self.tuple).cast::<pg_sys::FormData_pg_class>() })
    }

    /// The columns of an index's row (`INDEXRELID`), 0 for an expression; `None` for a row of another catalog.
    pub fn columns_of_index(&self) -> Option<&[i16]> {
        // SAFETY: the tuple is held, and this is the layout of its catalog's rows, up to the vector of columns.
        (self.cache == pg_sys::SysCacheIdentifier::INDEXRELID as i32).then(|| unsafe {
            let index = pg_sys::GETSTRUCT(self.tuple).cast::<pg_sys::FormData_pg_index>();
            std::slice::from_raw_parts((*index).indkey.values.as_ptr(), (*index).indnatts as usize)
        })
    }

    /// The columns of fixed width of a type's row (`TYPEOID`); `None` for a row of another catalog.
    pub fn data_type(&self) -> Option<&pg_sys::FormData_pg_type> {
        // SAFETY: the tuple is held, and this is the layout of its catalog's rows.
        (self.cache == pg_sys::SysCacheIdentifier::TYPEOID as i32)
            .then(|| unsafe { &*pg_sys::GETSTRUCT(self.tuple).cast::<pg_sys::FormData_pg_type>() })
    }

    /// The columns of the key of a partitioned table's row (`PARTRELID`), 0 for an expression; `None` for a row of
    /// another catalog.
    pub fn columns_of_partitions(&self) -> Option<Vec<i16>> {
        /// The vector of columns (catalog/pg_partitioned_table.h).
        const COLUMNS: i16 = 5;
        let is_its_row = self.cache == pg_sys::SysCacheIdentifier::PARTRELID as i32;
        let columns = is_its_row.then(|| self.column(COLUMNS))??.value() as *const pg_sys::int2vector;
        // SAFETY: the tuple is held, and the column is a vector, which the server stores as it is.
        Some(unsafe { std::slice::from_raw_parts((*columns).values.as_ptr(), (*columns).dim1 as usize) }.to_vec())
    }

    fn column(&self, number: i16) -> Option<pg_sys::Datum> {
        let mut is_null = true;
        // SAFETY: the tuple is held, and of this cache.
        let value = unsafe { kept!(pg_sys::SysCacheGetAttr(self.cache, self.tuple, number, &raw mut is_null)) };
        (!is_null).then_some(value)
    }

    /// Returns true if the column, counted from 1, is null.
    pub fn is_null(&self, number: i16) -> bool {
        self.column(number).is_none()
    }

    /// Returns true if a function's row (`PROCOID`) has a SET clause for `search_path`, and no other one.
    pub fn sets_search_path_alone(&self) -> bool {
        self.function().and_then(|_| self.column(pg_sys::Anum_pg_proc_proconfig as i16)).is_some_and(|settings| {
            // SAFETY: an array of texts, of which the server makes another one without that setting; null if nothing is
            // left.
            unsafe {
                let settings = kept!(pg_sys::pg_detoast_datum(settings.cast_mut_ptr())).cast();
                kept!(pg_sys::GUCArrayDelete(settings, c"search_path".as_ptr())).is_null()
            }
        })
    }

    /// The object that a column names; `None` for none.
    pub fn oid(&self, number: i16) -> Option<pg_sys::Oid> {
        let object = pg_sys::Oid::from(self.column(number)?.value() as u32);
        (object != pg_sys::InvalidOid).then_some(object)
    }

    /// The text in a column of type text or pg_node_tree; `None` if it is null. A copy in the current memory context,
    /// which a user may have made large: without memory for it the server raises.
    pub fn text(&self, number: i16) -> Option<&CStr> {
        let value = self.column(number)?;
        // SAFETY: a varlena, as the caller says. The copy ends with NUL, and lives at least as long as the row is held.
        Some(unsafe { CStr::from_ptr(kept!(pg_sys::text_to_cstring(value.cast_mut_ptr()))) })
    }
}

/// The bytes of a row's columns, with which of them are null. Those between columns are zeros: the server forms rows in
/// zeroed memory.
///
/// # Safety
/// A row, which lives as long as the bytes are used.
pub unsafe fn columns_of<'row>(row: pg_sys::HeapTuple) -> &'row [u8] {
    /// The head of a row ends with which columns are null.
    const HEAD: usize = std::mem::offset_of!(pg_sys::HeapTupleHeaderData, t_hoff);
    // SAFETY: the caller's promise; a row has so many bytes.
    unsafe { &std::slice::from_raw_parts((*row).t_data.cast::<u8>(), (*row).t_len as usize)[HEAD..] }
}

impl Drop for CatalogRow {
    fn drop(&mut self) {
        // SAFETY: the reference that `find` took.
        unsafe { kept!(pg_sys::ReleaseSysCache(self.tuple)) };
    }
}
