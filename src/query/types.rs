//! Types that a query meets: whose functions print, compare and convert their values, and what else answers with such
//! values rest on.

use pgrx::pg_sys;

use crate::pg::catalog_row::CatalogRow;
use crate::pg::compat;
use crate::pg::object_ids::{FIRST_UNPINNED_OID, FIRST_USER_OID};
use crate::pg::type_catalog::kind_of;

use super::row_types_and_settings::MOST_ROW_TYPES;
use super::trusted_extensions::is_of_user;

/// Deepest nesting of composite types that is classified; a deeper one counts as a user's own.
const MAX_TYPE_DEPTH: u32 = 8;

/// Built-in types whose output depends on more than the value and settings in the key: on roles, temporary objects
/// and other catalogs. The reg* types and aclitem. Ascending.
const CATALOG_DEPENDENT: &[u32] = &[24, 1033, 2202, 2203, 2204, 2205, 2206, 3734, 3769, 4089, 4096, 4191];

/// What a query's types mean to the cache.
#[derive(Debug)]
pub struct TypeFacts {
    /// A type was met whose output, or whose conversion to JSON, rests on functions of users, or on more than the key
    /// holds: any but built-in types, enums, and arrays and rows of such.
    pub foreign: bool,
    /// A type was met whose values may be enums, or contain some.
    pub enums: bool,
    /// Relations that define the row types met.
    pub row_types: Vec<u32>,
    /// A container was met whose values are compared by functions of a user, which no tree shows: those of the default
    /// operator class of what it contains.
    compared_unseen: bool,
    /// A row without a name was met whose columns are those of a sub-query, a function, VALUES or a join: of any of the
    /// types met.
    has_nameless_rows: bool,
    /// The types met, apart from what they contain.
    met: Vec<pg_sys::Oid>,
    /// A type was met whose values stand for text search objects, which the server finds by name when they are used.
    pub text_search: bool,
    /// A row type was met that a temporary table defines.
    pub temporary: bool,
    /// A type was met that nests too deeply to be classified, or more row types than are kept.
    pub too_complex: bool,
}

impl TypeFacts {
    /// No type met yet.
    pub const NONE: Self = Self {
        foreign: false,
        enums: false,
        row_types: Vec::new(),
        compared_unseen: false,
        has_nameless_rows: false,
        met: Vec::new(),
        text_search: false,
        temporary: false,
        too_complex: false,
    };

    /// Notes a type and all that it contains. One of rows without a name does not tell what it contains.
    pub fn note(&mut self, type_oid: pg_sys::Oid) {
        if matches!(type_oid, pg_sys::RECORDOID | pg_sys::RECORDARRAYOID) {
            self.has_nameless_rows = true;
        } else if !self.met.contains(&type_oid) {
            self.met.push(type_oid);
        }
        self.classify(type_oid, 0);
    }

    /// Returns true if values may have been met that are parts of others and that functions of a user compare or hash,
    /// which no tree shows.
    pub fn are_compared_unseen(&self) -> bool {
        self.compared_unseen || (self.has_nameless_rows && self.met.iter().any(|met| is_compared_by_user(*met)))
    }

    /// Notes a type as part of a row without a name.
    pub fn note_contained(&mut self, type_oid: pg_sys::Oid) {
        self.classify(type_oid, 1);
    }

    fn classify(&mut self, type_oid: pg_sys::Oid, depth: u32) {
        let number = type_oid.to_u32();
        if depth > 0 {
            // What is part of another value is compared and hashed by the default operator class of its type, which a
            // superuser may have made, also for a type of the server's own that has none.
            self.compared_unseen |= is_compared_by_user(type_oid);
        }
        if depth > MAX_TYPE_DEPTH {
            self.too_complex = true;
            return;
        }
        // SAFETY: reads catalogs by OID; they return invalid values for unknown types.
        unsafe {
            let element = kept!(pg_sys::get_element_type(type_oid));
            if element != pg_sys::InvalidOid {
                return self.classify(element, depth + 1);
            }
            if number < FIRST_UNPINNED_OID {
                self.text_search |= TEXT_SEARCH.contains(&number);
                self.foreign |= CATALOG_DEPENDENT.binary_search(&number).is_ok();
                return;
            }
            match kind_of(type_oid) {
                pg_sys::TYPTYPE_ENUM => {
                    self.enums = true;
                    self.foreign |= has_cast_to_json(type_oid);
                }
                pg_sys::TYPTYPE_DOMAIN => self.classify(kept!(pg_sys::getBaseType(type_oid)), depth + 1),
                pg_sys::TYPTYPE_COMPOSITE => self.classify_row(type_oid, depth),
                _ => {
                    // A range of enums is among these.
                    (self.enums, self.foreign) = (true, true);
                    if let Some((bound, is_compared_by_user)) = bounds(type_oid) {
                        self.compared_unseen |= is_compared_by_user;
                        self.classify(bound, depth + 1);
                    }
                }
            }
        }
    }

