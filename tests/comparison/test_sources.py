"""Transactions of a log, and those that a primary sends, are the same to who compares them."""

from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.api import group as group_module
from ibbmaster.capture.client import PrimaryAddress
from ibbmaster.comparison.differences import Comparison
from ibbmaster.comparison.sources import logged_groups, sent_groups
from ibbmaster.gtid import GtidPosition

IBB = Path(__file__).parents[2] / "fixtures" / "ibb"


def test_a_log_equals_itself_as_a_primary_sends_it():
    with (
        ibbmaster.serve(IBB / "domains", password="secret", tls="off") as primary,
        ibbmaster.open(IBB / "domains") as log,
    ):
        address = PrimaryAddress(
            host=primary.host, port=primary.port, user="repl", password="secret", uses_tls=False, server_id=77
        )
        found = Comparison(logged_groups(log), sent_groups(address, GtidPosition()))
        assert (list(found), found.equal) == ([], sum(1 for _ in log))
        later = Comparison(logged_groups(log), sent_groups(address, GtidPosition.parse("2-2-4")))
        assert {difference.kind for difference in later} == {"only in first"}
        assert {difference.gtid.domain_id for difference in later} <= {2}


@pytest.mark.parametrize("kept_max", [1 << 20, 0], ids=["kept", "read again"])
def test_a_transaction_of_a_log_is_read_again_and_not_kept(kept_max, monkeypatch):
    monkeypatch.setattr(group_module, "KEPT_BYTES_MAX", kept_max)
    with ibbmaster.open(IBB / "domains") as log:
        groups = list(logged_groups(log))
        assert all(group._group._kept is None for group in groups)
        assert list(groups[3].data()) == list(groups[3].data()) != []
        assert groups[3].place().startswith("binlog-000000.ibb page 1")
