//! Which catalog a message about a row of a system cache is about. Constants only.

use pgrx::pg_sys::SysCacheIdentifier as Cache;

/// Caches and the OIDs of their catalogs, as far as `invalidation::catalogs` treats these otherwise than by outdating all results of the
/// database.
const CATALOGS: &[(Cache::Type, u16)] = &[
    (Cache::ATTNAME, 1249),
    (Cache::ATTNUM, 1249),
    (Cache::AUTHMEMMEMROLE, 1261),
    (Cache::AUTHMEMROLEMEM, 1261),
    (Cache::AUTHNAME, 1260),
    (Cache::AUTHOID, 1260),
    (Cache::CONSTROID, 2606),
    (Cache::DATABASEOID, 1262),
    (Cache::DEFACLROLENSPOBJ, 826),
    (Cache::ENUMOID, 3501),
    (Cache::ENUMTYPOIDNAME, 3501),
    (Cache::EVENTTRIGGERNAME, 3466),
    (Cache::EVENTTRIGGEROID, 3466),
    (Cache::INDEXRELID, 2610),
    (Cache::NAMESPACENAME, 2615),
    (Cache::NAMESPACEOID, 2615),
    (Cache::PARAMETERACLNAME, 6243),
    (Cache::PARAMETERACLOID, 6243),
    (Cache::PARTRELID, 3350),
    (Cache::PUBLICATIONNAME, 6104),
    (Cache::PUBLICATIONNAMESPACE, 6237),
    (Cache::PUBLICATIONNAMESPACEMAP, 6237),
    (Cache::PUBLICATIONOID, 6104),
    (Cache::PUBLICATIONREL, 6106),
    (Cache::PUBLICATIONRELMAP, 6106),
    (Cache::RELNAMENSP, 1259),
    (Cache::RELOID, 1259),
    (Cache::REPLORIGIDENT, 6000),
    (Cache::REPLORIGNAME, 6000),
    (Cache::RULERELNAME, 2618),
    (Cache::SEQRELID, 2224),
    (Cache::STATEXTDATASTXOID, 3429),
    (Cache::STATEXTNAMENSP, 3381),
    (Cache::STATEXTOID, 3381),
    (Cache::STATRELATTINH, 2619),
    (Cache::SUBSCRIPTIONNAME, 6100),
    (Cache::SUBSCRIPTIONOID, 6100),
    (Cache::SUBSCRIPTIONRELMAP, 6102),
    (Cache::TABLESPACEOID, 1213),
    (Cache::TYPENAMENSP, 1247),
    (Cache::TYPEOID, 1247),
];

/// The catalogs by the numbers of their caches; 0 = none.
const BY_CACHE: [u16; 128] = {
    let mut catalogs = [0; 128];
    let mut n = 0;
    while n < CATALOGS.len() {
        catalogs[CATALOGS[n].0 as usize] = CATALOGS[n].1;
        n += 1;
    }
    catalogs
};

/// The catalog of a cache; `None` for one whose changes may concern all results of the database.
pub fn catalog_of(cache: i8) -> Option<u16> {
    u8::try_from(cache).ok().and_then(|cache| BY_CACHE.get(usize::from(cache))).copied().filter(|catalog| *catalog != 0)
}
