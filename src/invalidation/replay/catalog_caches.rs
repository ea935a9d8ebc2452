//! Which catalog a message about a row of a system cache is about. Constants only.

use pgrx::pg_sys::SysCacheIdentifier as Cache;

/// The catalog of a cache, as far as `invalidation::catalogs` treats it otherwise than by outdating all results of the
/// database; `None` for one whose changes may concern them all.
pub fn catalog_of(cache: i8) -> Option<u16> {
    let catalog = match Cache::Type::try_from(cache).ok()? {
        Cache::ATTNAME | Cache::ATTNUM => 1249,
        Cache::AUTHMEMMEMROLE | Cache::AUTHMEMROLEMEM => 1261,
        Cache::AUTHNAME | Cache::AUTHOID => 1260,
        Cache::CONSTROID => 2606,
        Cache::DATABASEOID => 1262,
        Cache::DEFACLROLENSPOBJ => 826,
        Cache::ENUMOID | Cache::ENUMTYPOIDNAME => 3501,
        Cache::EVENTTRIGGERNAME | Cache::EVENTTRIGGEROID => 3466,
        Cache::INDEXRELID => 2610,
        Cache::NAMESPACENAME | Cache::NAMESPACEOID => 2615,
        Cache::PARAMETERACLNAME | Cache::PARAMETERACLOID => 6243,
        Cache::PARTRELID => 3350,
        Cache::PUBLICATIONNAME | Cache::PUBLICATIONOID => 6104,
        Cache::PUBLICATIONNAMESPACE | Cache::PUBLICATIONNAMESPACEMAP => 6237,
        Cache::PUBLICATIONREL | Cache::PUBLICATIONRELMAP => 6106,
        Cache::RELNAMENSP | Cache::RELOID => 1259,
        Cache::REPLORIGIDENT | Cache::REPLORIGNAME => 6000,
        Cache::RULERELNAME => 2618,
        Cache::SEQRELID => 2224,
        Cache::STATEXTDATASTXOID => 3429,
        Cache::STATEXTNAMENSP | Cache::STATEXTOID => 3381,
        Cache::STATRELATTINH => 2619,
        Cache::SUBSCRIPTIONNAME | Cache::SUBSCRIPTIONOID => 6100,
        Cache::SUBSCRIPTIONRELMAP => 6102,
        Cache::TABLESPACEOID => 1213,
        Cache::TYPENAMENSP | Cache::TYPEOID => 1247,
        _ => return None,
    };
    Some(catalog)
}
