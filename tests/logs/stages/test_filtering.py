import tracemalloc

import pytest

from ibbmaster.errors import EventError, StageError
from ibbmaster.gtid import Gtid
from ibbmaster.logs.stages.filtering import ContentFilter, GtidFilter, OriginFilter
from ibbmaster.logs.stages.table_pattern import TableChoice
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, GtidXid, decode_gtid_event, encode_gtid_event
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, TYPE_OFFSET, encode_event
from ibbmaster.replication.event.query import Query, encode_query
from ibbmaster.replication.event.rows.partial import FIXED, FLAG_WHOLE_SIZE, WHOLE_SIZE
from ibbmaster.replication.event.split import event_heads
from ibbmaster.replication.event.types import EventType as T
from ibbmaster.schema.name_case import NameCase
from ibbmaster.sqltext.table_name import parse_table_pattern
from tests.case_table import rows_of

TRANSACTION, STANDALONE = GtidFlag.TRANSACTIONAL, GtidFlag.STANDALONE | GtidFlag.DDL
XID = encode_event(event_type=T.XID, body=bytes(8), server_id=1)


def group_of(*events, flags=TRANSACTION, cut=None, **optional):
    gtid = Gtid.parse("3-1-7")
    flags |= GtidFlag.GROUP_COMMIT if "commit_id" in optional else 0
    body = b"".join(events)
    pieces = [body] if cut is None else [body[at : at + cut] for at in range(0, len(body), cut)]
    return EventGroup(
        gtid=gtid,
        gtid_event=encode_gtid_event(GtidEvent(gtid=gtid, flags=GtidFlag(flags), **optional), timestamp=99),
        body=iter(pieces),
        start=LogPosition(0, 100),
        end=LogPosition(0, 200),
    )


def table_map(table_id, name):
    database, table = (part.encode() for part in name.split("."))
    names = bytes([len(database)]) + database + b"\0" + bytes([len(table)]) + table + b"\0"
    body = table_id.to_bytes(6, "little") + bytes(2) + names + b"\1\3\0\1"
    return encode_event(event_type=T.TABLE_MAP, body=body, server_id=1)


def rows(table_id, *, ends, size=8):
    body = table_id.to_bytes(6, "little") + bytes([ends, 0]) + b"\1\1" + bytes(size)
    return encode_event(event_type=T.WRITE_ROWS_V1, body=body, server_id=1)


