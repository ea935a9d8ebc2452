//! `COPY … TO STDOUT (FORMAT arrow, …)` as the server can run it: the same statement over a query, without our options.
//! Everything that COPY checks and refuses is left to the server.

use std::ffi::{CStr, CString};

use arrow_cache_core::formats::wire::RowShape;
use arrow_cache_core::{ExportOptions, OptionError};
use pgrx::pg_sys::{self, NodeTag};

use crate::error::{CacheError, or_raise};
use crate::export;
use crate::pg::allocator::headroom;
use crate::pg::lists::integers;
use crate::pg::row_type::RowType;
use crate::pg::tree::{Tree, child, child_text, children};
use crate::pg::{client, compat};
use crate::serve;

/// Names of the format: that of the IPC stream.
const FORMATS: [&CStr; 3] = [c"arrow", c"arrows", c"arrow_stream"];

/// What a statement asks for.
pub struct ArrowCopy {
    /// The options.
    pub options: ExportOptions,
    /// The statement for the server.
    pub plan: *mut pg_sys::PlannedStmt,
}

/// Takes a COPY statement apart. `None` if it does not ask for Arrow. Raises what is wrong with it.
pub fn parse(plan: Tree<'_, pg_sys::PlannedStmt>) -> Option<ArrowCopy> {
    let statement = child!(plan.utilityStmt)?.as_a::<pg_sys::CopyStmt>()?;
    let options = children!(statement.options as DefElem);
    let formats = options.clone().filter(|option| is_format(*option));
    if !formats.clone().any(is_arrow) {
        return None;
    }
    if formats.count() > 1 {
        CacheError::bad_option(OptionError::Repeated { option: "format".into() }).raise();
    }
    check_direction(statement.get());
    let options = export::from_words(options, "format");
    let mut copy = *statement.get();
    if let Some(query) = child!(statement.query) {
        check_query(query);
        copy.options = std::ptr::null_mut();
    } else if let Some(query) = table_query(statement) {
        copy.options = std::ptr::null_mut();
        copy.query = parsed(&query);
        copy.relation = std::ptr::null_mut();
        copy.attlist = std::ptr::null_mut();
    }
    // SAFETY: copies of plain structs into memory of their size, which lives as long as the statement's portal.
    let plan = unsafe {
        let replaced = kept!(pg_sys::palloc0(std::mem::size_of::<pg_sys::PlannedStmt>())).cast::<pg_sys::PlannedStmt>();
        let utility = kept!(pg_sys::palloc0(std::mem::size_of::<pg_sys::CopyStmt>())).cast::<pg_sys::CopyStmt>();
        utility.write(copy);
        replaced.copy_from_nonoverlapping(plan.as_ptr(), 1);
        (*replaced).utilityStmt = utility.cast();
        replaced
    };
    Some(ArrowCopy { options, plan })
}

/// Returns true if this is the option FORMAT.
fn is_format(option: Tree<'_, pg_sys::DefElem>) -> bool {
    child_text!(option.defname) == Some(c"format")
}

/// Returns true if this option FORMAT asks for Arrow.
fn is_arrow(option: Tree<'_, pg_sys::DefElem>) -> bool {
    word_of(option).is_some_and(|word| FORMATS.contains(&word))
}

/// The word of an option.
fn word_of<'t>(option: Tree<'t, pg_sys::DefElem>) -> Option<&'t CStr> {
    let word = child!(option.arg).and_then(Tree::as_a::<pg_sys::String>);
    word.and_then(|word| child_text!(word.sval))
}

/// What a COPY makes of a row for the client, in one of the server's formats. `None` if rows go elsewhere, or an option
/// changes more of them. A header goes before the first row. No option but the format changes a row in binary.
pub fn shape_for_client(copy: Tree<'_, pg_sys::CopyStmt>) -> Option<RowShape> {
    // SAFETY: a plain global of the backend.
    let is_to_client = unsafe { pg_sys::whereToSendOutput } == pg_sys::CommandDest::DestRemote;
    if !is_to_client || copy.is_from || !copy.filename.is_null() {
        return None;
    }
    let mut options = children!(copy.options as DefElem);
    let shape = match options.clone().find(|option| is_format(*option)).map(word_of) {
        None => RowShape::CopyText,
        Some(word) => match word?.to_bytes() {
            b"binary" => return Some(RowShape::CopyBinary),
            b"csv" => RowShape::CopyCsv,
            b"text" => RowShape::CopyText,
            _ => return None,
        },
    };
    let is_known = |option| is_format(option) || child_text!(option.defname) == Some(c"header");
    // COPY converts lines to the encoding that the client has now.
    (options.all(is_known) && serve::keeps_text()).then_some(shape)
}

