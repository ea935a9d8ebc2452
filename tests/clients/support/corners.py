"""Extreme values of each type, and one wide table that holds them all: each type of samples.py and more, arrays of each,
and a composite of all. For comparisons in which no client has to understand the value."""

from support.samples import SETUP, VALUES

MORE_TYPES = """
CREATE TABLE other (a int DEFAULT 7);
CREATE TYPE textrange AS RANGE (subtype = text, collation = "C");
CREATE TYPE pairrange AS RANGE (subtype = pair);
CREATE TYPE intsrange AS RANGE (subtype = int[]);
CREATE DOMAIN ints AS int[];
CREATE DOMAIN domain_pair AS pair;
CREATE TYPE holder AS (i ints, d domain_pair, l domain_pair[], m mood, r int4range, u int4multirange, p positive, t label);
CREATE TYPE shrunk AS (a int, gone text, also_gone int4[], n numeric);
ALTER TYPE shrunk DROP ATTRIBUTE gone, DROP ATTRIBUTE also_gone;
"""

# More of what a type can hold, for comparisons in which no client has to understand the value.
CORNERS = {
    "float4": ["1.17549435e-38", "-1e-45", "16777216", "-3.4028235e38"],
    "float8": ["2.2250738585072014e-308", "-5e-324", "0.30000000000000004", "-1.7976931348623157e308"],
    "numeric": ["1.1", "1.10", "1.100", "-0.0000000000000001", "9999", "-10000.0001", "1e400", "-1e-400"],
    "numeric(3,-2)": ["12300", "-99900", "0", "NaN"],
    "numeric(2,4)": ["0.0012", "-0.0099", "0"],
    "numeric(10,2)": ["0.00", "NaN", "-12345678.90"],
    "text": ["NULL", "\x01\x7f", "\u00a0\u200b", "\ufeff", "\U0010ffff", "a" * 126, "a" * 127, "ab" * 4000],
    "varchar": ["", " trailing  "],
    "bpchar": ["", "ab  "],
    "char(3)": ["ab", "   ", "äöü"],
    "date": ["4714-11-24 BC", "0001-12-31 BC", "1999-12-31"],
    "time": ["00:00:00.000001"],
    "timetz": ["12:34:56+05:30:15", "23:59:60-15:59:59", "24:00:00+15:59:59"],
    "timestamp": ["4714-11-24 00:00:00 BC", "0001-12-31 23:59:59.999999 BC", "1999-12-31 23:59:59.999999",
                  "294247-01-10 04:00:54.775806"],
    "timestamptz": ["4714-11-24 00:00:00+00 BC", "1883-11-18 12:03:57-04:56:02", "294247-01-10 04:00:54.775806+00"],
    "interval": ["178000000 years", "1 mon -1 day 00:00:00.000001", "-1 mon 1 day -00:00:00.000001", "-2147483648 days",
                 "2562047788:00:54.775807", "-2562047788:00:54.775807", "2147483647 mons"],
    "json": [' { "a" :\t1 } ', '"\\u00e9\\ud83d\\ude00"', "[1e400, -0, 0.10]"],
    "jsonb": ['{"b": 1.00, "aa": 1.0, "a": -0.0, "": {"x": []}}', "[" * 60 + "]" * 60, "1e400", '"\\u00e9"', "0.10"],
    "jsonpath": ['strict $."a b"[0 to last] ? (@.c like_regex "^x" flag "i")', "1 + -2"],
    "inet": ["0.0.0.0/0", "255.255.255.255", "::ffff:1.2.3.4/96", "fe80::1/64"],
    "cidr": ["0.0.0.0/0", "10.1.2.3/32", "::/0"],
    "macaddr": ["ff:ff:ff:ff:ff:ff"],
    "money": ["92233720368547758.07", "-0.01"],
    "bit(5)": ["00000"],
    "bit(64)": ["1" * 64],
    "varbit": ["0" * 9, "10" * 500],
    "point": ["(-0,0)", "(1e300,-1e-300)"],
    "box": ["(Infinity,1),(-Infinity,-0)"],
    "path": ["((1,1))", "[" + ",".join(f"({n},{-n})" for n in range(300)) + "]"],
    "polygon": ["((0,0))"],
    "circle": ["<(0.1,-0.1),0>"],
    "int8range": ["[-9223372036854775808,9223372036854775807)"],
    "numrange": ["empty", "(,NaN]", "[-Infinity,0.000)"],
    "daterange": ["empty", "(-infinity,2024-01-01)", "[4714-11-24 BC,5874897-12-31)"],
    "tsrange": ["empty", "(,\"2024-01-01 00:00:00\"]", "[-infinity,infinity]"],
    "tstzrange": ["(,)", "[-infinity,infinity)"],
    "floatrange": ["empty", "(NaN,NaN]"],
    "textrange": ["empty", '["",a)', '["a,b","c""d"]', "(,ä)"],
    "pairrange": ['["(1,a)","(2,)")', "(,)"],
    "intsrange": ['["{1,NULL}","{2}"]', "empty"],
    "int8multirange": ["{}", "{(,3),[5,)}"],
    "nummultirange": ["{[1.0,1.50],(2,NaN)}"],
    "datemultirange": ["{[2024-01-01,2024-02-01),[2024-03-01,infinity)}"],
    "tsmultirange": ["{(,2024-01-01),[infinity,infinity]}"],
    "tstzmultirange": ["{}", "{[2024-01-01 00:00:00+00,2024-06-01 00:00:00+00)}"],
    "textmultirange": ['{["",a),["b,c",d]}'],
    "pairmultirange": ['{["(1,a)","(2,)")}'],
    "int4range[]": ['{empty,"[1,5)",NULL,"(,)"}'],
    "int4multirange[]": ['{"{}","{[1,3),[5,9)}",NULL}'],
    "tsvector": ["'\\\\back':2B 'it''s':1", "'" + "w" * 300 + "':16383"],
    "tsquery": ["", "!( 'a':AB* <2> 'b' )"],
    "xml": ["", "text only", '<?xml version="1.0" encoding="UTF-8"?><a>ä&lt;</a>', '<?xml version="1.1" standalone="yes"?><a/>'],
    "regclass": ["other", "pg_catalog.pg_type", "4000000000"],
    "regtype": ["mood", "numeric(3,-2)", "pair[]"],
    "regprocedure": ["sum(int4)", "0"],
    "regoper": ["||/", "0"],
    "regoperator": ["+(int4,int4)"],
    "regrole": ["postgres"],
    "regnamespace": ["pg_catalog"],
    "regconfig": ["english"],
    "regdictionary": ["simple"],
    "regcollation": ['"C"'],
    "xid": ["4294967295"],
    "xid8": ["0", "9223372036854775808"],
    "tid": ["(4294967295,65535)", "(0,0)"],
    "pg_lsn": ["0/0", "FFFFFFFF/FFFFFFFF"],
    "txid_snapshot": ["10:20:10,14,15"],
    "aclitem": ["postgres=arwdDxt/postgres", "=r/postgres"],
    "int4[]": ["{NULL}", "{{{1}},{{NULL}}}", "[2:2][3:3]={{7}}", "[0:2]={1,2,3}", "[-2147483648:-2147483647]={1,2}"],
    "text[]": ['{{"a b","{}"},{NULL,"\\\\"}}', '{"\\"quoted\\"",NULL,nUlL}'],
    "name[]": ["{a,b}"],
    "bool[]": ["{t,NULL,f}"],
    "jsonb[]": ['{"{\\"a\\": 1.0}",NULL,"[]"}'],
    "oidvector": ["4294967295"],
    "mood[]": ["{}", "{{sad},{happy}}"],
    "pair": ['(,"")', '(,"(,)")', '(-1,"\\\\ \\"")'],
    "pair[]": ['{{"(1,a)","(,)"},{NULL,"(3,)"}}', '[5:5]={"(1,one)"}'],
    "nested": ["(,)", '("(,)",{})', '(,"{{""(1,a)""},{""(2,b)""}}")'],
    "ints": ["{}", "{1,NULL,3}", "[0:1]={1,2}"],
    "ints[]": ['{"{1,2}",NULL,"{}"}'],
    "domain_pair": ["(1,one)", "(,)"],
    "domain_pair[]": ['{"(1,one)",NULL}'],
    "holder": ['("{1,2}","(1,one)","{""(2,two)""}",sad,"[1,5)","{[1,3)}",5,label)', "(,,,,,,,)"],
    "shrunk": ['(1,"2.50")', "(,)"],
}