def fragments(event, count):
    step, found = -(-len(event) // count), []
    for number in range(1, count + 1):
        head = FIXED.pack(count, number, FLAG_WHOLE_SIZE if number == 1 else 0)
        head += WHOLE_SIZE.pack(len(event)) if number == 1 else b""
        part = event[(number - 1) * step : number * step]
        found.append(encode_event(event_type=T.PARTIAL_ROW_DATA, body=head + part, server_id=1))
    return found


def annotation(text):
    return encode_event(event_type=T.ANNOTATE_ROWS, body=text, server_id=1)


def query(text, database="shop"):
    value = Query(thread_id=5, seconds=0, error_code=0, status=b"", database=database.encode(), text=text.encode())
    return encode_query(value, server_id=1)


def choice(only=(), leaves_out=(), case=NameCase.EXACT):
    return TableChoice(map(parse_table_pattern, only), map(parse_table_pattern, leaves_out), lambda: case)


def through(stage, group):
    passed = stage.pass_on(group)
    if passed is None:
        return None
    assert (passed.gtid, passed.start, passed.end) == (group.gtid, group.start, group.end)
    return [passed.gtid_event, *event_heads(*passed.body, size_max=1 << 30)]


def types(events):
    return [T(event[TYPE_OFFSET]) for event in events]


ORDERS = choice(["shop.orders"])
TWO_TABLES = (
    *(annotation(b"INSERT INTO shop.orders"), table_map(1, "shop.orders"), rows(1, ends=True)),
    *(annotation(b"INSERT INTO shop.items"), table_map(2, "shop.items"), rows(2, ends=True)),
    XID,
)


def test_an_annotation_is_left_once_and_only_before_rows_of_its_own_statement():
    both = (table_map(1, "shop.orders"), table_map(3, "shop.orders_log"), rows(1, ends=False), rows(3, ends=True))
    of_others = (annotation(b"INSERT INTO shop.items"), table_map(2, "shop.items"), rows(2, ends=True))
    group = group_of(annotation(b"UPDATE shop.orders"), *both, *of_others, *both, XID)

    left = through(ContentFilter(choice(["shop.orders", "shop.orders_log"])), group)

    assert left == [group.gtid_event, annotation(b"UPDATE shop.orders"), *both, *both, XID]


def test_what_is_said_before_a_statement_that_no_filter_judges_stays_before_it():
    context = encode_event(event_type=T.INTVAR, body=b"\2" + bytes(8), server_id=1)
    events = (table_map(1, "shop.orders"), rows(1, ends=True), context, query("SAVEPOINT a"), XID)
    group = group_of(*events)

    assert through(ContentFilter(ORDERS), group) == [group.gtid_event, *events]


@pytest.mark.parametrize("cut", [None, 1, 7, 40])
def test_rows_of_other_tables_go_with_their_table_map_and_annotation(cut):
    group = group_of(*TWO_TABLES, cut=cut)

    assert through(ContentFilter(ORDERS), group) == [group.gtid_event, *TWO_TABLES[:3], XID]


def test_the_last_row_event_that_is_left_ends_the_statement():
    """Of an UPDATE of two tables the last row event is that of the other table."""
    maps = table_map(1, "shop.orders"), table_map(2, "shop.items")
    group = group_of(*maps, rows(1, ends=False), rows(1, ends=False), rows(2, ends=True), XID)

    left = through(ContentFilter(ORDERS), group)

    assert left == [group.gtid_event, maps[0], rows(1, ends=False), rows(1, ends=True), XID]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_row_event_in_fragments_is_left_or_left_out_as_a_whole(count):
    maps = table_map(1, "shop.orders"), table_map(2, "shop.items")
    mine, other = fragments(rows(1, ends=False, size=90), count), fragments(rows(2, ends=True, size=90), count)
    group = group_of(*maps, *mine, *other, XID)

    left = through(ContentFilter(ORDERS), group)

    assert left == [group.gtid_event, maps[0], *fragments(rows(1, ends=True, size=90), count), XID]


def test_a_transaction_of_which_nothing_is_left_keeps_its_head_and_its_end():
    group = group_of(*TWO_TABLES, commit_id=44)

    assert through(ContentFilter(choice(["other.*"])), group) == [group.gtid_event, XID]
    kept, other = OriginFilter(domain_ids=frozenset([3])), OriginFilter(server_ids=frozenset([8]))

    assert len(through(kept, group_of(*TWO_TABLES))) == 1 + len(TWO_TABLES)
    assert types(through(other, group_of(*TWO_TABLES))) == [T.GTID, T.QUERY]
    assert through(OriginFilter(server_ids=frozenset([8]), drops_empty=True), group_of(*TWO_TABLES)) is None


def test_ddl_of_which_nothing_is_left_becomes_an_empty_transaction():
    group = group_of(query("ALTER TABLE items ADD c INT"), flags=STANDALONE | GtidFlag.ALLOW_PARALLEL)

    gtid_event, commit = through(ContentFilter(ORDERS), group)

    assert decode_gtid_event(gtid_event).flags == GtidFlag.ALLOW_PARALLEL
    assert commit.endswith(b"COMMIT")
    assert int.from_bytes(commit[:4], "little") == 99  # the time of the group


def test_an_empty_group_is_left_out_where_that_is_chosen():
    drops = ContentFilter(choice(["other.*"]), drops_empty=True)

    assert through(drops, group_of(*TWO_TABLES)) is None
    assert through(drops, group_of(query("ALTER TABLE items ADD c INT"), flags=STANDALONE)) is None
    assert types(through(drops, group_of(XID))) == [T.GTID, T.XID], "it was empty in the log already"
    left = through(ContentFilter(ORDERS, drops_empty=True), group_of(*TWO_TABLES))
    assert types(left)[-2:] == [T.WRITE_ROWS_V1, T.XID]


def test_an_xa_transaction_is_never_left_out_since_its_commit_is_another_group():
    xid = GtidXid(format_id=1, gtrid=b"x", bqual=b"")
    changes = query("XA START X'78',X'',1"), *TWO_TABLES[4:6], query("XA END X'78',X'',1")
    prepare = encode_event(event_type=T.XA_PREPARE, body=bytes(16), server_id=1)
    xa = group_of(*changes, prepare, flags=TRANSACTION | GtidFlag.PREPARED_XA, xid=xid)

    assert types(through(ContentFilter(ORDERS, drops_empty=True), xa)) == [T.GTID, T.QUERY, T.QUERY, T.XA_PREPARE]


@pytest.mark.parametrize(("text", "outcome"), rows_of(__file__, "filtered"))
def test_a_statement_is_left_left_out_or_refused(text, outcome):
    group, stage = group_of(query(text), XID), ContentFilter(ORDERS)
    if outcome == "refused":
        with pytest.raises(StageError, match="group 3-1-7 cannot be filtered: "):
            through(stage, group)
    else:
        assert types(through(stage, group))[1:] == [T.QUERY, T.XID][outcome == "left out" :]


def test_a_file_that_was_to_be_loaded_is_removed_again():
    block = encode_event(event_type=T.BEGIN_LOAD_QUERY, body=(77).to_bytes(4, "little") + b"1\n", server_id=1)
    body = query("LOAD DATA INFILE 'f' INTO TABLE items")[EVENT_HEADER_SIZE:]
    body = body[:13] + (77).to_bytes(4, "little") + bytes(9) + body[13:]
    group = group_of(block, encode_event(event_type=T.EXECUTE_LOAD_QUERY, body=body, server_id=1), XID)

    left = through(ContentFilter(ORDERS), group)

    assert types(left) == [T.GTID, T.BEGIN_LOAD_QUERY, T.DELETE_FILE, T.XID]
    assert left[2][EVENT_HEADER_SIZE:] == (77).to_bytes(4, "little")


NUMBER = encode_event(event_type=T.INTVAR, body=bytes(9), server_id=1)
OF_EACH_KIND = (
    *(query("CREATE TABLE t (a INT)"), table_map(1, "shop.t"), rows(1, ends=True), query("INSERT INTO t VALUES (1)")),
    XID,
)
LEFT = {  # what goes through a filter, and what is left behind the GTID event
    "a trigger of a database that is wholly chosen": (
        *(ContentFilter(choice(["sh?p.*"], ["other.t"])), (query("DROP TRIGGER t"), XID), [T.QUERY, T.XID]),
    ),
    "what belongs to a statement": (
        *(ContentFilter(ORDERS), (NUMBER, query("DELETE FROM items"), NUMBER, query("DELETE FROM orders"), XID)),
        [T.INTVAR, T.QUERY, T.XID],
    ),
    "rows alone": (ContentFilter(kinds=["rows"]), OF_EACH_KIND, [T.TABLE_MAP, T.WRITE_ROWS_V1, T.XID]),
    "statements alone": (ContentFilter(kinds=["statements"]), OF_EACH_KIND, [T.QUERY, T.XID]),
    "DDL alone": (ContentFilter(kinds=["ddl"]), OF_EACH_KIND, [T.QUERY, T.XID]),
}


@pytest.mark.parametrize(("stage", "events", "left"), LEFT.values(), ids=LEFT)
def test_of_a_group_is_left(stage, events, left):
    assert types(through(stage, group_of(*events)))[1:] == left


def test_names_compare_as_the_server_of_the_log_compares_them():
    group = (table_map(1, "shop.orders"), rows(1, ends=True), XID)
    capitals = ["Shop.Orders"]

    assert len(through(ContentFilter(choice(capitals)), group_of(*group))) == 2
    assert len(through(ContentFilter(choice(capitals, case=NameCase.LOWER)), group_of(*group))) == 4


def test_a_large_group_goes_through_in_pieces():
    """Nothing of it is held: neither rows that are left nor those that are not."""
    count, size = 200, 100_000
    group = group_of()

    def body():
        yield table_map(1, "shop.orders") + table_map(2, "shop.items")
        for number in range(count):
            yield rows(1 + number % 2, ends=number == count - 1, size=size)
        yield XID

    group = EventGroup(gtid=group.gtid, gtid_event=group.gtid_event, body=body(), start=group.start, end=group.end)
    tracemalloc.start()
    try:
        total = sum(len(piece) for piece in ContentFilter(ORDERS).pass_on(group).body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert total > count // 2 * size
    assert peak < 10 * size


@pytest.mark.parametrize(
    "events",
    [(rows(9, ends=True), XID), (table_map(1, "shop.orders")[:-3],), (fragments(rows(1, ends=True), 2)[1], XID)],
    ids=["no TABLE_MAP", "cut", "second fragment first"],
)
def test_damage_is_an_error(events):
    with pytest.raises(EventError):
        through(ContentFilter(ORDERS), group_of(*events))


@pytest.mark.parametrize("flags", [TRANSACTION, STANDALONE])
def test_a_chosen_gtid_stays_without_what_it_did(flags):
    query = encode_query(
        Query(thread_id=1, seconds=0, error_code=0, status=b"", database=b"d", text=b"DROP TABLE t"),
        server_id=1,
        timestamp=99,
    )
    chosen = GtidFilter(frozenset({Gtid.parse("3-1-7")}))
    passed = chosen.pass_on(group_of(query, flags=flags))
    assert str(passed.gtid) == "3-1-7"
    assert b"DROP" not in b"".join(passed.body)
    other = group_of(query, flags=flags)
    assert GtidFilter(frozenset({Gtid.parse("3-1-8")})).pass_on(other) is other
