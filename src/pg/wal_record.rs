//! A decoded record of the WAL, in the process that replays it. Reads only; nothing here can raise, wait or allocate.

use pgrx::pg_sys;
use pgrx::pg_sys::RmgrIds;

use super::compat::{RelationFile, file_of_block};
use super::server;

/// The redo function of a resource manager.
pub type Redo = unsafe extern "C-unwind" fn(*mut pg_sys::XLogReaderState);

/// A decoded record.
#[derive(Clone, Copy)]
pub struct WalRecord<'a> {
    decoded: &'a pg_sys::DecodedXLogRecord,
}

/// The end of a transaction as a record tells it.
pub struct Ended<'a> {
    /// The transaction: a top-level one if it commits.
    pub xid: u32,
    /// Sub-transactions that end in the same way.
    pub children: &'a [u32],
    /// The database that it ran in, 0 if the record does not say.
    pub database: u32,
    /// The invalidations that the server sends for it, only if it commits.
    pub messages: &'a [pg_sys::SharedInvalidationMessage],
    /// When it ended on the primary, in microseconds.
    pub time: i64,
}

impl Ended<'_> {
    /// The transaction and its sub-transactions.
    pub fn all(&self) -> impl Iterator<Item = u32> {
        std::iter::once(self.xid).chain(self.children.iter().copied())
    }
}

impl<'a> WalRecord<'a> {
    /// The record that a redo function has been called with.
    ///
    /// # Safety
    /// `reader` is the argument of a redo function, and `'a` ends before that function does.
    pub unsafe fn of(reader: *mut pg_sys::XLogReaderState) -> Self {
        // SAFETY: the reader keeps the decoded record while it is replayed.
        Self { decoded: unsafe { &*(*reader).record } }
    }

    /// The resource manager (`RM_…_ID`).
    pub fn manager(&self) -> RmgrIds::Type {
        self.decoded.header.xl_rmid.into()
    }

    /// The bits of the kind that belong to the resource manager.
    pub fn info(&self) -> u8 {
        self.decoded.header.xl_info & !(pg_sys::XLR_INFO_MASK as u8)
    }

    /// The transaction, or sub-transaction, that wrote the record; 0 for none.
    pub fn transaction(&self) -> u32 {
        self.decoded.header.xl_xid.into_inner()
    }

    /// The file of the first block that the record changes; `None` if it names no block of a relation's rows.
    pub fn first_file(&self) -> Option<RelationFile> {
        if self.decoded.max_block_id < 0 {
            return None;
        }
        // SAFETY: a record has blocks up to this number.
        let block = unsafe { &*self.decoded.blocks.as_ptr() };
        (block.in_use && block.forknum == pg_sys::ForkNumber::MAIN_FORKNUM).then(|| file_of_block(block))
    }

    /// The main part of the record, as the structure that its kind has.
    ///
    /// # Safety
    /// The record is of a kind that begins with a `T`.
    unsafe fn data<T>(&self) -> &'a T {
        // SAFETY: the caller's promise; the server aligns this part.
        unsafe { &*self.decoded.main_data.cast::<T>() }
    }

    /// The commit of a transaction, prepared or not; `None` for other records.
    pub fn commit(&self) -> Option<Ended<'a>> {
        if self.manager() != RmgrIds::RM_XACT_ID {
            return None;
        }
        let is_prepared = match self.operation() {
            pg_sys::XLOG_XACT_COMMIT => false,
            pg_sys::XLOG_XACT_COMMIT_PREPARED => true,
            _ => return None,
        };
        // SAFETY: plain numbers and pointers, for which zeros are valid; the function writes the rest, pointers into the record.
        unsafe {
            let mut parsed: pg_sys::xl_xact_parsed_commit = std::mem::zeroed();
            server::ParseCommitRecord(self.info(), self.decoded.main_data.cast(), &raw mut parsed);
            let xid = if is_prepared { parsed.twophase_xid.into_inner() } else { self.transaction() };
            Some(Ended {
                xid,
                children: slice(parsed.subxacts.cast(), parsed.nsubxacts),
                database: parsed.dbId.to_u32(),
                messages: slice(parsed.msgs, parsed.nmsgs),
                time: parsed.xact_time,
            })
        }
    }

    /// What a record of transactions tells (`XLOG_XACT_…`).
    pub fn operation(&self) -> u32 {
        u32::from(self.info()) & pg_sys::XLOG_XACT_OPMASK
    }

    /// The end of a transaction, or of a sub-transaction, without commit; `None` for other records.
    pub fn abort(&self) -> Option<Ended<'a>> {
        if self.manager() != RmgrIds::RM_XACT_ID {
            return None;
        }
        let is_prepared = match self.operation() {
            pg_sys::XLOG_XACT_ABORT => false,
            pg_sys::XLOG_XACT_ABORT_PREPARED => true,
            _ => return None,
        };
        // SAFETY: as for commits.
        unsafe {
            let mut parsed: pg_sys::xl_xact_parsed_abort = std::mem::zeroed();
            server::ParseAbortRecord(self.info(), self.decoded.main_data.cast(), &raw mut parsed);
            let xid = if is_prepared { parsed.twophase_xid.into_inner() } else { self.transaction() };
            let children = slice(parsed.subxacts.cast(), parsed.nsubxacts);
            Some(Ended { xid, children, database: parsed.dbId.to_u32(), messages: &[], time: parsed.xact_time })
        }
    }

    /// A transaction and sub-transactions of it, if the record says that these are its.
    pub fn assignment(&self) -> Option<(u32, &'a [u32])> {
        let assigns = self.manager() == RmgrIds::RM_XACT_ID && self.operation() == pg_sys::XLOG_XACT_ASSIGNMENT;
        // SAFETY: a record of this kind is this structure, with as many ids as it says.
        assigns.then(|| unsafe {
            let assignment = self.data::<pg_sys::xl_xact_assignment>();
            (assignment.xtop.into_inner(), slice(assignment.xsub.as_ptr().cast(), assignment.nsubxacts))
        })
    }

    /// The oldest transaction that ran on the primary, if the record lists those that did.
    pub fn oldest_running(&self) -> Option<u32> {
        let lists = self.manager() == RmgrIds::RM_STANDBY_ID && u32::from(self.info()) == pg_sys::XLOG_RUNNING_XACTS;
        // SAFETY: a record of this kind begins with this structure.
        lists.then(|| unsafe { self.data::<pg_sys::xl_running_xacts>() }.oldestRunningXid.into_inner())
    }

    /// The new `wal_level` of the primary, if the record tells one.
    pub fn wal_level(&self) -> Option<i32> {
        let tells = self.manager() == RmgrIds::RM_XLOG_ID && u32::from(self.info()) == pg_sys::XLOG_PARAMETER_CHANGE;
        // SAFETY: a record of this kind is this structure; it need not be aligned.
        tells.then(|| unsafe {
            let change = self.decoded.main_data.cast::<pg_sys::xl_parameter_change>();
            (&raw const (*change).wal_level).read_unaligned()
        })
    }
}

/// The elements of an array of a record.
///
/// # Safety
/// `first` points to `count` elements inside of a record that is there for `'a`, or `count` is 0.
unsafe fn slice<'a, T>(first: *const T, count: i32) -> &'a [T] {
    if count <= 0 || first.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise; the server pads what comes before the arrays of a record to their alignment.
    unsafe { std::slice::from_raw_parts(first, count as usize) }
}
