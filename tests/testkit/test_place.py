import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.replication.event.types import EventType
from ibbmaster.testkit.place import LANDMARKS, Landmark, Place, Side, landmark_of
from tests.case_table import rows_of

WRONG = [
    *("", "gtid", "after", "after nothing", "beside gtid", "after gtid 0", "after gtid -1", "after gtid at byte 3"),
    *("inside gtid", "inside handshake at byte 1", "after dump", "at statement", "at packet", "after tls"),
    *("after gtid " + "9" * 10, "after " + "x" * 5000, "after gtid\nbefore gtid"),
]


@pytest.mark.parametrize("landmark", Landmark)
@pytest.mark.parametrize("side", Side)
def test_a_place_is_written_as_it_is_read(side, landmark):
    byte = " at byte -12" if side is Side.INSIDE else ""
    for number in ("", " 7"):
        text = f"{side.value} {landmark.value}{number}{byte}"
        if side in LANDMARKS[landmark][0]:
            assert str(Place.parse(text.upper())) == text
        else:
            with pytest.raises(ConfigurationError, match="is no place"):
                Place.parse(text)


@pytest.mark.parametrize("text", WRONG)
def test_what_names_no_place_is_refused_in_a_line(text):
    with pytest.raises(ConfigurationError) as caught:
        Place.parse(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_groups_and_statements_belong_to_places_that_have_them():
    assert str(Place.parse("after rows 2", gtid="0-1-7")) == "after rows 2 of 0-1-7"
    assert str(Place.parse("before statement", sql="SET")) == "before statement with 'SET'"
    with pytest.raises(ConfigurationError, match="in no group"):
        Place.parse("before dump", gtid="0-1-7")
    with pytest.raises(ConfigurationError, match="at no statement"):
        Place.parse("before dump", sql="SET")


def test_a_rotate_that_is_in_no_file_ends_none():
    opening, later = (
        landmark_of(EventType.ROTATE, is_opening=is_opening, is_artificial=True) for is_opening in (True, False)
    )
    assert (opening, later) == (Landmark.OPENING_ROTATE, Landmark.EVENT)


@pytest.mark.parametrize(("event", "opens", "ends", "landmark"), rows_of(__file__, "event_landmarks"))
def test_an_event_is_what_its_type_and_its_place_in_the_stream_say(event, opens, ends, landmark):
    event_type = int(event) if event.isdigit() else EventType[event]
    assert landmark_of(event_type, is_opening=opens == "yes", ends_group=ends == "yes") is Landmark[landmark]
