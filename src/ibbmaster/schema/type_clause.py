"""Types of columns as DDL writes them, every alias resolved."""

from ibbmaster.event.column_types.strings import GEOMETRIES
from ibbmaster.facts import NULL, rows_of
from ibbmaster.schema.clause import CharsetClause, NotUnderstoodError, TypeClause
from ibbmaster.schema.reading import SHOWN, expect_brackets, expect_number, expect_option, fail, takes_charset
from ibbmaster.sqltext.cursor import Cursor, parts_of
from ibbmaster.sqltext.sql_mode import ORACLE, REAL_AS_FLOAT
from ibbmaster.sqltext.token import TokenKind

INTEGERS = {  # word -> its width to show, and that without a sign
    "tinyint": (4, 3),
    "smallint": (6, 5),
    "mediumint": (9, 8),
    "int": (11, 10),
    "bigint": (20, 20),
}
TEMPORAL = ("time", "datetime", "timestamp")
TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set")  # with a character set
BINARY_OF = {"char": "binary", "varchar": "varbinary"} | {
    f"{size}text": f"{size}blob" for size in ("tiny", "", "medium", "long")
}
_PLAIN = (
    *("date", "tinytext", "mediumtext", "longtext", "tinyblob", "mediumblob", "longblob", "uuid", "inet4", "inet6"),
    *("xmltype", "json", *GEOMETRIES),
)
_SIZED = {"bit": 1, "char": 1, "binary": 1, "year": 4, "varchar": None, "varbinary": None, "text": None, "blob": None}
_SAME = {word: same for word, same, *_ in rows_of(__package__, "types") if same != NULL}
_NATIONAL = ("nchar", "nvarchar", "national")
_SCHEMAS = ("MARIADB_SCHEMA", "ORACLE_SCHEMA", "MAXDB_SCHEMA")
FLOAT_DIGITS_MAX = 24  # of FLOAT(p); with more it is a DOUBLE
YEAR_OF_TWO_DIGITS = 2  # any other YEAR(n) is YEAR(4)
_DECIMAL = (10, 0)


def parse_type(cursor: Cursor, sql_mode: int = 0) -> TypeClause:
    """The type that comes next, up to the attributes that do not belong to it.

    Raises:
        NotUnderstoodError: there is no such type.
    """
    is_oracle = bool(sql_mode & ORACLE)
    if cursor.peek().is_word(*_SCHEMAS) and cursor.peek(1).is_sign("."):
        is_oracle = cursor.take().is_word("ORACLE_SCHEMA")
        cursor.take()
    if cursor.peek().kind is not TokenKind.WORD:
        raise fail(cursor, "a type")
    token = cursor.take().text
    word = token.lower()
    is_national = word in _NATIONAL
    if word == "national":
        word = cursor.take().text.lower()
        if word not in ("char", "character", "varchar", "varcharacter"):
            raise NotUnderstoodError(f"'{token} {word[:SHOWN]}' where a type was expected")
    if word == "long":
        return _long(cursor)
    if word == "double":
        cursor.takes_words("PRECISION")
    is_varying = word in ("char", "character", "nchar") and cursor.takes_words("VARYING")
    if is_varying or (word == "nchar" and (cursor.takes_words("VARCHAR") or cursor.takes_words("VARCHARACTER"))):
        word = "varchar"
    if is_oracle:
        word = {"blob": "longblob", "date": "datetime"}.get(word, word)
    if word == "real":
        word = "float" if sql_mode & REAL_AS_FLOAT else "double"
    name = _SAME.get(word, word)
    if word in ("bool", "boolean"):
        return TypeClause(word=name, length=1)
    if name in INTEGERS:
        return _number(cursor, name, _length(cursor), None)
    if name in ("decimal", "float", "double"):
        return _fraction(cursor, name, is_oracle=word == "number")
    if name in TEMPORAL:
        return TypeClause(word=name, scale=_length(cursor) or None)
    if name in ("enum", "set"):
        return _attributes(cursor, TypeClause(word=name, labels=_labels(cursor)))
    if name == "vector":
        return TypeClause(word=name, length=_length(cursor))
    if name not in _SIZED and name not in _PLAIN:
        raise NotUnderstoodError(f"{token[:SHOWN]!r} where a type was expected")
    length = _length(cursor)
    if name in _SIZED:
        is_plain = length is None or (name == "bit" and not length) or (name == "year" and length != YEAR_OF_TWO_DIGITS)
        length = _SIZED[name] if is_plain else length
    elif name not in ("point", *GEOMETRIES):
        length = None
    if name in GEOMETRIES:
        if cursor.takes_words("REF_SYSTEM_ID"):
            expect_option(cursor)
        return TypeClause(word=name)
    found = _attributes(cursor, TypeClause(word=name, length=length))
    if is_national:
        charset = CharsetClause(charset="utf8mb3", is_binary=found.charset.is_binary)
        found = TypeClause(word=name, length=length, charset=charset, is_compressed=found.is_compressed)
    return found