fn check_direction(statement: &pg_sys::CopyStmt) {
    if statement.is_from {
        CacheError::arrow_from().raise();
    }
    if !statement.filename.is_null() {
        CacheError::arrow_to_file().raise();
    }
    // SAFETY: a plain global of the backend.
    if unsafe { pg_sys::whereToSendOutput } != pg_sys::CommandDest::DestRemote || !client::is_socket() {
        CacheError::arrow_to_nobody().raise();
    }
}

/// Raises unless the query is a SELECT.
fn check_query(query: Tree<'_, pg_sys::Node>) {
    if query.tag() != NodeTag::T_SelectStmt {
        CacheError::not_one_select(export::command_name(query)).raise();
    }
}

/// Bytes that a column takes at most in the query for a table: its name in quotes, every byte of it doubled, three
/// times, and a place in a list that doubles as it grows.
const BYTES_OF_NAME: usize = 8 * pg_sys::NAMEDATALEN as usize;

/// The query that gives what COPY would copy of a table: its own rows, and its columns except the generated ones.
/// `None` for anything else, about which the server has errors of its own. It gets our options then, and refuses them
/// at the latest.
fn table_query(statement: Tree<'_, pg_sys::CopyStmt>) -> Option<CString> {
    // SAFETY: a COPY without a query names a relation. The relation is read while it is open, and its names are C
    // strings. The lock that the server would take stays until the end of the transaction.
    unsafe {
        let relation = kept!(pg_sys::table_openrv(statement.relation, pg_sys::AccessShareLock as _));
        // A copy: the catalog searches below may have the server read the description again, in its place.
        let class = *(*relation).rd_rel;
        let is_copied = match class.relkind as u8 {
            pg_sys::RELKIND_RELATION => true,
            pg_sys::RELKIND_MATVIEW => compat::copies_materialized_views() && class.relispopulated,
            _ => false,
        };
        let query = is_copied.then(|| {
            let row_type = RowType::of((*relation).rd_att);
            let _headroom = or_raise(headroom(row_type.len() * BYTES_OF_NAME));
            let numbers = kept!(pg_sys::CopyGetAttnums(row_type.as_ptr(), relation, statement.attlist));
            let columns: Vec<Vec<u8>> = integers(numbers)
                .filter_map(|number| row_type.attribute(number as usize - 1))
                .map(|attribute| quoted(CStr::from_ptr(attribute.attname.data.as_ptr())))
                .collect();
            let schema = quoted(CStr::from_ptr(kept!(pg_sys::get_namespace_name(class.relnamespace))));
            let table = quoted(CStr::from_ptr(class.relname.data.as_ptr()));
            [b"SELECT ", &*columns.join(&b", "[..]), b" FROM ONLY ", &*schema, b".", &*table].concat()
        });
        kept!(pg_sys::table_close(relation, pg_sys::NoLock as _));
        query.and_then(|query| CString::new(query).ok())
    }
}

/// A name as it is written in SQL, in the encoding of the database.
fn quoted(name: &CStr) -> Vec<u8> {
    // SAFETY: the server returns its argument or a palloc'd, NUL-terminated copy.
    unsafe { CStr::from_ptr(kept!(pg_sys::quote_identifier(name.as_ptr()))) }.to_bytes().to_vec()
}

/// The raw statement of a text that is one SELECT.
fn parsed(text: &CStr) -> *mut pg_sys::Node {
    match export::parse_one(text) {
        Ok(raw) => raw.stmt,
        Err(found) => CacheError::not_one_select(format!("{found} statements")).raise(),
    }
}
