"""Row events of real servers: replayed they give the server's tables, and they read as mariadb-binlog prints them."""

import contextlib
from collections import Counter

import pytest
from lanes.printed_rows import printed_changes, printed_image
from lanes.replay import CLASSIC, changes_of, expected_tables, raw_events, replay

from ibbmaster.errors import EventError, UndecodableError
from ibbmaster.replication.event.header import resized
from ibbmaster.replication.event.rows.changes import ABSENT, ChangeKind, RowDecoder
from ibbmaster.replication.event.rows.table_schema import decode_table_schema
from ibbmaster.replication.event.table_map import ROW_EVENT_TYPES
from ibbmaster.replication.event.types import EventType
from ibbmaster.testkit.mariadb_programs import ProgramsMissingError
from tests.damage import flipped

TYPES = [
    *(f"{version}/types-{name}" for version in ("10.11", "11.8") for name in ("full-crc32", "minimal-none")),
    "10.11/types-noblob-compressed",
    "11.8/types-noblob-compressed",
    "11.8/types-full_nodup",
]
OTHERS = [
    *(f"{version}/{name}" for version in ("10.11", "11.8") for name in ("chained", "checksum-switch", "group-commit")),
    *(f"{version}/{name}" for version in ("10.11", "11.8") for name in ("crashed", "domains", "domains-none")),
    "11.8/large-commit",
    "11.8/legacy-event-pos",
    "11.8/vectors",
]
WITHOUT_COMPUTED = {"types.generated"}  # images other than FULL leave computed columns out


@pytest.mark.parametrize("capture", TYPES + OTHERS)
def test_replayed_changes_give_the_tables_the_server_had(capture):
    tables = replay(capture)
    expected = expected_tables(capture)
    compared = set(expected)
    if not capture.endswith(("full-crc32", "noblob-compressed")):
        compared -= WITHOUT_COMPUTED

    assert {name: (tables[name].content()) for name in compared} == {
        name: expected[name]["content"] for name in compared
    }


@pytest.mark.parametrize("capture", ["10.11/types-full-crc32", "11.8/types-full_nodup"])
def test_labels_are_those_that_the_table_was_made_with(capture):
    special = {True: set(), False: set()}
    for with_ddl in special:
        for schema, _ in changes_of(capture, with_ddl=with_ddl, without="types.old_temporal"):
            if schema.name == "types.special":
                special[with_ddl] |= {column.labels for column in schema.columns if column.name == "e"}
    assert special[False] == special[True] == {("a", "b", "ç", "long member")}


PRINTED = [*(capture for capture in TYPES if capture.endswith("full-crc32")), "11.8/vectors", "11.8/types-minimal-none"]


@pytest.mark.parametrize("capture", PRINTED)
def test_changes_are_those_that_mariadb_binlog_prints(capture):
    """The tool of 10.11 stops at the first old temporal column with a fraction; so do we here."""
    try:
        printed = printed_changes(CLASSIC / capture / "binlog.000001")
    except ProgramsMissingError as error:
        pytest.skip(str(error))
    ours = []
    with contextlib.suppress(UndecodableError):
        for schema, change in changes_of(capture, with_ddl=False):
            images = [image for image in (change.before, change.after) if image is not None]
            ours += [(schema.name, change.kind.value, printed_image(schema.columns, image)) for image in images]
    ours = [change for change in ours if change[0] != "types.old_temporal"]

    assert len(printed) > 30
    assert ours[: len(printed)] == printed
    assert len(ours) == len(printed)


@pytest.fixture(scope="module")
def samples():
    found: dict[tuple[str, int], tuple[bytes, list[bytes]]] = {}
    for capture in ("11.8/types-full-crc32", "11.8/types-noblob-compressed", "11.8/vectors"):
        table_map = b""
        for event in raw_events(CLASSIC / capture):
            if event[4] == EventType.TABLE_MAP:
                table_map = event
            elif event[4] in ROW_EVENT_TYPES and len(event) < 900:
                found.setdefault((capture, len(table_map) << 8 | event[4]), (table_map, []))[1].append(event)
    return [(table_map, events[:1]) for table_map, events in found.values()]


def read(table_map: bytes, event: bytes) -> int:
    return sum(1 for _ in RowDecoder(decode_table_schema(table_map)).changes(event))


def test_cut_events_are_event_errors_or_fewer_rows(samples):
    for table_map, events in samples:
        for event in events:
            whole = read_or_none(table_map, event)
            for size in range(0, len(event), 23):
                count = read_or_none(table_map, resized(event[:size]) if size > 19 else event[:size])
                assert count is None or whole is None or count <= whole


def test_flipped_bits_give_rows_or_an_event_error(samples):
    outcomes = Counter()
    for table_map, events in samples:
        for event in events:
            outcomes.update(read_or_none(table_map, damaged) is None for damaged in flipped(event, 19, 131))
        outcomes.update(read_or_none(damaged, events[0]) is None for damaged in flipped(table_map, 19, 47))
    assert min(outcomes[True], outcomes[False]) > 100


def read_or_none(table_map: bytes, event: bytes) -> int | None:
    try:
        return read(table_map, event)
    except EventError:
        return None


def test_a_value_that_cannot_be_read_names_table_column_and_type():
    with pytest.raises(UndecodableError) as caught:
        for _ in changes_of("11.8/types-full-crc32", with_ddl=False):
            pass

    expected = ("types.old_temporal", "dt4", "DATETIME")
    assert (caught.value.table, caught.value.column, caught.value.type_name) == expected


def test_an_image_says_which_columns_it_leaves_out():
    change = next(
        change
        for schema, change in changes_of("11.8/types-minimal-none")
        if change.kind is ChangeKind.UPDATE and schema.name == "types.ints"
    )

    assert change.before[0] is not ABSENT
    assert set(change.before[1:]) == {ABSENT}
    assert ABSENT in change.after


@pytest.mark.parametrize(("offset", "byte", "problem"), [(28, 0, "without columns"), (19, 255, "of table 255")])
def test_rows_of_no_columns_or_of_another_table_are_an_error_and_no_endless_loop(offset, byte, problem):
    events = iter(raw_events(CLASSIC / "11.8/vectors"))
    table_map = next(event for event in events if event[4] == EventType.TABLE_MAP)
    event = next(event for event in events if event[4] in ROW_EVENT_TYPES)

    with pytest.raises(EventError, match=problem):
        read(table_map, event[:offset] + bytes([byte]) + event[offset + 1 :])
