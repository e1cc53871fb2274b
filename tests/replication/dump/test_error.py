import copy
import pickle

import pytest

from ibbmaster import errors
from ibbmaster.position import LogPosition
from ibbmaster.replication.dump.error import DumpError, not_continuous, reading_failed, seeking_failed

HERE = LogPosition.on_page(3, 17, 162)

CAUSES = {
    "a checksum": (errors.ChecksumError(HERE, "x"), f"event read from binlog did not pass crc check ({HERE})"),
    "a record": (errors.RecordError(HERE, "x"), f"bogus data in log event ({HERE})"),
    "a traditional file": (
        errors.ClassicFormatError("log.000001", 4, "x"),
        "bogus data in log event (log.000001 offset 4)",
    ),
    "what a stage refuses": (
        errors.StageError("group 0-1-7 cannot be filtered: x"),
        "group 0-1-7 cannot be filtered: x",
    ),
    "an event without a place": (errors.EventError("x"), "bogus data in log event (group 7)"),
    "the disk": (errors.StoreError("x"), "I/O error reading log event (group 7)"),
}


@pytest.mark.parametrize(("cause", "text"), CAUSES.values(), ids=CAUSES)
def test_the_replica_gets_mariadbs_words_with_the_place_and_our_log_the_cause(cause, text):
    error = reading_failed(cause, group_place="group 7")

    assert (error.err.code, error.err.sqlstate, error.err.text) == (1236, "HY000", text)
    assert error.explanation == str(cause)
    assert str(error) == f"error 1236 ({text}): {cause}"


def test_an_error_that_is_meant_for_the_replica_stays_as_it_is():
    error = DumpError("text", "why", code=1045, sqlstate="28000")
    assert reading_failed(error) is error


@pytest.mark.parametrize("tell", [reading_failed, seeking_failed])
def test_what_was_purged_is_told_as_too_old(tell):
    error = tell(errors.PositionPurgedError("files up to 5 are gone"))
    assert (error.code, error.text, error.explanation) == (
        1236,
        "Could not find GTID state requested by slave in any binlog files. Probably the slave state is too old and "
        "required binlog files have been purged.",
        "files up to 5 are gone",
    )


def test_damage_on_the_way_to_a_position_is_told_with_its_place():
    assert seeking_failed(errors.RecordError(HERE, "x")).text == (
        f"Error while looking up GTID position in engine binlog ({HERE})"
    )
    assert seeking_failed(errors.EventError("x")).text == "Error while looking up GTID position in engine binlog"
    assert seeking_failed(errors.StoreError("x")).text == "Error while looking up GTID position in engine binlog (x)"
    assert reading_failed(errors.EventError("x")).text == "bogus data in log event"


def test_a_stream_that_would_not_go_on_says_both_places():
    assert not_continuous("a", "b").text == "the stream would not go on where it ended: a, and b would come next"


def test_an_error_survives_the_way_between_processes_and_takes_a_place():
    error = DumpError("text", "why", code=1045, sqlstate="28000")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (again.text, again.explanation, again.code, again.sqlstate) == ("text", "why", 1045, "28000")
    assert error.with_place("; at 4").err.text == "text; at 4"
    assert error.with_place("; at 4").code == 1045
    advised = pickle.loads(pickle.dumps(DumpError("text", "why", advice="begin elsewhere")))
    assert advised.with_place("; at 4").err.text == "text; at 4 (begin elsewhere)"
