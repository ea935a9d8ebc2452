//! A decoded record of the WAL, in the process that replays it. Reads only; nothing here can raise, wait or allocate.

use std::mem::MaybeUninit;

use pgrx::pg_sys;
use pgrx::pg_sys::RmgrIds;

use super::compat::{RelationFile, file_of_block};
use super::server;

/// A decoded record.
#[derive(Clone, Copy)]
pub struct WalRecord<'a> {
    decoded: &'a pg_sys::DecodedXLogRecord,
}

/// The end of a transaction as a record tells it.
pub struct Ended<'a> {
    /// It commits.
    pub commits: bool,
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

    /// Where the record ends in the WAL.
    pub fn wal_end(&self) -> u64 {
        self.decoded.next_lsn
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

    /// The blocks of that file that the record changes.
    pub fn blocks_of(&self, file: RelationFile) -> impl Iterator<Item = u32> + use<'a> {
        let count = usize::try_from(self.decoded.max_block_id + 1).unwrap_or(0);
        // SAFETY: a record has blocks up to this number.
        let blocks = unsafe { self.decoded.blocks.as_slice(count) };
        let is_own = move |block: &&pg_sys::DecodedBkpBlock| {
            block.in_use && block.forknum == pg_sys::ForkNumber::MAIN_FORKNUM && file_of_block(block) == file
        };
        blocks.iter().filter(is_own).map(|block| block.blkno)
    }

    /// The main part of the record, as the structure that its kind has.
    ///
    /// # Safety
    /// The record is of a kind that begins with a `T`.
    unsafe fn data<T>(&self) -> &'a T {
        // SAFETY: the caller's promise; the server aligns this part.
        unsafe { &*self.decoded.main_data.cast::<T>() }
    }

    /// The end of a transaction, or of a sub-transaction, prepared or not; `None` for other records. Both kinds of ends
    /// are laid out in the same way, except that no messages are sent for one without commit.
    pub fn end(&self) -> Option<Ended<'a>> {
        if self.manager() != RmgrIds::RM_XACT_ID {
            return None;
        }
        let (commits, is_prepared) = match self.operation() {
            pg_sys::XLOG_XACT_COMMIT => (true, false),
            pg_sys::XLOG_XACT_COMMIT_PREPARED => (true, true),
            pg_sys::XLOG_XACT_ABORT => (false, false),
            pg_sys::XLOG_XACT_ABORT_PREPARED => (false, true),
            _ => return None,
        };
        if let Some((xid, time)) = self.short_end(is_prepared) {
            return Some(Ended { commits, xid, children: &[], database: 0, messages: &[], time });
        }
        // SAFETY: the function writes all of it: numbers, and pointers into the record.
        unsafe {
            let mut parsed = MaybeUninit::<pg_sys::xl_xact_parsed_commit>::uninit();
            server::ParseCommitRecord(self.info(), self.decoded.main_data.cast(), parsed.as_mut_ptr());
            let parsed = parsed.assume_init_ref();
            Some(Ended {
                commits,
                xid: if is_prepared { parsed.twophase_xid.into_inner() } else { self.transaction() },
                children: slice(parsed.subxacts.cast(), parsed.nsubxacts),
                database: parsed.dbId.to_u32(),
                messages: slice(parsed.msgs, parsed.nmsgs),
                time: parsed.xact_time,
            })
        }
    }

    /// The transaction and the time of an end that tells nothing else, as most do.
    fn short_end(&self, is_prepared: bool) -> Option<(u32, i64)> {
        let has_more = u32::from(self.info()) & pg_sys::XLOG_XACT_HAS_INFO != 0;
        // SAFETY: an end begins with this structure.
        let time = unsafe { self.data::<pg_sys::xl_xact_commit>() }.xact_time;
        match (has_more, is_prepared) {
            (false, false) => Some((self.transaction(), time)),
            (true, true) => {
                // SAFETY: a word says what more there is, and then comes that: the id at least, as the transaction was
                // prepared.
                let [_, _, more, xid] = *unsafe { self.data::<[u32; 4]>() };
                (more == pg_sys::XACT_XINFO_HAS_TWOPHASE).then_some((xid, time))
            }
            _ => None,
        }
    }

    /// What a record of transactions tells (`XLOG_XACT_…`).
    pub fn operation(&self) -> u32 {
        u32::from(self.info()) & pg_sys::XLOG_XACT_OPMASK
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