# Values that cannot be written as text, or are easier to write as an expression.
EXPRESSIONS = {
    '"char"': ['(-128)::"char"', '(-1)::"char"', '0::"char"', '10::"char"'],
    "pair": ["ROW(NULL, NULL)::pair", "NULL::pair"],
    "nested": ["ROW(ROW(NULL, NULL), ARRAY[NULL, ROW(NULL, NULL)]::pair[])::nested"],
    "domain_pair": ["ROW(NULL, NULL)::domain_pair"],
    "pg_node_tree": ["(SELECT adbin FROM pg_attrdef WHERE adrelid = 'other'::regclass)"],
}

# Values that do not fit into a page uncompressed, or at all.
BULK = {
    "text": ["repeat('ä', 300000)", "(SELECT string_agg(md5(n::text), '') FROM generate_series(1, 20000) n)"],
    "bytea": ["(SELECT string_agg(int4send(n), '') FROM generate_series(1, 30000) n)", "decode(repeat('00', 100000), 'hex')"],
    "numeric": ["'1e131071'", "'1e-16383'", "1234567890.0987654321 ^ 300", "exp(5050.0)"],
    "json": ["(SELECT json_agg(md5(n::text)) FROM generate_series(1, 3000) n)"],
    "jsonb": ["(SELECT jsonb_object_agg(md5(n::text), n / 7.0) FROM generate_series(1, 3000) n)"],
    "text[]": ["ARRAY[repeat('x', 200000), NULL, repeat('ä', 3000)]",
               "(SELECT array_agg(md5(n::text)) FROM generate_series(1, 3000) n)"],
    "numeric[]": ["(SELECT array_agg(n / 7.0) FROM generate_series(1, 3000) n)"],
    "float8[]": ["(SELECT array_agg(array[n / 7.0, -n]) FROM generate_series(1, 3000) n)"],
    "pair": ["ROW(1, repeat('x', 200000))"],
    "pair[]": ["ARRAY[(1, repeat('x', 200000))::pair, NULL, (2, repeat('ä', 3000))::pair]"],
    "nested": ["ROW((1, repeat('x', 9000)), ARRAY[(2, repeat('y', 9000)), NULL]::pair[])"],
    "textrange": ["textrange('a', repeat('b', 100000))"],
    "int4multirange": ["(SELECT range_agg(int4range(n * 2, n * 2 + 1)) FROM generate_series(1, 3000) n)"],
    "tsvector": ["(SELECT to_tsvector('simple', string_agg(md5(n::text), ' ')) FROM generate_series(1, 2000) n)"],
    "path": ["(SELECT ('[' || string_agg(format('(%s,%s)', n, -n / 7.0), ',') || ']')::path FROM generate_series(1, 3000) n)"],
    "varbit": ["repeat('10', 50000)::varbit"],
}

