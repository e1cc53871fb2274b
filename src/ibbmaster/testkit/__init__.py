"""A primary for tests of CDC consumers: it writes what the test says, and misbehaves on cue.

from ibbmaster.testkit import FixturePrimary

with FixturePrimary(profile="classic-11.8") as primary:
    orders = primary.table("shop.orders", id="bigint unsigned primary key", total="decimal(10,2)")
    with primary.transaction(domain=1):
        orders.insert(id=1, total="9.90")

May import: api, logs, primary, replication, rows, schema, sqltext, storage.
"""

from ibbmaster.replication.event.rows.encoding import RowImage, RowMetadata
from .clock import FixtureClock
from .fixture_logs import fixture_log
from .primary import FixturePrimary
from .tables import FixtureTable, RowFormat
from .transactions import FixtureTransaction
from .witness import SeenConnection

__all__ = [
    "FixtureClock",
    "FixturePrimary",
    "FixtureTable",
    "FixtureTransaction",
    "RowFormat",
    "RowImage",
    "RowMetadata",
    "SeenConnection",
    "fixture_log",
]
