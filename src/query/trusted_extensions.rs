//! Extensions that a superuser trusts (`trusted_extensions`): their immutable functions in C, and the operators and operator classes made of
//! these, count like built-in ones. What of the better known extensions is safe stands in a table, which the setting does not overrule; for
//! others the superuser promises that their functions depend on their arguments alone. Reads catalogs; keeps nothing.
//!
//! Whoever owns an extension may add objects of his own to it. Only superusers can make functions in C, so that an operator is as good as its
//! functions, and a function that has left the extension is as good as before: membership has no version, and needs none.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg::catalog_row::CatalogRow;
use crate::pg::object_ids::{C_LANGUAGE, FIRST_UNPINNED_OID, INTERNAL_LANGUAGE};
use crate::settings;

/// Languages whose functions are not kept as a text that the server reads.
const COMPILED: [u32; 2] = [INTERNAL_LANGUAGE, C_LANGUAGE];

/// Which functions of an extension are safe, among those in C that are declared IMMUTABLE and have arguments and results of plain types.
enum Safe {
    /// All.
    All,
    /// These.
    Only(&'static [&'static [u8]]),
    /// None.
    Nothing,
}

/// What is known of extensions.
const KNOWN: &[(&[u8], Safe)] = &[
    (b"btree_gin", Safe::All),
    (b"btree_gist", Safe::All),
    (b"citext", Safe::All),
    (b"cube", Safe::All),
    (b"earthdistance", Safe::All),
    (b"fuzzystrmatch", Safe::All),
    (b"hstore", Safe::All),
    (b"intarray", Safe::All),
    // Whether it accepts a wrong check digit is state of the session.
    (b"isn", Safe::Nothing),
    (b"ltree", Safe::All),
    // The others read thresholds, which are settings.
    (b"pg_trgm", Safe::Only(&[b"similarity", b"similarity_dist", b"show_trgm"])),
    // The others read settings in some versions.
    (
        b"pgcrypto",
        Safe::Only(&[b"digest", b"hmac", b"encrypt", b"decrypt", b"encrypt_iv", b"decrypt_iv", b"armor", b"dearmor"]),
    ),
    // Many of its functions read spatial_ref_sys, or files.
    (b"postgis", Safe::Nothing),
    (b"postgis_raster", Safe::Nothing),
    (b"postgis_topology", Safe::Nothing),
    (b"seg", Safe::All),
    (b"timescaledb", Safe::Only(&[b"time_bucket"])),
    // Its dictionary is a file.
    (b"unaccent", Safe::Nothing),
    (b"uuid-ossp", Safe::All),
    (b"vector", Safe::All),
    (b"xml2", Safe::Nothing),
];

/// A number that stands for the present list of trusted extensions: 0 if it is empty.
pub fn fingerprint() -> u64 {
    settings::trusted_extensions().map_or(0, |list| {
        let mut hash = arrow_cache_core::HashBuffer::new();
        hash.part(list.to_bytes());
        hash.finish().lo | 1
    })
}

/// Is the extension that this object belongs to on the list? Returns its name if so.
fn trusted_extension_of(catalog: pg_sys::Oid, object: pg_sys::Oid) -> Option<&'static CStr> {
    let list = settings::trusted_extensions()?;
    let name = extension_of(catalog, object)?;
    let is_listed = |entry: &[u8]| entry.trim_ascii().eq_ignore_ascii_case(name.to_bytes());
    list.to_bytes().split(|byte| *byte == b',').any(is_listed).then_some(name)
}

/// The name of the extension that an object belongs to.
fn extension_of(catalog: pg_sys::Oid, object: pg_sys::Oid) -> Option<&'static CStr> {
    // SAFETY: reads catalogs; InvalidOid and null for what is not there. The name is a copy in the current memory context, in which the check
    // of a query ends before it is freed.
    unsafe {
        let extension = pg_sys::getExtensionOfObject(catalog, object);
        let name = pg_sys::get_extension_name(extension);
        (!name.is_null()).then(|| CStr::from_ptr(name))
    }
}

/// The name of the extension that a function belongs to.
pub fn extension_of_function(function: pg_sys::Oid) -> Option<&'static CStr> {
    extension_of(pg_sys::ProcedureRelationId, function)
}

/// Does a function that is not built in count like one that is, and depends on its arguments alone?
pub fn is_trusted_function(function: pg_sys::Oid) -> bool {
    if settings::trusted_extensions().is_none() || function.to_u32() < FIRST_UNPINNED_OID {
        return false;
    }
    let Some(row) = CatalogRow::find(pg_sys::SysCacheIdentifier::PROCOID, function) else { return false };
    let (Some(form), Some(arguments)) = (row.function(), row.arguments()) else { return false };
    let is_pure = COMPILED.contains(&form.prolang.to_u32())
        && form.prokind as u8 == pg_sys::PROKIND_FUNCTION
        && form.provolatile as u8 == pg_sys::PROVOLATILE_IMMUTABLE
        && !form.prosecdef
        && !form.proretset
        && row.is_null(pg_sys::Anum_pg_proc_proconfig as i16)
        && is_plain(form.prorettype)
        && arguments.iter().all(|argument| !argument.is_output && is_plain(argument.type_oid));
    if !is_pure {
        return false;
    }
    let Some(extension) = trusted_extension_of(pg_sys::ProcedureRelationId, function) else { return false };
    // SAFETY: a name in a row that is held, which ends with NUL.
    let name = unsafe { CStr::from_ptr(form.proname.data.as_ptr()) }.to_bytes();
    // What a client is sent is in its encoding, which is not in the key.
    !name.ends_with(b"send") && !name.ends_with(b"recv") && is_safe(extension.to_bytes(), name)
}

fn is_safe(extension: &[u8], function: &[u8]) -> bool {
    match KNOWN.iter().find(|(known, _)| *known == extension) {
        None | Some((_, Safe::All)) => true,
        Some((_, Safe::Only(names))) => names.contains(&function),
        Some((_, Safe::Nothing)) => false,
    }
}

/// Has a value of this type all that a function may read of it? Rows and values of types that a call chooses call functions of their parts.
fn is_plain(type_oid: pg_sys::Oid) -> bool {
    // SAFETY: reads a catalog about the type of an argument.
    let kind = unsafe { pg_sys::get_typtype(type_oid) } as u8;
    kind == pg_sys::TYPTYPE_BASE
}

/// Is this a type of a trusted extension whose output function depends on its argument alone?
pub fn is_trusted_type(type_oid: pg_sys::Oid) -> bool {
    is_plain(type_oid)
        && trusted_extension_of(pg_sys::TypeRelationId, type_oid).is_some_and(|extension| !is_known_unsafe(extension))
}

/// Does an operator that is not built in count like one that is, as far as its functions do?
pub fn is_trusted_operator(operator: pg_sys::Oid) -> bool {
    trusted_extension_of(pg_sys::OperatorRelationId, operator).is_some()
}

/// Does an operator family that is not built in count like one that is?
pub fn is_trusted_family(family: pg_sys::Oid) -> bool {
    trusted_extension_of(pg_sys::OperatorFamilyRelationId, family).is_some()
}

/// Does an operator class that is not built in count like one that is?
pub fn is_trusted_class(class: pg_sys::Oid) -> bool {
    trusted_extension_of(pg_sys::OperatorClassRelationId, class).is_some_and(|extension| !is_known_unsafe(extension))
}

/// Is nothing of this extension safe?
fn is_known_unsafe(extension: &CStr) -> bool {
    matches!(KNOWN.iter().find(|(known, _)| *known == extension.to_bytes()), Some((_, Safe::Nothing)))
}
