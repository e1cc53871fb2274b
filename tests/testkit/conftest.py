"""Primaries of the test kit, and python-mysql-replication as somebody else who reads what they send."""

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from lanes.primary import login_of
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import MariadbGtidEvent

from ibbmaster.pytest_plugin import ibb_log, ibb_options, ibb_primary  # noqa: F401 - as the plugin has them, installed or not
from ibbmaster.testkit import FixturePrimary, FixtureTable


@pytest.fixture
def orders(ibb_primary) -> FixtureTable:  # noqa: F811
    return ibb_primary.table("shop.orders", id="int primary key", total="decimal(10,2)", note="varchar(20)")


@pytest.fixture
def read_by_python() -> Callable[..., list[Any]]:
    """Everything that a primary sends, as events of python-mysql-replication; a GTID event as its text."""

    def read(primary: FixturePrimary, *kinds: type, position: str = "4294967294-1-1", **options: Any) -> list[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stream = BinLogStreamReader(
                connection_settings=login_of(primary) | {"ssl_disabled": True},
                server_id=4711,
                is_mariadb=True,
                auto_position=position,
                only_events=kinds or None,
                **options,
            )
            with contextlib.closing(stream):
                return [event.gtid if isinstance(event, MariadbGtidEvent) else event for event in stream]

    return read
