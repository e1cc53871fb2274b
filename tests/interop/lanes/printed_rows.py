"""Changes of rows as `mariadb-binlog -vv` prints them."""

import datetime
import re
import subprocess
from decimal import Decimal
from pathlib import Path

from ibbmaster.replication.event.rows.changes import ABSENT
from ibbmaster.replication.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.testkit.mariadb_programs import find_programs
from lanes.replay import encode

PACKED = b"?"  # the tool prints values of COMPRESSED columns as they are stored
Printed = tuple[str, str, list[tuple[int, bytes]]]  # table, kind, number and text of each column


def printed_changes(path: Path, version: str = "10.11") -> list[Printed]:
    """Table, kind, and number and text of each column of every image in the tool's output.

    Raises ProgramsMissingError: the tool of that version is not on this machine.
    """
    command = [*find_programs(version).command("mariadb-binlog"), "--no-defaults", "-vv", "--base64-output=decode-rows"]
    done = subprocess.run([*command, path], capture_output=True, check=False)
    return [change for change in changes_in(done.stdout) if change[0] != "types.old_temporal"]


def changes_in(output: bytes) -> list[Printed]:
    changes: list[Printed] = []
    head = ("", "")
    for line in output.split(b"\n"):
        verb = re.fullmatch(rb"### (INSERT INTO|UPDATE|DELETE FROM) `(.+)`\.`(.+)`", line)
        if verb is not None:
            kind = {b"INSERT INTO": "insert", b"UPDATE": "update", b"DELETE FROM": "delete"}[verb[1]]
            head = (f"{verb[2].decode()}.{verb[3].decode()}", kind)
        elif line in (b"### SET", b"### WHERE"):
            changes.append((*head, []))
        elif line.startswith(b"###   @"):
            number, _, value = line[7:].partition(b"=")
            text, _, comment = value.rpartition(b" /* ")
            is_packed = b"COMPRESSED" in comment and text != b"NULL"
            changes[-1][2].append((int(number), PACKED if is_packed else text.rstrip(b" ")))
    return changes


def printed_image(columns: tuple[Column, ...], image: tuple[object, ...]) -> list[tuple[int, bytes]]:
    return [
        (number, printed_value(column, value))
        for number, (column, value) in enumerate(zip(columns, image, strict=True), start=1)
        if value is not ABSENT
    ]


def printed_value(column: Column, value: object) -> bytes:
    match column.kind, value:
        case _, None:
            return b"NULL"
        case ValueKind.INTEGER, int(number):
            return printed_integer(column, number)
        case ValueKind.YEAR, int(number):
            return str(number or 1900).encode()
        case ValueKind.FLOAT, float(number):
            return (f"{number:g}" if column.metadata == 4 else f"{number:.20g}").encode()
        case ValueKind.DECIMAL, Decimal():
            return f"{value:f}".encode()
        case ValueKind.BIT, int(bits):
            return f"b'{bits:0{column.size}b}'".encode()
        case ValueKind.ENUM, _:
            labels = ("", *(column.labels or ()))
            return str(value if isinstance(value, int) else labels.index(str(value))).encode()
        case ValueKind.SET, int(bits):
            return printed_set(column, bits)
        case ValueKind.SET, str(text):
            labels = column.labels or ()
            return printed_set(column, sum(1 << labels.index(label) for label in text.split(",") if label))
        case ValueKind.DATE, str(text):
            return f"'{text.replace('-', ':')}'".encode()
        case ValueKind.TIMESTAMP, str(text):
            return epoch_text(text).encode()
        case ((ValueKind.TIME | ValueKind.DATETIME), str(text)):
            return f"'{text}'".encode()
    if column.type in (ColumnType.BLOB_COMPRESSED, ColumnType.VARCHAR_COMPRESSED):
        return PACKED
    data = value if isinstance(value, bytes) else encode(str(value), column.charset or "binary")
    if column.type == ColumnType.STRING and column.charset == "binary":
        data = data.rstrip(b"\0")
    return b"'" + b"".join(b"\\x%02x" % byte if byte < 0x20 else bytes((byte,)) for byte in data) + b"'"


def printed_set(column: Column, bits: int) -> bytes:
    """The bytes of a set from the lowest to the highest, each with its highest bit first."""
    return b"b'" + b"".join(b"%s" % f"{byte:08b}".encode() for byte in bits.to_bytes(column.size, "little")) + b"'"


def printed_integer(column: Column, number: int) -> bytes:
    """The tool does not know signedness: what is negative as a signed number it prints both ways."""
    bits = {1: 8, 2: 16, 9: 24, 3: 32, 8: 64}[column.type]
    unsigned = number % (1 << bits)
    signed = unsigned - (1 << bits) if unsigned >> (bits - 1) else unsigned
    return f"{signed} ({unsigned})".encode() if signed < 0 else str(signed).encode()


def epoch_text(text: str) -> str:
    moment, point, fraction = text.partition(".")
    if moment.startswith("0000"):
        return "0" + point + fraction
    seconds = (datetime.datetime.fromisoformat(moment) - datetime.datetime(1970, 1, 1)).total_seconds()
    return f"{int(seconds)}{point}{fraction}"


def value_of_text(column: Column, text: str | None) -> object:
    """The value whose text stands in the map of a generic DataFrame."""
    if text is None:
        return None
    match column.kind:
        case ValueKind.INTEGER | ValueKind.YEAR | ValueKind.BIT:
            return int(text)
        case ValueKind.FLOAT:
            return float(text)
        case ValueKind.DECIMAL:
            return Decimal(text)
        case ValueKind.BINARY | ValueKind.GEOMETRY:
            return bytes.fromhex(text.removeprefix("0x"))
        case ValueKind.ENUM | ValueKind.SET if column.labels is None:
            return int(text)
    return text


NOT_TOLD = (ValueKind.UUID, ValueKind.INET4, ValueKind.INET6, ValueKind.VECTOR)  # the tool knows them as bytes


def without_untold(columns: tuple[Column, ...], printed: Printed) -> Printed:
    """What the tool prints, without values of types that it does not know."""
    table, kind, image = printed
    return table, kind, [one for one in image if columns[one[0] - 1].kind not in NOT_TOLD]


def printed_map(columns: tuple[Column, ...], cells: dict[str, str | None]) -> list[tuple[int, bytes]]:
    """A map of a generic DataFrame as the tool prints its image."""
    return printed_image(
        columns,
        tuple(value_of_text(column, cells[column.name]) if column.name in cells else ABSENT for column in columns),
    )
