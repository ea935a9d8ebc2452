"""What pg_upgrade must keep, as queries that read the same on every major version."""

# Rights one by one, because lists of them are written otherwise from 17 on, where the owner of a table has MAINTAIN, too.
RIGHTS = """coalesce(r.rolname, 'PUBLIC'), a.privilege_type, a.is_grantable
    FROM {catalog} AS o CROSS JOIN LATERAL aclexplode({acl}) AS a LEFT JOIN pg_roles AS r ON r.oid = a.grantee
    WHERE {where} AND a.privilege_type <> 'MAINTAIN' ORDER BY 1, 2, 3"""
OURS = "(SELECT oid FROM pg_namespace WHERE nspname = 'arrow_cache')"
MEMBERS = """(SELECT classid, objid FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
    AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_arrow_cache'))"""

IN_DATABASE = {
    "policies": """SELECT objoid::regclass, objsubid, provider, label FROM pg_seclabel WHERE classoid = 'pg_class'::regclass
        ORDER BY objoid::regclass::text COLLATE "C\"""",
    "triggers": "SELECT tgrelid::regclass, pg_get_triggerdef(oid), tgenabled FROM pg_trigger WHERE NOT tgisinternal ORDER BY tgname",
    "rights on functions": "SELECT o.oid::regprocedure::text COLLATE \"C\", " + RIGHTS.format(
        catalog="pg_proc", acl="coalesce(o.proacl, acldefault('f', o.proowner))", where=f"o.pronamespace = {OURS}"),
    "rights on views": "SELECT o.relname, " + RIGHTS.format(
        catalog="pg_class", acl="o.relacl", where=f"o.relnamespace = {OURS} AND o.relkind = 'v'"),
    "rights on the schema": "SELECT o.nspname, " + RIGHTS.format(
        catalog="pg_namespace", acl="o.nspacl", where="o.nspname = 'arrow_cache'"),
    "rights that the extension gave": "SELECT pg_describe_object(o.classoid, o.objoid, o.objsubid) COLLATE \"C\", " + RIGHTS.format(
        catalog="pg_init_privs", acl="o.initprivs", where=f"(o.classoid, o.objoid) IN {MEMBERS}"),
    "comments": f"""SELECT pg_describe_object(classoid, objoid, objsubid) COLLATE "C", description FROM pg_description
        WHERE (classoid, objoid) IN {MEMBERS} ORDER BY 1""",
    "functions": f"""SELECT oid::regprocedure::text COLLATE "C", prosrc, probin, proconfig, proisstrict, provolatile, proparallel, proretset
        FROM pg_proc WHERE pronamespace = {OURS} ORDER BY 1""",
    "extension": """SELECT e.extname, e.extversion, n.nspname, e.extrelocatable, r.rolname FROM pg_extension AS e
        JOIN pg_namespace AS n ON n.oid = e.extnamespace JOIN pg_roles AS r ON r.oid = e.extowner WHERE e.extname = 'pg_arrow_cache'""",
    # From 17 on the row types of views are members themselves.
    "members of the extension": f"""SELECT pg_describe_object(classid, objid, 0) COLLATE "C" FROM {MEMBERS} AS m
        WHERE classid <> 'pg_type'::regclass ORDER BY 1""",
}

IN_CLUSTER = {
    "settings of roles and databases": """SELECT coalesce(d.datname, '-'), coalesce(r.rolname, '-'), s.setconfig
        FROM pg_db_role_setting AS s LEFT JOIN pg_database AS d ON d.oid = s.setdatabase LEFT JOIN pg_roles AS r ON r.oid = s.setrole
        ORDER BY 1, 2""",
    "rights on settings": "SELECT o.parname, " + RIGHTS.format(
        catalog="pg_parameter_acl", acl="o.paracl", where="o.parname LIKE 'pg_arrow_cache.%'"),
}


def of(server, databases):
    """All of them, by database and name. Databases without the extension have fewer."""
    found = {("", name): server.psql(query) for name, query in IN_CLUSTER.items()}
    for database in databases:
        found |= {(database, name): server.psql(query, database) for name, query in IN_DATABASE.items()}
    return found
