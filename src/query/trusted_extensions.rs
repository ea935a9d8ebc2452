//! Extensions that a superuser trusts (`trusted_extensions`): their immutable functions in C, and the operators and
//! aggregates made of these, count like built-in ones. What of the better known extensions is safe stands in a table,
//! which the setting does not overrule; for others the superuser promises that their functions depend on their
//! arguments alone. Reads catalogs; keeps nothing.
//!
//! Whoever owns an extension may add objects of his own to it. Only superusers can make functions in C, so that an
//! operator is as good as its functions, and a function that has left the extension is as good as before: membership
//! has no version, and needs none.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg::catalog_row::{CatalogRow, DeclaredArgument};
use crate::pg::extension;
use crate::pg::object_ids::{C_LANGUAGE, FIRST_UNPINNED_OID, INTERNAL_LANGUAGE};
use crate::pg::row_type;
use crate::pg::type_catalog::kind_of;
use crate::settings;

/// Languages whose functions are not kept as a text that the server reads.
const COMPILED: [u32; 2] = [INTERNAL_LANGUAGE, C_LANGUAGE];

/// Which functions of an extension are safe, among those in C that are declared IMMUTABLE and have arguments and
/// results of plain types. Lists have spaces between the names.
enum Safe {
    /// These.
    Only(&'static str),
    /// All but those of `names`, and those with arguments or results of `types`, as `scripts/functions/extension.py`
    /// has found in the code of the versions whose numbers begin so.
    AllBut { versions: &'static str, types: &'static str, names: &'static str },
    /// None.
    Nothing,
}

/// Extensions of which not all is safe, as far as they are known.
const KNOWN: &[(&str, Safe)] = &[
    // Whether it accepts a wrong check digit is state of the session.
    ("isn", Safe::Nothing),
    // The others read thresholds, which are settings.
    ("pg_trgm", Safe::Only("similarity similarity_dist show_trgm")),
    // The others read settings in some versions.
    ("pgcrypto", Safe::Only("digest hmac encrypt decrypt encrypt_iv decrypt_iv armor dearmor")),
    // These read spatial_ref_sys, the files of PROJ or the clock, or show which libraries are loaded.
    (
        "postgis",
        Safe::AllBut {
            versions: "3.3.",
            types: "geography _geography",
            names: "_st_asgml _st_geomfromgml json jsonb postgis_geos_version postgis_lib_version postgis_libjson_version \
                postgis_libprotobuf_version postgis_libxml_version postgis_proj_version postgis_transform_geometry \
                postgis_wagyu_version st_asgeojson st_asgml st_askml st_asmarc21 st_astwkb st_fromflatgeobuftotable \
                st_generatepoints st_geomfromgeojson st_geomfromgml st_gmltosql st_transform",
        },
    ),
    ("postgis_raster", Safe::Nothing),
    ("postgis_topology", Safe::Nothing),
    ("timescaledb", Safe::Only("time_bucket")),
    // Its dictionary is a file.
    ("unaccent", Safe::Nothing),
    ("xml2", Safe::Nothing),
];

fn known(extension: &CStr) -> Option<&'static Safe> {
    KNOWN.iter().find(|(name, _)| name.as_bytes() == extension.to_bytes()).map(|(_, safe)| safe)
}

fn lists(names: &str, name: &CStr) -> bool {
    names.split(' ').any(|listed| listed.as_bytes() == name.to_bytes())
}

/// A number that stands for the present list of trusted extensions: 0 if it is empty.
pub fn fingerprint() -> u64 {
    settings::trusted_extensions().map_or(0, |list| {
        let mut hash = arrow_cache_core::HashBuffer::new();
        hash.part(list.to_bytes());
        hash.finish().lo | 1
    })
}

/// Returns true if an extension of this name is on the list.
pub fn is_listed(name: &CStr) -> bool {
    let is_it = |entry: &[u8]| entry.trim_ascii().eq_ignore_ascii_case(name.to_bytes());
    settings::trusted_extensions().is_some_and(|list| list.to_bytes().split(|byte| *byte == b',').any(is_it))
}

/// The extension that this object belongs to, if it is on the list.
fn trusted_extension_of(catalog: pg_sys::Oid, object: pg_sys::Oid) -> Option<Extension> {
    settings::trusted_extensions()?;
    extension_of(catalog, object).filter(|extension| is_listed(extension.name))
}

/// An extension. Its name is a copy in the current memory context, in which the check of a query ends before it is
/// freed.
pub struct Extension {
    oid: pg_sys::Oid,
    pub name: &'static CStr,
}

/// The extension that an object belongs to.
pub fn extension_of(catalog: pg_sys::Oid, object: pg_sys::Oid) -> Option<Extension> {
    // SAFETY: reads catalogs; InvalidOid and null for what is not there.
    unsafe {
        let oid = kept!(pg_sys::getExtensionOfObject(catalog, object));
        let name = kept!(pg_sys::get_extension_name(oid));
        (!name.is_null()).then(|| Extension { oid, name: CStr::from_ptr(name) })
    }
}

/// Returns true if a function or an aggregate that is not built in counts like one that is, and depends on its
/// arguments alone. Of an aggregate the parts are to be asked for, too.
pub fn is_trusted_function(function: pg_sys::Oid) -> bool {
    settings::trusted_extensions().is_some() && of_pure(function).is_some_and(|extension| is_listed(extension.name))
}

/// Returns true if this is a function of a user that does not count like a built-in one.
pub fn is_of_user(function: pg_sys::Oid) -> bool {
    function.to_u32() >= FIRST_UNPINNED_OID && !is_trusted_function(function)
}

/// The extension of a function whose code depends on its arguments alone.
pub fn of_pure(function: pg_sys::Oid) -> Option<Extension> {
    if function.to_u32() < FIRST_UNPINNED_OID {
        return None;
    }
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::PROCOID, function)?;
    let (form, arguments) = (row.function()?, row.arguments()?);
    let inputs = || arguments.iter().filter(|argument| argument.is_input);
    // The state of an aggregate. No query has such a value, so only aggregates call these; how they are declared nobody
    // asks.
    let is_part = inputs().any(|argument| argument.type_oid == pg_sys::INTERNALOID);
    let is_code = match form.prokind as u8 {
        pg_sys::PROKIND_FUNCTION => {
            COMPILED.contains(&form.prolang.to_u32())
                && (is_part || form.provolatile as u8 == pg_sys::PROVOLATILE_IMMUTABLE)
        }
        pg_sys::PROKIND_AGGREGATE => true,
        _ => false,
    };
    let is_pure = is_code
        && !form.prosecdef
        && row.is_null(pg_sys::Anum_pg_proc_proconfig as i16)
        && inputs().all(|argument| is_plain(argument.type_oid) || argument.type_oid == pg_sys::INTERNALOID)
        && is_made_of_plain(form.prorettype, &arguments);
    if !is_pure {
        return None;
    }
    // SAFETY: a name in a row that is held, which ends with NUL.
    let name = unsafe { CStr::from_ptr(form.proname.data.as_ptr()) };
    let types = arguments.iter().map(|argument| argument.type_oid).chain([form.prorettype]);
    // What a client is sent is in its encoding, which is not in the key.
    extension_of(pg_sys::ProcedureRelationId, function)
        .filter(|extension| !is_of_protocol(name) && is_safe(extension, name, types))
}

