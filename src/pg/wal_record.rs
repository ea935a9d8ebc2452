//! A decoded record of the WAL, in the process that replays it. Reads only; nothing here can raise, wait or allocate.

use arrow_cache_core::RelationFile;
use pgrx::pg_sys;
use pgrx::pg_sys::RmgrIds;

use super::{compat, server};

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

    /// The file that the first block is in, if that is one of a relation's rows: else it may be any file.
    #[inline(always)]
    pub fn probable_file(&self) -> Option<RelationFile> {
        if self.decoded.max_block_id < 0 {
            return None;
        }
        // SAFETY: a record has blocks up to this number. If it does not use this one, plain numbers stand there all the same.
        Some(compat::file_of_block(unsafe { &*self.decoded.blocks.as_ptr() }))
    }

    /// The file of the first block that the record changes; `None` if it names no block of a relation's rows.
    pub fn first_file(&self) -> Option<RelationFile> {
        if self.decoded.max_block_id < 0 {
            return None;
        }
        // SAFETY: a record has blocks up to this number.
        let block = unsafe { &*self.decoded.blocks.as_ptr() };
        (block.in_use && block.forknum == pg_sys::ForkNumber::MAIN_FORKNUM).then(|| compat::file_of_block(block))
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
        if let Some(ended) = self.short_commit() {
            return Some(ended);
        }
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
    #[inline(always)]
    pub fn operation(&self) -> u32 {
        u32::from(self.info()) & pg_sys::XLOG_XACT_OPMASK
    }

    /// A commit without invalidations and dropped files, read without the server's help: most are such ones. The record is one of a commit, prepared
    /// or not. `None` for one that tells anything that is not known here.
    #[inline(always)]
    pub fn short_commit(&self) -> Option<Ended<'a>> {
        // What follows is not read, or is nothing.
        const PASSED_OVER: u32 = pg_sys::XACT_XINFO_HAS_ORIGIN
            | pg_sys::XACT_XINFO_HAS_GID
            | pg_sys::XACT_XINFO_HAS_AE_LOCKS
            | pg_sys::XACT_COMPLETION_APPLY_FEEDBACK
            | pg_sys::XACT_COMPLETION_UPDATE_RELCACHE_FILE
            | pg_sys::XACT_COMPLETION_FORCE_SYNC_COMMIT;
        const READ: u32 =
            pg_sys::XACT_XINFO_HAS_DBINFO | pg_sys::XACT_XINFO_HAS_SUBXACTS | pg_sys::XACT_XINFO_HAS_TWOPHASE;
        let (mut xid, mut database) = (self.transaction(), 0);
        let mut children: &'a [u32] = &[];
        // SAFETY: a record of a commit begins with this structure; if the bit is set, a word of flags follows, and then, if these say so, the
        // OIDs of the database and its tablespace, the number of sub-transactions and their ids, and the id of the transaction that was prepared
        // (access/xact.h, the same in 15 to 18; ParseCommitRecord reads them in this order).
        unsafe {
            let time = self.data::<pg_sys::xl_xact_commit>().xact_time;
            if u32::from(self.info()) & pg_sys::XLOG_XACT_HAS_INFO != 0 {
                let mut place = self.decoded.main_data.add(size_of::<pg_sys::xl_xact_commit>()).cast::<u32>();
                let told = place.read();
                place = place.add(1);
                if told & !(PASSED_OVER | READ) != 0 {
                    return None;
                }
                if told & pg_sys::XACT_XINFO_HAS_DBINFO != 0 {
                    database = place.read();
                    place = place.add(2);
                }
                if told & pg_sys::XACT_XINFO_HAS_SUBXACTS != 0 {
                    children = slice(place.add(1), place.cast::<i32>().read());
                    place = place.add(1 + children.len());
                }
                if told & pg_sys::XACT_XINFO_HAS_TWOPHASE != 0 {
                    xid = place.read();
                }
            }
            Some(Ended { xid, children, database, messages: &[], time })
        }
    }

    /// The image of a page, and nothing else.
    pub fn is_page_image(&self) -> bool {
        matches!(u32::from(self.info()), pg_sys::XLOG_FPI | pg_sys::XLOG_FPI_FOR_HINT)
    }

    /// An exclusive lock that a transaction has taken. It is the manager of what concerns standbys that has written the record.
    pub fn is_standby_lock(&self) -> bool {
        u32::from(self.info()) == pg_sys::XLOG_STANDBY_LOCK
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

    /// The database that a record creates or drops; `None` for records of other resource managers.
    pub fn named_database(&self) -> Option<u32> {
        // SAFETY: each kind of these records begins with the OID of the database (commands/dbcommands_xlog.h).
        (self.manager() == RmgrIds::RM_DBASE_ID).then(|| unsafe { self.data::<pg_sys::Oid>() }.to_u32())
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
