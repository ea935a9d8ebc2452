//! Extensions that a superuser trusts (`trusted_extensions`): their immutable functions in C, and the operators and
//! aggregates made of these, count like built-in ones. What of the better known extensions is safe
//! stands in a table, which the setting does not overrule; for others the superuser promises that their functions
//! depend on their arguments alone. Reads catalogs; keeps nothing.
//!
//! Whoever owns an extension may add objects of his own to it. Only superusers can make functions in C, so that an operator is as good as its
//! functions, and a function that has left the extension is as good as before: membership has no version, and needs none.

use std::ffi::{CStr, c_char, c_void};

use pgrx::pg_sys;

use crate::pg::catalog_row::{CatalogRow, DeclaredArgument};
use crate::pg::error_passing::edge;
use crate::pg::extension;
use crate::pg::object_ids::{C_LANGUAGE, FIRST_UNPINNED_OID, INTERNAL_LANGUAGE};
use crate::pg::row_type;
use crate::{error, settings};

/// Languages whose functions are not kept as a text that the server reads.
const COMPILED: [u32; 2] = [INTERNAL_LANGUAGE, C_LANGUAGE];

/// Which functions of an extension are safe, among those in C that are declared IMMUTABLE and have arguments and results of plain types.
enum Safe {
    /// All.
    All,
    /// These.
    Only(&'static [&'static [u8]]),
    /// All but some, as `scripts/functions/extension.py` has found in the code of these versions.
    AllBut {
        /// How the numbers of the versions begin.
        versions: &'static [u8],
        /// Those with arguments or results of these types.
        types: &'static [&'static [u8]],
        /// Those of these names.
        names: &'static [&'static [u8]],
    },
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
    // These read spatial_ref_sys, the files of PROJ or the clock, or show which libraries are loaded.
    (
        b"postgis",
        Safe::AllBut {
            versions: b"3.3.",
            types: &[b"geography", b"_geography"],
            names: &[
                b"_st_asgml",
                b"_st_geomfromgml",
                b"json",
                b"jsonb",
                b"postgis_geos_version",
                b"postgis_lib_version",
                b"postgis_libjson_version",
                b"postgis_libprotobuf_version",
                b"postgis_libxml_version",
                b"postgis_proj_version",
                b"postgis_transform_geometry",
                b"postgis_wagyu_version",
                b"st_asgeojson",
                b"st_asgml",
                b"st_askml",
                b"st_asmarc21",
                b"st_astwkb",
                b"st_fromflatgeobuftotable",
                b"st_generatepoints",
                b"st_geomfromgeojson",
                b"st_geomfromgml",
                b"st_gmltosql",
                b"st_transform",
            ],
        },
    ),
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