fn is_of_protocol(function: &CStr) -> bool {
    function.to_bytes().ends_with(b"send") || function.to_bytes().ends_with(b"recv")
}

fn is_safe(extension: &Extension, function: &CStr, mut types: impl Iterator<Item = pg_sys::Oid>) -> bool {
    match known(extension.name) {
        None => true,
        Some(Safe::Only(names)) => lists(names, function),
        Some(Safe::Nothing) => false,
        Some(Safe::AllBut { versions, types: excluded, names }) => {
            !lists(names, function)
                && !types.any(|type_oid| is_named(type_oid, excluded))
                && is_version(extension, versions)
        }
    }
}

fn is_version(extension: &Extension, begins_with: &str) -> bool {
    extension::version(extension.oid).is_some_and(|version| version.to_bytes().starts_with(begins_with.as_bytes()))
}

/// Returns true if a type has one of these names, or is not there.
fn is_named(type_oid: pg_sys::Oid, names: &str) -> bool {
    CatalogRow::find(pg_sys::SysCacheIdentifier::TYPEOID, type_oid).is_none_or(|row| {
        // SAFETY: a name in a row that is held, which ends with NUL.
        row.data_type().is_none_or(|form| lists(names, unsafe { CStr::from_ptr(form.typname.data.as_ptr()) }))
    })
}

/// Returns true if a result is a value of a plain type, or rows of such, or the state of an aggregate.
fn is_made_of_plain(result: pg_sys::Oid, arguments: &[DeclaredArgument]) -> bool {
    if result == pg_sys::RECORDOID {
        let mut columns = arguments.iter().filter(|argument| argument.is_output).peekable();
        return columns.peek().is_some() && columns.all(|column| is_plain(column.type_oid));
    }
    match kind_of(result) {
        pg_sys::TYPTYPE_COMPOSITE => row_type::columns_of(result).into_iter().all(is_plain),
        _ => is_plain(result) || result == pg_sys::INTERNALOID,
    }
}

/// Returns true if a value of this type has all that a function may read of it. Rows and values of types that a call
/// chooses call functions of their parts.
fn is_plain(type_oid: pg_sys::Oid) -> bool {
    kind_of(type_oid) == pg_sys::TYPTYPE_BASE
}

/// Returns true if this is a type of a trusted extension whose output function depends on its argument alone.
pub fn is_trusted_type(type_oid: pg_sys::Oid) -> bool {
    is_plain(type_oid)
        && trusted_extension_of(pg_sys::TypeRelationId, type_oid).is_some_and(|extension| !is_known_unsafe(&extension))
}

/// Returns true if an operator that is not built in counts like one that is, as far as its functions do.
pub fn is_trusted_operator(operator: pg_sys::Oid) -> bool {
    trusted_extension_of(pg_sys::OperatorRelationId, operator).is_some()
}

/// Returns true if this is an operator family of a user that does not count like a built-in one.
pub fn is_family_of_user(family: pg_sys::Oid) -> bool {
    family.to_u32() >= FIRST_UNPINNED_OID && trusted_extension_of(pg_sys::OperatorFamilyRelationId, family).is_none()
}

/// Returns true if nothing of this extension is safe.
fn is_known_unsafe(extension: &Extension) -> bool {
    match known(extension.name) {
        Some(Safe::Nothing) => true,
        Some(Safe::AllBut { versions, .. }) => !is_version(extension, versions),
        _ => false,
    }
}
