"""Logs that are written here, and the tables in them."""

import pytest
from lanes.answers import OurTables

import ibbmaster
from tests.written_log import write_log


@pytest.fixture
def tables_of(tmp_path):
    return lambda *groups: OurTables(ibbmaster.open(write_log(tmp_path / "log", *groups)).engine)