def _length(cursor: Cursor) -> int | None:
    if not cursor.peek().is_sign("("):
        return None
    inside = Cursor(expect_brackets(cursor))
    return None if inside.is_at_end else expect_number(inside)


def _number(cursor: Cursor, word: str, length: int | None, scale: int | None) -> TypeClause:
    """A number with its sign; without a length of its own an integer has its widest value's."""
    is_unsigned = is_zerofill = False
    while cursor.peek().is_word("UNSIGNED", "SIGNED", "ZEROFILL"):
        token = cursor.take()
        is_zerofill = is_zerofill or token.is_word("ZEROFILL")
        is_unsigned = is_unsigned or not token.is_word("SIGNED")
    if word in INTEGERS and not length:
        length = INTEGERS[word][is_unsigned]
    return TypeClause(word=word, length=length, scale=scale, is_unsigned=is_unsigned, is_zerofill=is_zerofill)


def _fraction(cursor: Cursor, word: str, *, is_oracle: bool) -> TypeClause:
    length = scale = None
    if cursor.peek().is_sign("("):
        inside = Cursor(expect_brackets(cursor))
        length = expect_number(inside)
        if inside.takes_sign(","):
            scale = expect_number(inside)
    if word == "decimal":
        if is_oracle and length is None:
            return TypeClause(word="double")
        length, scale = length or _DECIMAL[0], scale or 0
    elif scale is None:  # FLOAT(p) only says how large it is
        word = "double" if word == "float" and length is not None and length > FLOAT_DIGITS_MAX else word
        length = None
    elif not length:  # FLOAT(0,0)
        length = scale = None
    return _number(cursor, word, length, scale)


def _long(cursor: Cursor) -> TypeClause:
    """LONG, LONG VARCHAR, LONG CHAR VARYING, LONG VARBINARY."""
    if cursor.takes_words("VARBINARY"):
        return TypeClause(word="mediumblob")
    if cursor.peek().is_word("CHAR", "CHARACTER") and cursor.peek(1).is_word("VARYING"):
        cursor.take(), cursor.take()
    else:
        cursor.takes_words("VARCHAR")
    return _attributes(cursor, TypeClause(word="mediumtext"))


def _labels(cursor: Cursor) -> tuple[str, ...]:
    found = []
    for part in parts_of(expect_brackets(cursor)):
        texts = [token.text for token in part if token.kind is TokenKind.TEXT]
        if len(texts) == 2 and part[0].text.lower() == "x":
            raise NotUnderstoodError("a label in hexadecimal digits")
        if not texts:
            raise NotUnderstoodError(f"{part[0].text[:SHOWN] if part else ''!r} where a label was expected")
        found.append("".join(texts).rstrip(" "))
    return tuple(found)


def _attributes(cursor: Cursor, found: TypeClause) -> TypeClause:
    """What stands after the type of a string and says which characters it has."""
    charset, word, is_binary, is_compressed = None, found.word, False, False
    while True:
        if (name := takes_charset(cursor)) is not None:
            charset = name
        elif cursor.takes_words("BINARY"):
            is_binary = True
        elif cursor.takes_words("ASCII"):
            charset = "latin1"
        elif cursor.takes_words("UNICODE"):
            charset = "ucs2"
        elif cursor.takes_words("BYTE"):
            word = BINARY_OF.get(word, word)
            charset = "binary" if word in ("enum", "set") else charset
        elif cursor.takes_words("COMPRESSED"):
            is_compressed = True
            if cursor.takes_sign("="):
                expect_option(cursor)
        else:
            break
    return TypeClause(
        word=word,
        length=found.length,
        labels=found.labels,
        charset=CharsetClause(charset=charset, is_binary=is_binary),
        is_compressed=is_compressed,
    )