# Types of the extensions that PostgreSQL comes with.
EXTENSION_VALUES = {
    "hstore": {"hstore": ["", "a=>1, b=>NULL", '"a b"=>"c,\\"d\\"", ""=>""'], "hstore[]": ['{"a=>1",NULL,""}']},
    "ltree": {"ltree": ["", "Top.Science.Astronomy"], "ltree[]": ["{Top,NULL,Top.A}"], "lquery": ["*.Top@*.!a|b.*{2,3}"],
              "ltxtquery": ["Europe & !(Asia | africa@)"]},
    "citext": {"citext": ["", "MiXed", "ÄÖ"], "citext[]": ["{A,a,NULL}"]},
    "cube": {"cube": ["(0.1,-0)", "(1,2),(3,4)", "()"]},
    "seg": {"seg": ["1.50", "6.25 .. 6.50", "~5", "<1 .. >2.0", "0.1(+-)0.05"]},
    "isn": {"ean13": ["978-0-393-04002-9"], "isbn": ["0-393-04002-X"], "isbn13": ["978-0-393-04002-9"], "ismn": ["M-2306-7118-7"],
            "issn": ["1436-4522"], "upc": ["220356483481"], "isbn[]": ["{0-393-04002-X,NULL}"]},
    "intarray": {"query_int": ["1&(2|!3)"]},
    "lo": {"lo": ["0", "4294967295"]},
    "earthdistance": {"earth": ["(6378168,0,0)"]},
}


