"""Types and values of results. Each type comes with all shapes of values that its encoding could lose."""

SETUP = """
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE pair AS (n int, t text);
CREATE TYPE nested AS (p pair, list pair[]);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN label AS text;
CREATE TYPE floatrange AS RANGE (subtype = float8);
"""

VALUES = {
    "bool": ["true", "false"],
    "int2": ["0", "-32768", "32767"],
    "int4": ["0", "-2147483648", "2147483647"],
    "int8": ["0", "-9223372036854775808", "9223372036854775807"],
    "float4": ["0", "-0", "NaN", "Infinity", "-Infinity", "1.1", "3.4028235e38", "1e-45"],
    "float8": ["0", "-0", "NaN", "Infinity", "-Infinity", "0.1", "1.7976931348623157e308", "5e-324"],
    "numeric": ["0", "0.000", "-1.50", "NaN", "Infinity", "-Infinity", "1e100", "1e-100", "12345678901234567890.123456789",
                "10000", "9999.9999", "0.0001", "100000000"],
    "numeric(20,4)": ["0", "1.5", "-1234567890123456.7891"],
    "numeric(5,-2)": ["12345", "-100"],
    "text": ["", "a", "äöü€😀", " spaces ", "line\nbreak\ttab", "\\N", "'quoted\"", "x" * 5000],
    "varchar(10)": ["", "abc", "äöü€"],
    "char(10)": ["", "abc", "ä€", "0123456789"],
    '"char"': ["a", "\\351", ""],
    "name": ["", "a", "n" * 63],
    "bytea": ["", "\\x00", "\\x00ff10deadbeef", "\\x" + "ab" * 3000],
    "uuid": ["00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    "date": ["2000-01-01", "1970-01-01", "infinity", "-infinity", "4713-01-01 BC", "5874897-12-31", "2024-02-29"],
    "time": ["00:00:00", "24:00:00", "23:59:59.999999"],
    "time(2)": ["12:34:56.78"],
    "timetz": ["00:00:00+00", "24:00:00-15:59", "12:34:56.789+05:30"],
    "timestamp": ["2000-01-01", "infinity", "-infinity", "4713-01-01 00:00:00 BC", "294246-12-31 23:59:59.999999"],
    "timestamptz": ["2000-01-01 00:00:00+00", "infinity", "-infinity", "4713-01-02 00:00:00+00 BC",
                    "294246-12-31 23:59:59.999999+00", "2024-03-31 02:30:00+02"],
    "interval": ["0", "1 year -2 months 3 days -04:05:06.789", "-178000000 years", "1 microsecond", "24:00:00", "1 day"],
    "interval day to minute": ["1 02:03"],
    "json": ['{"b":1,  "a":[1,2,null]}', '{"a":1,"a":2}', '"text"', "null", "1.50"],
    "jsonb": ['{"b":1,  "a":[1,2,null]}', '{"a":1,"a":2}', '"äö"', "null", "1.50", "[]"],
    "jsonpath": ["$.a[*] ? (@ > 1)"],
    "inet": ["192.168.0.1/24", "::1", "10.0.0.1"],
    "cidr": ["192.168.0.0/24", "2001:db8::/32"],
    "macaddr": ["08:00:2b:01:02:03"],
    "macaddr8": ["08:00:2b:01:02:03:04:05"],
    "money": ["0", "-92233720368547758.08", "12.34"],
    "bit(5)": ["10101"],
    "varbit": ["", "1", "1010101010101"],
    "point": ["(1.5,-2)", "(NaN,Infinity)"],
    "line": ["{1,2,3}"],
    "lseg": ["[(0,0),(1,1)]"],
    "box": ["(1,1),(0,0)"],
    "path": ["[(0,0),(1,1)]", "((0,0),(1,1),(2,0))"],
    "polygon": ["((0,0),(1,1),(2,0))"],
    "circle": ["<(1,2),3>"],
    "int4range": ["empty", "[1,5)", "(,)", "[3,)"],
    "numrange": ["[1.10,2.20]"],
    "daterange": ["[2024-01-01,infinity)"],
    "tstzrange": ["[2024-01-01 00:00:00+00,2024-06-01 00:00:00+00)"],
    "floatrange": ["[-0,Infinity)"],
    "int4multirange": ["{}", "{[1,3),[5,9)}"],
    "tsvector": ["", "'a':1A 'cat':3 'fat':2,4"],
    "tsquery": ["'fat' & ( 'rat' | !'cat' )"],
    "xml": ["<a>1</a>"],
    "oid": ["0", "4294967295"],
    "regclass": ["pg_class", "-"],
    "regtype": ["integer"],
    "regproc": ["array_in"],
    "xid": ["3"],
    "xid8": ["18446744073709551615"],
    "cid": ["7"],
    "tid": ["(1,2)"],
    "pg_lsn": ["16/B374D848"],
    "pg_snapshot": ["10:20:10,14,15"],
    "oidvector": ["", "1 2 3"],
    "int2vector": ["1 2 3"],
    "refcursor": ["c"],
    "int4[]": ["{}", "{1,NULL,3}", "[-1:1]={1,2,3}", "{{1,2},{3,4}}"],
    "text[]": ["{}", '{"",NULL,"null","a,b","äö"}'],
    "numeric[]": ["{1.50,NaN}"],
    "timestamptz[]": ['{"2024-01-01 00:00:00+00",infinity}'],
    "mood": ["sad", "happy"],
    "mood[]": ["{ok,NULL,sad}"],
    "pair": ["(1,one)", "(,)", '(2,"a,b")'],
    "pair[]": ['{"(1,one)",NULL}'],
    "nested": ['("(1,a)","{""(2,b)"",""(,)""}")'],
    "positive": ["1"],
    "positive[]": ["{1,2}"],
    "label": ["", "text"],
}


def slug(sql_type):
    return "".join(c if c.isalnum() else "_" for c in sql_type)


def fill(session, sql_type):
    """A table `t` with every value of the type, and a NULL."""
    session.execute(SETUP)
    session.execute(f"CREATE TABLE t (id int, v {sql_type})")
    for number, text in enumerate([*VALUES[sql_type], None]):
        literal = "NULL" if text is None else "'" + text.replace("'", "''") + "'"
        session.execute(f"INSERT INTO t VALUES ({number}, {literal})")
