//! The server's catalogs, sorted by the results that can rest on their rows: all results of the server, all results of
//! the database, those of queries inside of functions, results over the relations that the server names in its
//! invalidations, or none. Constants only.

use crate::pg::object_ids::FIRST_USER_OID;

/// Shared catalogs of roles and their memberships. What a role is and may do is in the key of its answers, so that a
/// change matters only to queries inside of functions, which ask as others as well. Ascending.
const ROLES: &[u32] = &[
    1260, // pg_authid
    1261, // pg_auth_members
];

/// pg_database. Its name and its owner are in the key, but a new database may have the OID of one that is gone.
const DATABASES: u32 = 1262;

/// Catalogs in which a new row changes the meaning of names alone: a text that is analysed anew is another question.
/// Only queries inside of functions are not in the key. Ascending.
const NAMED: &[u32] = &[
    FUNCTIONS, // pg_proc
    2600,      // pg_aggregate
    3456,      // pg_collation
];

/// Catalogs whose rows tell who may use relations, or that send no messages about relations. Ascending.
const WITH_RIGHTS: &[u32] = &[
    826,     // pg_default_acl
    1249,    // pg_attribute
    1259,    // pg_class
    SCHEMAS, // pg_namespace
    3394,    // pg_init_privs
];

/// pg_namespace.
pub const SCHEMAS: u32 = 2615;

/// Catalogs whose change cannot change a query's answer: statistics, comments, dependencies, large objects, tablespaces
/// themselves, progress of replication, and settings (which are in the key when they take effect). Ascending.
const HARMLESS_CATALOGS: &[u32] = &[
    1213, // pg_tablespace
    1214, // pg_shdepend
    2396, // pg_shdescription
    2608, // pg_depend
    2609, // pg_description
    2613, // pg_largeobject
    2619, // pg_statistic
    2964, // pg_db_role_setting
    2995, // pg_largeobject_metadata
    3429, // pg_statistic_ext_data
    3592, // pg_shseclabel
    6000, // pg_replication_origin
    6102, // pg_subscription_rel
    6243, // pg_parameter_acl
];

/// Catalogs whose change matters only to results over relations that the server invalidates for it, or only to how
/// names are resolved, which is in the key of a result. Ascending.
///
/// Types belong here: a result can depend on the labels of a type (pg_enum, see `ENUM_LABELS`) and on its attributes,
/// which are those of a relation. Constraints of domains do not count, because a query that checks them is bypassed.
const LOCAL_CATALOGS: &[u32] = &[
    826,         // pg_default_acl
    1247,        // pg_type
    1249,        // pg_attribute
    1259,        // pg_class
    2224,        // pg_sequence
    2604,        // pg_attrdef
    2606,        // pg_constraint
    2610,        // pg_index
    2611,        // pg_inherits
    SCHEMAS,     // pg_namespace
    2618,        // pg_rewrite
    2620,        // pg_trigger
    3256,        // pg_policy
    3350,        // pg_partitioned_table
    3381,        // pg_statistic_ext
    3394,        // pg_init_privs
    3466,        // pg_event_trigger
    ENUM_LABELS, // pg_enum
    6100,        // pg_subscription
    6104,        // pg_publication
    6106,        // pg_publication_rel
    6237,        // pg_publication_namespace
];

/// TOAST tables of catalogs. What they keep changes with a row of their catalog, which counts. Ascending.
const TOAST_TABLES: &[u32] = &[
    2336, 2830, 2832, 2834, 2838, 2840, 2846, 2966, 3430, 3439, 4060, 4143, 4145, 4155, 4163, 4165, 4167, 4171, 4175,
    4177, 4181, 4183, 4185, 6228, 6244,
];

/// pg_proc.
pub const FUNCTIONS: u32 = 1255;

/// pg_enum.
pub const ENUM_LABELS: u32 = 3501;

/// What the lists say of a catalog.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing: all results of its database may rest on it.
    Other,
    /// Queries inside of functions do.
    Roles,
    /// All results of the server may, if one is new or gone.
    Databases,
    /// Those of queries inside of functions do on new rows, and all results of its database may on others.
    Named,
    /// No result does.
    Harmless,
    /// Those over relations that the server names do, or those with enums.
    Local,
}

/// `None` for what is no catalog.
pub fn kind_of(relation: u32) -> Option<Kind> {
    let lists = [
        (ROLES, Kind::Roles),
        (&[DATABASES], Kind::Databases),
        (NAMED, Kind::Named),
        (HARMLESS_CATALOGS, Kind::Harmless),
        (TOAST_TABLES, Kind::Harmless),
        (LOCAL_CATALOGS, Kind::Local),
    ];
    let listed = || lists.into_iter().find(|(oids, _)| oids.contains(&relation));
    (relation < FIRST_USER_OID).then(|| listed().map_or(Kind::Other, |(_, kind)| kind))
}

/// Returns true if a relation that is redefined beside a change of this catalog may have changed its rights alone.
pub fn may_hold_rights(catalog: u32) -> bool {
    WITH_RIGHTS.contains(&catalog)
}

/// Returns true if a change of this relation changes a definition.
pub fn is_meaningful_catalog(relation: u32) -> bool {
    kind_of(relation).is_some_and(|kind| kind != Kind::Harmless)
}
