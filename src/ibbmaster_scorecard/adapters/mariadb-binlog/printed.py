"""What `mariadb-binlog -vv --base64-output=decode-rows --print-table-metadata` prints, line by line, as events."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import Any

from ibbmaster.replication.event.rows.charset import decode_text

GTID = re.compile(rb"\tGTID (\d+-\d+-\d+)(.*)")
TABLE_MAP = re.compile(rb"\tTable_map: `(.+)`\.`(.+)` mapped to number \d+")
KEY = re.compile(rb"# Primary Key\((.*)\)")
COLUMN = re.compile(rb"# (?:Columns\(|        )(?:`((?:[^`]|``)*)` )?(.*?)[,)]")
VERB = re.compile(rb"### (INSERT INTO|UPDATE|DELETE FROM) `(.+)`\.`(.+)`")
KINDS = {b"INSERT INTO": "insert", b"UPDATE": "update", b"DELETE FROM": "delete"}
VALUE = re.compile(rb"###   @(\d+)=(.*) /\* (\w+).*\*/")
LABEL = re.compile(r"'((?:[^']|'')*)'")
CHARSET = re.compile(r" CHARSET (\w+)")
SESSION = re.compile(rb"SET |/\*!\\C |use `")  # printed before a statement
TRANSACTION_END = re.compile(rb"(COMMIT|ROLLBACK|XA (PREPARE|COMMIT|ROLLBACK)\b.*)$", re.IGNORECASE | re.DOTALL)
TRANSACTION_PART = re.compile(
    rb"(BEGIN|START TRANSACTION|SAVEPOINT\b.*|XA (START|END)\b.*)$", re.IGNORECASE | re.DOTALL
)
DELIMITER = b"/*!*/;"


class PrintedReader:
    """Takes lines, without their ends, and yields events; a group ends with a commit. With `tells_tables` also columns,
    key and types of the table of each row event."""

    def __init__(self, *, tells_tables: bool = False) -> None:
        self._tells_tables = tells_tables
        self._keys: dict[str, list[str]] = {}  # of each table: names
        self._gtid: str | None = None
        self._ends_with_statement = False
        self._statement: list[bytes] | None = None  # the lines of the one that is printed
        self._columns: dict[str, list[tuple[str | None, str]]] = {}  # of each table: names and types
        self._table = ""
        self._change: dict[str, Any] | None = None
        self._image: dict[int, tuple[bytes, str]] = {}

    def take(self, line: bytes) -> Iterator[dict[str, Any]]:
        if line.startswith(b"###"):
            yield from self._take_row_line(line)
            return
        yield from self._end_change()
        if self._statement is not None and not re.match(rb"# at \d+$", line):
            yield from self._take_statement_line(line)
        elif line.startswith(b"#"):
            yield from self._take_comment(line)
        elif line.endswith(DELIMITER) and TRANSACTION_END.match(line.removesuffix(DELIMITER)):
            yield from self._commit()

    def _take_comment(self, line: bytes) -> Iterator[dict[str, Any]]:
        self._statement = None
        if found := GTID.search(line):
            self._gtid = found[1].decode()
            self._ends_with_statement = b" ddl" in found[2]
            yield {"event": "begin", "gtid": self._gtid}
        elif found := TABLE_MAP.search(line):
            self._table = f"{_text(found[1])}.{_text(found[2])}"
            self._columns[self._table] = []
            self._keys[self._table] = []
        elif found := KEY.fullmatch(line):
            self._keys[self._table] = [_text(name).strip("` ") for name in found[1].split(b",")]
        elif found := COLUMN.fullmatch(line):
            name = None if found[1] is None else _text(found[1].replace(b"``", b"`"))
            self._columns[self._table].append((name, _text(found[2])))
        elif b"\tQuery" in line:
            self._statement = []
        elif b"Unknown event" in line:
            yield {"event": "unknown", "text": _text(line.rpartition(b"\t")[2])}

    def _take_statement_line(self, line: bytes) -> Iterator[dict[str, Any]]:
        assert self._statement is not None
        if not line.endswith(DELIMITER):
            self._statement.append(line)
            return
        if not self._statement and SESSION.match(line):
            return
        text = b"\n".join([*self._statement, line.removesuffix(DELIMITER)]).strip()
        self._statement = None
        if not TRANSACTION_PART.match(text) and text.upper() not in (b"COMMIT", b"ROLLBACK"):
            yield {"event": "statement", "sql": _text(text)}
        if self._ends_with_statement or TRANSACTION_END.match(text):
            yield from self._commit()

    def _commit(self) -> Iterator[dict[str, Any]]:
        if self._gtid is not None:
            yield {"event": "commit", "gtid": self._gtid}
        self._gtid = None

    def _take_row_line(self, line: bytes) -> Iterator[dict[str, Any]]:
        if found := VERB.fullmatch(line):
            yield from self._end_change()
            table = f"{_text(found[2])}.{_text(found[3])}"
            if self._tells_tables:
                yield self._told_table(table)
            self._change = {"event": "change", "table": table, "kind": KINDS[found[1]], "before": None, "after": None}
        elif self._change is not None and line in (b"### WHERE", b"### SET"):
            self._end_image()
            self._change["before" if line == b"### WHERE" else "after"] = {}
        elif found := VALUE.fullmatch(line):
            self._image[int(found[1])] = (found[2], found[3].decode())

    def _told_table(self, table: str) -> dict[str, Any]:
        columns = self._columns.get(table, [])
        names = [name for name, _ in columns if name is not None]
        told = {"columns": names, "key": self._keys.get(table, [])} if columns and len(names) == len(columns) else {}
        return {"event": "table", "table": table, **told, "types": [declared for _, declared in columns]}

    def _end_image(self) -> None:
        if self._change is None or not self._image:
            return
        columns = self._columns.get(self._change["table"], [])
        values: dict[str, object] = {}
        for number, (printed, printed_type) in self._image.items():
            name, declared = columns[number - 1] if number <= len(columns) else (None, "")
            values[name if name is not None else f"@{number}"] = value_of(printed, printed_type, declared)
        is_named = all(name is not None for name, _ in columns) and bool(columns)
        side = "before" if self._change["after"] is None else "after"
        self._change[side] = values if is_named else list(values.values())
        self._image = {}

    def _end_change(self) -> Iterator[dict[str, Any]]:
        self._end_image()
        if self._change is not None:
            yield self._change
        self._change = None


def value_of(printed: bytes, printed_type: str, declared: str) -> object:
    """`declared` is the type in the metadata."""
    if printed == b"NULL":
        return None
    if printed.startswith(b"b'"):
        digits = printed[2:-1].decode()
        if printed_type == "BIT":
            return int(digits, 2)
        octets = bytes(int(digits[at : at + 8], 2) for at in range(0, len(digits), 8))
        bits = int.from_bytes(octets, "little")  # the lowest byte is printed first
        labels = labels_of(declared)
        return ",".join(label for at, label in enumerate(labels) if bits >> at & 1) if labels else bits
    if printed.startswith(b"'"):
        data = re.sub(rb"\\x([01][0-9a-f])", lambda found: bytes.fromhex(found[1].decode()), printed[1:-1])
        return _text(data).replace(":", "-") if printed_type == "DATE" else _text_of(data, declared)
    text = printed.decode()
    match printed_type:
        case "ENUM":
            labels = ["", *labels_of(declared)]
            return labels[int(text)] if int(text) < len(labels) > 1 else int(text)
        case "TIMESTAMP":
            return _moment(text)
        case "DECIMAL":
            return text
        case "FLOAT" | "DOUBLE":
            return float(text)
    signed, _, unsigned = text.partition(" ")  # the tool prints both where they differ
    return int(unsigned.strip("()")) if unsigned and "UNSIGNED" in declared else int(signed)


def labels_of(declared: str) -> list[str]:
    """Those of an ENUM or a SET; none if the metadata lack them."""
    return [label.replace("''", "'") for label in LABEL.findall(declared)]


def _text_of(data: bytes, declared: str) -> str:
    """Bytes as a user who reads the metadata takes them: in their character set; BINARY up to its length."""
    if found := CHARSET.search(declared):
        try:
            return decode_text(data, found[1])
        except (LookupError, ValueError):
            return f"0x{data.hex()}"
    found = re.match(r"BINARY\((\d+)\)", declared)
    return _text(data.ljust(int(found[1]), b"\0") if found else data)


def _moment(text: str) -> str:
    seconds, point, fraction = text.partition(".")
    if not int(seconds):
        return f"0000-00-00 00:00:00{point}{fraction}"
    moment = datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}{point}{fraction}"


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"
