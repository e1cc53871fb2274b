"""A history is the same after it was kept, and whatever else the bytes are, they are refused."""

import json
import random

import pytest

from ibbmaster.position import LogPosition
from ibbmaster.schema import saved_history
from ibbmaster.schema.name_case import NameCase
from ibbmaster.storage.codec.crc32c import crc32c
from tests.case_table import data_beside
from tests.schema.conftest import Folded, logged, place

UP_TO = saved_history.LastFolded(LogPosition(0, 7), "0-1-7", "ab" * 32, "0-1-6", "cd")
STATEMENTS = data_beside(__file__)


def with_header(content):
    data = json.dumps(content).encode()
    return saved_history.HEADER.pack(saved_history.MAGIC, saved_history.FORMAT, len(data), crc32c(data)) + data


@pytest.mark.parametrize("case", [None, *NameCase])
@pytest.mark.parametrize("is_whole", [False, True])
def test_names_are_compared_as_before(case, is_whole):
    history = Folded(case=case, is_whole=is_whole).run("CREATE DATABASE Shop", "CREATE TABLE Shop.Orders (a INT)")
    kept, _ = saved_history.decode_history(saved_history.encode_history(history, UP_TO))
    assert (kept.case, kept.is_whole, kept.fold.finder is None) == (history.case, is_whole, case is not None)
    assert kept.at() == history.at()
    for name in ("Orders", "orders", "ORDERS"):
        assert kept.table_at("Shop", name) == history.table_at("Shop", name)
    kept.add(place(9), "0-1-9", 0, logged("ALTER TABLE shop.orders ADD b INT"))
    history.add(place(9), "0-1-9", 0, logged("ALTER TABLE shop.orders ADD b INT"))
    assert kept.at() == history.at()


def test_what_was_kept_is_the_same_history(folded):
    folded.run(*STATEMENTS)
    folded.disagreements.append("GTID 0-1-9: something")
    history, up_to = saved_history.decode_history(saved_history.encode_history(folded, UP_TO))
    assert up_to == UP_TO
    assert (history.lines, history.places) == (folded.lines, folded.places)
    assert (history.end, history.disagreements) == (folded.end, folded.disagreements)
    assert history.at() == folded.at()
    assert history.fold.temporary == folded.fold.temporary
    assert saved_history.encode_history(history, UP_TO) == saved_history.encode_history(folded, UP_TO)


def test_folding_goes_on_where_it_ended(folded):
    folded.run(*STATEMENTS)
    history, _ = saved_history.decode_history(saved_history.encode_history(folded, UP_TO))
    twin = type(folded)()
    twin.__dict__.update(history.__dict__)
    twin.fold._on_change = twin._note
    twin.count = folded.count
    more = ("DROP TABLE t", "CREATE TABLE u LIKE t", "DROP DATABASE d", "CREATE TABLE d.v (a CHAR(1))")
    assert twin.run(*more).lines == folded.run(*more).lines


def test_bytes_that_were_changed_are_refused(folded):
    data = saved_history.encode_history(folded.run(*STATEMENTS), UP_TO)
    rng = random.Random(random.randrange(2**32))  # of the suite's seed
    for _ in range(300):
        broken = bytearray(data)
        broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        with pytest.raises(saved_history.SavedHistoryError):
            saved_history.decode_history(bytes(broken))
    for size in range(0, len(data), 97):
        with pytest.raises(saved_history.SavedHistoryError):
            saved_history.decode_history(data[:size])


def test_content_of_another_shape_is_refused_though_its_checksum_is_right(folded):
    content = json.loads(saved_history.encode_history(folded.run(*STATEMENTS), UP_TO)[saved_history.HEADER.size :])
    rng = random.Random(random.randrange(2**32))
    strange = (None, -1, 1 << 70, "x", [], {}, [[]], True, 0.5, {"a": 1}, [None, None, None])
    refused = 0
    for _ in range(1000):
        twin = json.loads(json.dumps(content))
        change_somewhere(twin, rng, rng.choice(strange))
        try:
            history, _ = saved_history.decode_history(with_header(twin))
        except saved_history.SavedHistoryError:
            refused += 1
        else:
            history.at()
            history.fold.restart()
    assert refused > 500


def change_somewhere(value, rng, strange):
    while True:
        key = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if not (isinstance(value[key], dict | list) and value[key]) or rng.random() < 0.05:
            value[key] = strange
            return
        value = value[key]


def test_deep_nesting_is_refused():
    data = b"[" * 200_000
    with pytest.raises(saved_history.SavedHistoryError):
        saved_history.decode_history(
            saved_history.HEADER.pack(saved_history.MAGIC, saved_history.FORMAT, len(data), crc32c(data)) + data
        )