    /// Classifies a composite type by its columns.
    fn classify_row(&mut self, type_oid: pg_sys::Oid, depth: u32) {
        // SAFETY: the descriptor is reference counted and released below; classifying may raise, and the resource owner
        // releases the reference then.
        unsafe {
            let relation = kept!(pg_sys::get_typ_typrelid(type_oid));
            self.temporary |= kept!(pg_sys::get_rel_persistence(relation)) as u8 == pg_sys::RELPERSISTENCE_TEMP;
            let relation = relation.to_u32();
            if !self.row_types.contains(&relation) {
                if self.row_types.len() == MOST_ROW_TYPES {
                    self.too_complex = true;
                } else {
                    self.row_types.push(relation);
                }
            }
            let descriptor = kept!(pg_sys::lookup_rowtype_tupdesc(type_oid, -1));
            for index in 0..(*descriptor).natts as usize {
                let attribute = compat::tuple_attribute(descriptor, index);
                if !(*attribute).attisdropped {
                    self.classify((*attribute).atttypid, depth + 1);
                }
            }
            if (*descriptor).tdrefcount >= 0 {
                kept!(pg_sys::DecrTupleDescRefCount(descriptor));
            }
        }
    }
}

/// Returns true if somebody has defined a cast of the enum to json. The server's functions that make JSON search for
/// one at each execution, also those that make jsonb (json.c, jsonfuncs.c). Without one they call its output function.
fn has_cast_to_json(enum_type: pg_sys::Oid) -> bool {
    CatalogRow::find_cast(enum_type, pg_sys::JSONOID).is_some()
}

/// regconfig and regdictionary.
const TEXT_SEARCH: &[u32] = &[3734, 3769];

/// Returns true if functions of a user compare or hash values of this type where they are part of others.
fn is_compared_by_user(type_oid: pg_sys::Oid) -> bool {
    const WANTED: u32 = pg_sys::TYPECACHE_EQ_OPR | pg_sys::TYPECACHE_CMP_PROC | pg_sys::TYPECACHE_HASH_PROC;
    // SAFETY: raises for a type that does not exist; entries of the type cache are never freed.
    unsafe {
        let entry = &*kept!(pg_sys::lookup_type_cache(type_oid, WANTED as i32));
        is_of_user(entry.cmp_proc) || is_of_user(entry.hash_proc) || is_of_user(kept!(pg_sys::get_opcode(entry.eq_opr)))
    }
}

/// The type of the bounds of a range or multirange, and whether they are compared or normalized by code of a user;
/// `None` for another type. The operators of a class of the server's own are the server's.
fn bounds(type_oid: pg_sys::Oid) -> Option<(pg_sys::Oid, bool)> {
    /// Columns of pg_range (catalog/pg_range.h).
    const BOUND: i16 = 2;
    const OPERATOR_CLASS: i16 = 5;
    const FUNCTIONS: [i16; 2] = [6, 7];
    // SAFETY: reads catalogs by OID; they return InvalidOid for what is no multirange.
    let range = unsafe { kept!(pg_sys::get_multirange_range(type_oid)) };
    let range = if range == pg_sys::InvalidOid { type_oid } else { range };
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::RANGETYPE, range)?;
    let is_compared_by_user = row.oid(OPERATOR_CLASS)?.to_u32() >= FIRST_USER_OID
        || FUNCTIONS.into_iter().filter_map(|column| row.oid(column)).any(is_of_user);
    Some((row.oid(BOUND)?, is_compared_by_user))
}

/// Returns true if a type, or one that it contains, is foreign (`TypeFacts::foreign`).
pub fn is_foreign(type_oid: pg_sys::Oid) -> bool {
    let mut facts = TypeFacts::NONE;
    facts.note(type_oid);
    facts.foreign
}