def literal(text, sql_type):
    return "'" + text.replace("'", "''") + f"'::{sql_type}"


def expressions():
    """For each type, what its values are in SQL."""
    types = {**VALUES, **CORNERS, **EXPRESSIONS}
    return {
        sql_type: [literal(text, sql_type) for text in [*VALUES.get(sql_type, []), *CORNERS.get(sql_type, [])]]
        + EXPRESSIONS.get(sql_type, [])
        for sql_type in types
    }


def make_wide_table(session, name):
    """A table with an `id` and a column for each type. Its first row has the first value of each, and so on; a type with fewer
    values than others has NULL in the rows that are left, and all have it in the last. Returns the type of each column."""
    session.execute(SETUP)
    session.execute(MORE_TYPES)
    columns = []
    for sql_type, values in expressions().items():
        columns.append((sql_type, values))
        if session.rows("SELECT to_regtype(%s) IS NOT NULL", [sql_type + "[]"])[0][0] and not sql_type.endswith("]"):
            columns.append((sql_type + "[]", array_expressions(sql_type, values)))
    session.execute(f"CREATE TYPE everything AS ({', '.join(f'f{n} {of}' for n, of in enumerate(VALUES))})")
    columns.append(("everything", row_expressions()))
    columns.append(("everything[]", [f"ARRAY[{', '.join(row_expressions())}, NULL]"]))
    return fill_table(session, name, columns)


def array_expressions(sql_type, values):
    """A vector of all values, and a matrix of two with bounds of its own."""
    first, last = values[0], values[-1]
    return [f"ARRAY[{', '.join(values)}, NULL]::{sql_type}[]",
            f"array_cat(ARRAY[]::{sql_type}[], ARRAY[[{first}, NULL], [NULL, {last}]]::{sql_type}[])"]


def row_expressions():
    """Rows of the type `everything`: one of the first values, one of the last, one of NULLs."""
    by_type = expressions()
    rows = [[by_type[of][position] for of in VALUES] for position in (0, -1)]
    return [f"ROW({', '.join(row)})::everything" for row in [*rows, ["NULL"] * len(VALUES)]]


def fill_table(session, name, columns):
    names = [f"c{number}" for number in range(len(columns))]
    definitions = ["id int", *(f"{column} {of}" for column, (of, _) in zip(names, columns))]
    session.execute(f"CREATE TABLE {name} ({', '.join(definitions)})")
    for row in range(max(len(values) for _, values in columns) + 1):
        given = [(column, values[row]) for column, (_, values) in zip(names, columns) if row < len(values)]
        into, what = ["id", *(column for column, _ in given)], [str(row), *(value for _, value in given)]
        session.execute(f"INSERT INTO {name} ({', '.join(into)}) SELECT {', '.join(what)}")
    return {"id": "int", **dict(zip(names, (of for of, _ in columns)))}
