import pytest

from ibbmaster.errors import EventError, IbbMasterError, SourceError
from ibbmaster.testkit import FixturePrimary, RowFormat
from ibbmaster.testkit.malformed import MALFORMATIONS
from tests.case_table import data_beside
from tests.tap import live_changes

PLACES = {"long file": "opening rotate", "short format": "opening format description", "huge rows": "rows"}
PLACES |= {"long extra": "rows", "cut header": "heartbeat", "almost nothing": "rows", "hidden event": "rows"}
PROBLEMS = data_beside(__file__)["problems"]  # what our own readers say


@pytest.mark.parametrize("profile", ["engine", "classic-11.8"])
@pytest.mark.parametrize("how", MALFORMATIONS)
def test_the_client_of_this_project_ends_with_a_clear_error(how, profile):
    with FixturePrimary(profile=profile) as primary:
        primary.format = RowFormat(is_compressed=how == "huge rows")
        orders = primary.table("shop.orders", id="int primary key", note="varchar(300)", total="decimal(10,2)")
        orders.insert({"id": 1, "note": "x" * 200, "total": 3}, {"id": 2, "note": "y" * 200, "total": 4})
        place = PLACES.get(how, "table map").replace("heartbeat", "gtid")
        primary.fault(f"at {place}", action="malform", be=how)
        if place == "opening rotate" and profile == "engine":
            pytest.skip("nobody registers: the stream opens without a ROTATE")
        with pytest.raises(IbbMasterError, match=PROBLEMS[how]) as caught:
            live_changes(primary)
        assert isinstance(caught.value, (EventError, SourceError))
        assert not primary.faults.pending
        assert len(live_changes(primary)) == 2
