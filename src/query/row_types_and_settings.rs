//! What some answers rest on besides the relations of their plan: row types (as the relations that define them),
//! relations that bodies of functions read, and custom settings that the query reads by name. Found in the query tree,
//! carried inside the plan as lists of nodes. Most queries have none.

use std::ffi::{CStr, CString};

use pgrx::pg_sys;

use crate::pg::lists::{nodes, oids};
use crate::pg::tree_making::{list_of, list_of_oids};

/// Longest name of a setting that is kept; names are words of a configuration file.
pub const LONGEST_NAME: usize = 255;
/// Most settings of one query that are kept. Nobody is known to read more. These few names are copied without asking
/// for memory.
pub const MOST_SETTINGS: usize = 32;
/// Most relations that define row types of one query, which are copied without asking for memory, too.
pub const MOST_ROW_TYPES: usize = 256;

/// Relations that define row types, and names of settings.
#[derive(Clone, Copy, Debug)]
pub struct Extras {
    /// OIDs.
    relations: *mut pg_sys::List,
    /// Nodes of strings.
    settings: *mut pg_sys::List,
}

impl Extras {
    /// Returns true if there are none.
    pub fn is_none(&self) -> bool {
        self.relations.is_null() && self.settings.is_null()
    }

    /// Returns true if there are relations among them.
    pub fn has_relations(&self) -> bool {
        !self.relations.is_null()
    }

    /// Keeps relations and names, in the current memory context.
    pub fn keep(relations: &[u32], names: &[CString]) -> Self {
        // SAFETY: a copy of a text that ends with NUL.
        let string = |name: &CString| unsafe { kept!(pg_sys::makeString(kept!(pg_sys::pstrdup(name.as_ptr())))) };
        Self {
            relations: list_of_oids(relations.iter().map(|relation| pg_sys::Oid::from(*relation))),
            settings: list_of(names.iter().map(string)),
        }
    }

    /// A copy in the current memory context. What the server raises jumps over the frame.
    ///
    /// # Safety
    /// The memory context in which the extras were kept must still be there.
    pub unsafe fn copied(&self) -> Self {
        // SAFETY: lists of OIDs and nodes, in a context that is still there.
        unsafe {
            Self {
                relations: direct!(pg_sys::copyObjectImpl(self.relations.cast())).cast(),
                settings: direct!(pg_sys::copyObjectImpl(self.settings.cast())).cast(),
            }
        }
    }

    /// The relations that define row types of the query.
    ///
    /// # Safety
    /// As `copied`.
    pub unsafe fn relations(&self) -> Vec<u32> {
        // SAFETY: a list of OIDs, in a context that is still there.
        unsafe { oids(self.relations) }.map(pg_sys::Oid::to_u32).collect()
    }

    /// The names of the custom settings that the query reads.
    ///
    /// # Safety
    /// As `copied`.
    pub unsafe fn settings(&self) -> Vec<CString> {
        // SAFETY: a list of strings that end with NUL, in a context that is still there.
        unsafe { nodes::<pg_sys::String>(self.settings).map(|name| CStr::from_ptr((*name).sval).to_owned()).collect() }
    }
}
