"""Enumerations of the code have the names and numbers of the tables of protocol/."""

import enum

import pytest

from ibbmaster.logs.store.redo_record import ItemType, XaState
from ibbmaster.replication.event.gtid_event import GtidExtraFlag, GtidFlag
from ibbmaster.replication.event.rows.table_schema import MetadataField
from ibbmaster.replication.event.types import EventFlag
from ibbmaster.replication.wire.capability import Capability, StatusFlag
from ibbmaster.replication.wire.command import Command, DumpFlag
from ibbmaster.replication.wire.response import FieldType
from ibbmaster.storage.ibb.chunk import RecordType
from tests.protocol.documents import read_tables

ENUMERATIONS = [  # document, heading, column of the numbers, and how they are read
    ("event/header", "Flags", "Flag", 16, EventFlag),
    ("event/gtid", "Flags", "Flag", 16, GtidFlag),
    ("event/gtid", "Extra flags", "Flag", 16, GtidExtraFlag),
    ("event/rows", "Optional metadata", "Type", 10, MetadataField),
    ("ibb/chunk", "Record types", "Type", 10, RecordType),
    ("store/redo-log", "Items", "Type", 10, ItemType),
    ("store/redo-log", "States of a transaction", "Value", 10, XaState),
    ("wire/handshake", "Capabilities", "Bit", 10, Capability),
    ("wire/response", "Status", "Bits (hex)", 16, StatusFlag),
    ("wire/response", "Column definition", "Type", 10, FieldType),
    ("wire/commands", "Commands", "Byte (hex)", 16, Command),
    ("wire/commands", "COM_BINLOG_DUMP", "Flag (hex)", 16, DumpFlag),
]


@pytest.mark.parametrize(("document", "heading", "column", "base", "kind"), ENUMERATIONS)
def test_names_and_numbers_are_those_of_the_table(
    document: str, heading: str, column: str, base: int, kind: type[enum.Enum]
) -> None:
    rows = read_tables(f"protocol/{document}.md", heading)[-1]
    found = {row.get("Name") or row["Field"]: int(row[column], base) for row in rows}
    if column == "Bit":
        found = {name: 1 << bit for name, bit in found.items()}
    assert found == {one.name: one.value for one in kind}