/// Returns true if an extension of this name is on the list.
fn is_listed(name: &CStr) -> bool {
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
struct Extension {
    oid: pg_sys::Oid,
    name: &'static CStr,
}

/// The extension that an object belongs to.
fn extension_of(catalog: pg_sys::Oid, object: pg_sys::Oid) -> Option<Extension> {
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

/// What trusting the extension that a function belongs to would change, as the end of the sentence "It calls …".
/// Nothing if it belongs to none.
pub fn prospect(function: pg_sys::Oid) -> Option<(&'static CStr, &'static str)> {
    let extension = extension_of(pg_sys::ProcedureRelationId, function)?;
    let sentence = match of_pure(function) {
        Some(_) if !is_listed(extension.name) => {
            ", which would count like a built-in one if pg_arrow_cache.trusted_extensions named that extension"
        }
        _ => ", which trusting that extension does not change",
    };
    Some((extension.name, sentence))
}

/// The extension of a function whose code depends on its arguments alone, if that is trusted.
fn of_pure(function: pg_sys::Oid) -> Option<Extension> {
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
    let name = unsafe { CStr::from_ptr(form.proname.data.as_ptr()) }.to_bytes();
    let types = arguments.iter().map(|argument| argument.type_oid).chain([form.prorettype]);
    // What a client is sent is in its encoding, which is not in the key.
    extension_of(pg_sys::ProcedureRelationId, function)
        .filter(|extension| !name.ends_with(b"send") && !name.ends_with(b"recv") && is_safe(extension, name, types))
}

fn is_safe(extension: &Extension, function: &[u8], mut types: impl Iterator<Item = pg_sys::Oid>) -> bool {
    match KNOWN.iter().find(|(known, _)| *known == extension.name.to_bytes()) {
        None | Some((_, Safe::All)) => true,
        Some((_, Safe::Only(names))) => names.contains(&function),
        Some((_, Safe::Nothing)) => false,
        Some((_, Safe::AllBut { versions, types: excluded, names })) => {
            !names.contains(&function)
                && !types.any(|type_oid| is_named(type_oid, excluded))
                && is_version(extension, versions)
        }
    }
}

fn is_version(extension: &Extension, begins_with: &[u8]) -> bool {
    extension::version(extension.oid).is_some_and(|version| version.to_bytes().starts_with(begins_with))
}

/// Returns true if a type has one of these names, or is not there.
fn is_named(type_oid: pg_sys::Oid, names: &[&[u8]]) -> bool {
    CatalogRow::find(pg_sys::SysCacheIdentifier::TYPEOID, type_oid).is_none_or(|row| {
        // SAFETY: a name in a row that is held, which ends with NUL.
        row.data_type()
            .is_none_or(|form| names.contains(&unsafe { CStr::from_ptr(form.typname.data.as_ptr()) }.to_bytes()))
    })
}

/// Returns true if a result is a value of a plain type, or rows of such, or the state of an aggregate.
fn is_made_of_plain(result: pg_sys::Oid, arguments: &[DeclaredArgument]) -> bool {
    if result == pg_sys::RECORDOID {
        let mut columns = arguments.iter().filter(|argument| argument.is_output).peekable();
        return columns.peek().is_some() && columns.all(|column| is_plain(column.type_oid));
    }
    // SAFETY: reads a catalog about the type of a result.
    match unsafe { kept!(pg_sys::get_typtype(result)) } as u8 {
        pg_sys::TYPTYPE_COMPOSITE => row_type::columns_of(result).into_iter().all(is_plain),
        _ => is_plain(result) || result == pg_sys::INTERNALOID,
    }
}

/// Has a value of this type all that a function may read of it? Rows and values of types that a call chooses call functions of their parts.
fn is_plain(type_oid: pg_sys::Oid) -> bool {
    // SAFETY: reads a catalog about the type of an argument.
    let kind = unsafe { kept!(pg_sys::get_typtype(type_oid)) } as u8;
    kind == pg_sys::TYPTYPE_BASE
}

/// Is this a type of a trusted extension whose output function depends on its argument alone?
pub fn is_trusted_type(type_oid: pg_sys::Oid) -> bool {
    is_plain(type_oid)
        && trusted_extension_of(pg_sys::TypeRelationId, type_oid).is_some_and(|extension| !is_known_unsafe(&extension))
}

/// Does an operator that is not built in count like one that is, as far as its functions do?
pub fn is_trusted_operator(operator: pg_sys::Oid) -> bool {
    trusted_extension_of(pg_sys::OperatorRelationId, operator).is_some()
}

/// Does an operator family that is not built in count like one that is?
pub fn is_trusted_family(family: pg_sys::Oid) -> bool {
    trusted_extension_of(pg_sys::OperatorFamilyRelationId, family).is_some()
}

/// Is nothing of this extension safe?
fn is_known_unsafe(extension: &Extension) -> bool {
    match KNOWN.iter().find(|(known, _)| *known == extension.name.to_bytes()) {
        Some((_, Safe::Nothing)) => true,
        Some((_, Safe::AllBut { versions, .. })) => !is_version(extension, versions),
        _ => false,
    }
}

/// Called by the server before it takes a list. Warns whoever sets it of each name that changes nothing, whatever the
/// version. Reads no catalogs, since there may be no transaction.
pub unsafe extern "C-unwind" fn check_list(
    list: *mut *mut c_char,
    _extra: *mut *mut c_void,
    source: pg_sys::GucSource::Type,
) -> bool {
    let body = || {
        // SAFETY: null, or a text that ends with NUL, as the server promises; a plain global. Parallel workers take over
        // what their leader has set.
        let list = unsafe {
            if source < pg_sys::GucSource::PGC_S_INTERACTIVE || pg_sys::InitializingParallelWorker || (*list).is_null()
            {
                return true;
            }
            CStr::from_ptr(*list)
        };
        for name in list.to_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            let is_useless =
                |(known, safe): &(&[u8], Safe)| known.eq_ignore_ascii_case(name) && matches!(safe, Safe::Nothing);
            if let Some((known, _)) = KNOWN.iter().find(|entry| is_useless(entry)) {
                error::warn_of_useless_trust(&String::from_utf8_lossy(known));
            }
        }
        true
    };
    // SAFETY: the server calls this; no frame between has destructors.
    unsafe { edge(body) }
}
