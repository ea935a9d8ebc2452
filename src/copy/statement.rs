//! `COPY … TO STDOUT (FORMAT arrow, …)` as the server can run it: the same statement over a query, without our options.
//! Everything that COPY checks and refuses is left to the server.

use std::ffi::{CStr, CString};

use arrow_cache_core::{ExportOptions, OptionError};
use pgrx::pg_sys::{self, NodeTag};

use crate::error::{CacheError, or_raise};
use crate::export;
use crate::pg::allocator::headroom;
use crate::pg::compat;
use crate::pg::lists::nodes;

/// Names of the format: that of the IPC stream.
const FORMATS: [&CStr; 3] = [c"arrow", c"arrows", c"arrow_stream"];

/// What a statement asks for.
pub struct ArrowCopy {
    /// The options.
    pub options: ExportOptions,
    /// The text that stands for the query in the cache, when it is not the statement's own.
    pub text: Option<CString>,
    /// The statement for the server.
    pub plan: *mut pg_sys::PlannedStmt,
}

/// Takes a COPY statement apart. `None` if it has nothing to do with Arrow. Raises what is wrong with it.
///
/// # Safety
/// `plan` must be the argument of a ProcessUtility hook, with a COPY statement.
pub unsafe fn parse(plan: *const pg_sys::PlannedStmt) -> Option<ArrowCopy> {
    // SAFETY: as the caller promises; new nodes live as long as the statement's portal.
    unsafe {
        let statement: *const pg_sys::CopyStmt = (*plan).utilityStmt.cast();
        let formats = || nodes::<pg_sys::DefElem>((*statement).options).filter(|option| is_format(*option));
        if !formats().any(|option| is_arrow(option)) {
            return None;
        }
        if formats().count() > 1 {
            CacheError::BadOption { error: OptionError::Repeated { option: "format".into() } }.raise();
        }
        check_direction(&*statement);
        let options = export::from_words((*statement).options, "format");
        let copy = pg_sys::palloc0(std::mem::size_of::<pg_sys::CopyStmt>()).cast::<pg_sys::CopyStmt>();
        copy.copy_from_nonoverlapping(statement, 1);
        (*copy).options = std::ptr::null_mut();
        let mut text = None;
        if (*statement).query.is_null() {
            if let Some(query) = table_query(&*statement) {
                (*copy).query = parsed(&query);
                (*copy).relation = std::ptr::null_mut();
                (*copy).attlist = std::ptr::null_mut();
                text = Some(query);
            }
        } else {
            check_query((*statement).query);
        }
        let replaced = pg_sys::palloc0(std::mem::size_of::<pg_sys::PlannedStmt>()).cast::<pg_sys::PlannedStmt>();
        replaced.copy_from_nonoverlapping(plan, 1);
        (*replaced).utilityStmt = copy.cast();
        Some(ArrowCopy { options, text, plan: replaced })
    }
}

/// # Safety
/// `option` must be a valid option of COPY.
unsafe fn is_format(option: *const pg_sys::DefElem) -> bool {
    // SAFETY: as the caller promises; names are C strings.
    unsafe { CStr::from_ptr((*option).defname) == c"format" }
}

/// # Safety
/// `option` must be a valid FORMAT option of COPY.
unsafe fn is_arrow(option: *const pg_sys::DefElem) -> bool {
    // SAFETY: as the caller promises; a String node holds a C string.
    unsafe {
        let value = (*option).arg;
        !value.is_null()
            && (*value).type_ == NodeTag::T_String
            && FORMATS.contains(&CStr::from_ptr((*value.cast::<pg_sys::String>()).sval))
    }
}

fn check_direction(statement: &pg_sys::CopyStmt) {
    let refuse = |problem, hint| CacheError::UnsupportedCopy { problem, hint }.raise();
    if statement.is_from {
        refuse("COPY FROM cannot read the format \"arrow\"", "The format is for COPY ... TO STDOUT.");
    }
    if !statement.filename.is_null() {
        refuse(
            "COPY in the format \"arrow\" writes to STDOUT only",
            "psql's \\copy writes a file on the client's side: \\copy (SELECT ...) TO 'file' (FORMAT arrow).",
        );
    }
    // SAFETY: a plain global of the backend.
    if unsafe { pg_sys::whereToSendOutput } != pg_sys::CommandDest::DestRemote {
        refuse("COPY in the format \"arrow\" needs a client to send to", "Connect to a running server.");
    }
}

/// Raises unless the query is a SELECT.
///
/// # Safety
/// `query` must be a valid raw statement.
unsafe fn check_query(query: *mut pg_sys::Node) {
    // SAFETY: as the caller promises; tag names are literals of the server.
    unsafe {
        if (*query).type_ != NodeTag::T_SelectStmt {
            let tag = pg_sys::GetCommandTagName(pg_sys::CreateCommandTag(query));
            CacheError::NotOneSelect { found: CStr::from_ptr(tag).to_string_lossy().into_owned() }.raise();
        }
    }
}

/// What a column takes at most in the query for a table: its name in quotes, every byte of it doubled, three times, and a place in a list that
/// doubles as it grows.
const BYTES_OF_NAME: usize = 8 * pg_sys::NAMEDATALEN as usize;

/// The query that gives what COPY would copy of a table: its own rows, and its columns but the generated ones. `None` for
/// anything but a table, about which the server has errors of its own.
///
/// # Safety
/// The statement must name a relation.
unsafe fn table_query(statement: &pg_sys::CopyStmt) -> Option<CString> {
    // SAFETY: as the caller promises. The lock that the server would take stays until the end of the transaction.
    unsafe {
        let relation = pg_sys::table_openrv(statement.relation, pg_sys::AccessShareLock as _);
        let is_table = (*(*relation).rd_rel).relkind == pg_sys::RELKIND_RELATION as std::ffi::c_char;
        let query = is_table.then(|| {
            let descriptor = (*relation).rd_att;
            let _headroom = or_raise(headroom((*descriptor).natts as usize * BYTES_OF_NAME));
            let numbers = pg_sys::CopyGetAttnums(descriptor, relation, statement.attlist);
            let columns: Vec<Vec<u8>> = crate::pg::lists::integers(numbers)
                .map(|number| quoted((*compat::tuple_attribute(descriptor, number as usize - 1)).attname.data.as_ptr()))
                .collect();
            let class = &*(*relation).rd_rel;
            let schema = pg_sys::get_namespace_name(class.relnamespace);
            let table = quoted(class.relname.data.as_ptr());
            [b"SELECT ", &*columns.join(&b", "[..]), b" FROM ONLY ", &*quoted(schema), b".", &*table].concat()
        });
        pg_sys::table_close(relation, pg_sys::NoLock as _);
        query.and_then(|query| CString::new(query).ok())
    }
}

/// A name as it is written in SQL, in the encoding of the database.
///
/// # Safety
/// `name` must be a C string.
unsafe fn quoted(name: *const std::ffi::c_char) -> Vec<u8> {
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(pg_sys::quote_identifier(name)) }.to_bytes().to_vec()
}

/// The raw statement that a text holds.
///
/// # Safety
/// The text must be one SELECT.
unsafe fn parsed(text: &CStr) -> *mut pg_sys::Node {
    // SAFETY: as the caller promises.
    unsafe {
        let statements = pg_sys::pg_parse_query(text.as_ptr());
        nodes::<pg_sys::RawStmt>(statements).next().map_or(std::ptr::null_mut(), |raw| (*raw).stmt)
    }
}
