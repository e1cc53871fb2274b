import pytest

from ibbmaster.api.statements import Origin, group_of, is_of_transaction, whole_group
from ibbmaster.errors import EventError
from ibbmaster.gtid import Gtid
from ibbmaster.replication.event.control import encode_xid
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, decode_gtid_event, encode_gtid_event
from ibbmaster.replication.event.query import decode_query, status_variables
from ibbmaster.replication.event.rows.charset import charset_of
from tests.case_table import data_beside

GTID = Gtid(domain_id=3, server_id=7, seq_no=9)
ORIGIN = Origin(server_id=7, timestamp=1_000, database="größe")
XID = encode_xid(1, server_id=7)
COMMIT = ORIGIN.query("COMMIT")
INSERT = "INSERT INTO t VALUES (1)"

TEXTS = data_beside(__file__)["texts"]


@pytest.mark.parametrize(("text", "is_it"), TEXTS.items())
def test_a_text_that_changes_rows_is_part_of_a_transaction(text, is_it):
    assert is_of_transaction(text) == is_it


ENDS = {
    "an XID": ([INSERT, XID], GtidFlag.TRANSACTIONAL | GtidFlag.ALLOW_PARALLEL),
    "a COMMIT": ([INSERT, COMMIT], GtidFlag.TRANSACTIONAL | GtidFlag.ALLOW_PARALLEL),
    "a text that changes rows": ([INSERT], GtidFlag.TRANSACTIONAL | GtidFlag.ALLOW_PARALLEL),
    "a text that defines": (["DROP TABLE t"], GtidFlag.STANDALONE | GtidFlag.DDL),
    "a statement as an event": ([ORIGIN.query("DROP TABLE t")], GtidFlag.STANDALONE),
}


@pytest.mark.parametrize(("parts", "flags"), ENDS.values(), ids=ENDS)
def test_the_end_of_a_group_says_what_flags_it_has(parts, flags):
    gtid_event, _ = group_of(GTID, parts, ORIGIN)
    assert decode_gtid_event(gtid_event) == GtidEvent(gtid=GTID, flags=flags, padding=6)


def test_the_flags_of_a_gtid_event_that_is_given_stay():
    given = encode_gtid_event(GtidEvent(gtid=GTID, flags=GtidFlag.GROUP_COMMIT, commit_id=5), timestamp=3)
    assert group_of(GTID, [given, XID], ORIGIN) == (given, [XID])
    other = Gtid(domain_id=1, server_id=2, seq_no=3)
    renamed, _ = group_of(other, [given, XID], ORIGIN)
    assert decode_gtid_event(renamed).commit_id == 5
    assert decode_gtid_event(renamed).gtid == other


def test_a_statement_has_its_database_and_is_utf8():
    query = decode_query(group_of(GTID, ["CREATE TABLE `𝄞` (a INT)"], ORIGIN)[1][0])
    assert (query.database.decode(), query.text.decode()) == ("größe", "CREATE TABLE `𝄞` (a INT)")
    ((_, charsets),) = status_variables(query.status)
    assert [charset_of(int.from_bytes(charsets[at : at + 2], "little")) for at in (0, 2, 4)] == ["utf8mb4"] * 3


GIVEN = encode_gtid_event(GtidEvent(gtid=GTID, flags=GtidFlag.TRANSACTIONAL), timestamp=3)
RENAMED = encode_gtid_event(GtidEvent(gtid=Gtid(domain_id=3, server_id=7, seq_no=8), flags=GtidFlag.TRANSACTIONAL))


@pytest.mark.parametrize("parts", [[GIVEN, COMMIT, XID], [GIVEN, XID], (GIVEN, XID), [GIVEN]], ids=len)
def test_whole_events_are_taken_as_any_other_parts(parts):
    assert whole_group(GTID, parts) == group_of(GTID, parts, ORIGIN)


OTHER_PARTS = {
    "nothing": [],
    "a text": [INSERT],
    "no GTID event": [XID],
    "a GTID event that comes later": [XID, GIVEN],
    "a text behind the GTID event": [GIVEN, INSERT],
    "a GTID event of another GTID": [RENAMED, XID],
    "bytes that may change": [GIVEN, bytearray(XID)],
    "half an event": [GIVEN, XID[:-1]],
    "half a header": [GIVEN, XID[:18]],
    "half a GTID event": [GIVEN[:-1], XID],
}


@pytest.mark.parametrize("parts", OTHER_PARTS.values(), ids=OTHER_PARTS)
def test_parts_that_have_to_be_looked_at_are_not_taken_for_whole_events(parts):
    assert whole_group(GTID, parts) is None


REFUSED = {
    "nothing": ([], "group 3-7-9 has nothing in it"),
    "a definition among changes": ([INSERT, "DROP TABLE t"], "'DROP TABLE t' is a group by itself"),
    "something behind the end": ([XID, XID], "ends at event 0, and 2 were given"),
    "half an event": ([XID[:-1]], "has 26 bytes and says it has 27"),
    "a text without a statement": ([" ;\n"], "no statement"),
    "a text that is no text": ([INSERT + "\ud800"], r"'\\ud800' at \d+ is no character"),
}


@pytest.mark.parametrize(("parts", "message"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_group_is_refused(parts, message):
    with pytest.raises(EventError, match=message):
        group_of(GTID, parts, ORIGIN)


def test_a_number_is_no_event():
    with pytest.raises(TypeError):
        group_of(GTID, [10**9], ORIGIN)  # type: ignore[list-item]  # `bytes` would make so many zeros of it
