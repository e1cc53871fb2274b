import pickle
import random
from itertools import count
from types import MappingProxyType

import pytest

from ibbmaster.position import LogPosition
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import UnknownTable
from ibbmaster.schema.saved_history import LastFolded, decode_history, encode_history
from ibbmaster.schema.versions import TableVersions, ranges_of
from tests.case_table import data_beside
from tests.table_versions import column, logged_statement, place, version

FIRST = version(column(1, "a"))
SECOND = version(column(1, "b"), since=place(10, 1))
LOST = UnknownTable(database="db", name="t", since=place(20), gtid="0-1-20", reason="nobody knows")
VERSIONS = TableVersions({("db", "t"): [FIRST, SECOND, LOST]})


def test_the_version_at_a_place_is_the_last_one_made_in_front_of_it() -> None:
    assert VERSIONS.at("db", "t", place(10)).columns[0].name == "a"
    assert VERSIONS.at("db", "t", place(10, 2)).columns[0].name == "b"
    assert VERSIONS.at("db", "t", place(25)) is LOST
    assert VERSIONS.at("db", "other", place(10)) is None
    assert TableVersions({("db", "t"): [SECOND]}).at("db", "t", place(5)) is None


def test_a_range_has_the_versions_that_hold_in_it() -> None:
    assert VERSIONS.boundaries() == [place(10, 1), place(20)]
    (found,) = VERSIONS.between(LogPosition(0, 11), LogPosition(0, 15)).of("db", "t")
    assert found.since == place(10, 1)
    assert VERSIONS.between(LogPosition(0, 0), LogPosition(0, 5)).of("db", "t")[-1].since is None


def test_ranges_between_which_nothing_changes_share_their_versions() -> None:
    starts = [LogPosition(0, offset) for offset in range(30)]
    parts = [VERSIONS.between(start, end) for start in starts for end in starts if start < end]
    assert len({id(one) for one in parts}) == 6  # in front of, between and behind two places, and over one or both
    assert VERSIONS.between(LogPosition(0, 0), LogPosition(0, 20)).of("db", "t") == VERSIONS.of("db", "t")


def test_what_is_sent_is_what_rows_need() -> None:
    long = "x" * 100_000
    table = version(
        column(1, "a"), options=MappingProxyType({"COMMENT": long}), text=long, partitioning=long, since=place(3)
    )
    data = pickle.dumps(TableVersions({("db", "t"): [table]}))

    assert len(data) < 2000
    assert pickle.loads(data).at("db", "t", place(4)).primary_key is not None


T = "CREATE TABLE t (id INT, a INT)"
U = "CREATE TABLE u (id INT)"
#: Statements, one at each place from 1 on; then the names of t at the end, and from where to where.
CASES = data_beside(__file__)


def folded(statements: list[str]) -> SchemaHistory:
    history = SchemaHistory()
    for number, text in enumerate(statements, start=1):
        history.add(place(number), f"0-1-{number}", 0, logged_statement(text))
    return history


def found_in(history: SchemaHistory, at: int | None = None) -> dict[str, tuple[int | None, int | None]]:
    """The names, each from the first place where it was given to the last one where it was taken away."""
    found: dict[str, tuple[int | None, int | None]] = {}
    for (database, name), since, until in ranges_of(history, ("db", "t"), None if at is None else place(at)):
        assert database == "db"
        first, last = (None if one is None else one.position.offset for one in (since, until))
        found[name] = (found[name][0] if name in found else first, last)
    return found


@pytest.mark.parametrize("is_saved", [False, True], ids=["folded", "saved"])
@pytest.mark.parametrize(("statements", "names"), CASES.values(), ids=CASES)
def test_a_table_has_these_names(statements, names, is_saved) -> None:
    history = folded(statements)
    if is_saved:
        history, _ = decode_history(encode_history(history, LastFolded(LogPosition(0, 0), "", "", "", "")))
    assert found_in(history) == {name: tuple(ends) for name, ends in names.items()}


def test_a_name_means_what_it_means_at_a_place() -> None:
    history = folded([T, U, "RENAME TABLE t TO v, u TO t"])
    assert found_in(history, at=2) == {"t": (1, 3), "v": (3, None)}
    assert found_in(history, at=3) == {"u": (2, None), "t": (3, None)}


def test_whatever_happens_to_names_a_table_has_those_that_a_model_of_them_says() -> None:
    """The model knows nothing of columns and generations: it moves tokens from name to name.

    A name that no table has at a place is in no event there.
    """
    for seed in random.sample(range(1 << 32), 40):
        print(f"seed {seed}")
        rng, tokens = random.Random(seed), count()
        now: dict[str, int] = {}
        states, statements = [], []
        for _ in range(14):
            statements.append(next_statement(rng, now, tokens))
            states.append(dict(now))
        history = folded(statements)
        for name, token in now.items():
            ranges = ranges_of(history, ("db", name))
            for number, state in enumerate(states, start=1):
                behind = place(number)._replace(event_no=9)
                means = {one for one in state if any(called.holds(("db", one), behind) for called in ranges)}
                assert means == {one for one in state if state[one] == token}, (seed, name, number, statements)


def next_statement(rng: random.Random, now: dict[str, int], tokens) -> str:
    there, free = sorted(now), sorted({"t", "u", "v"} - now.keys())
    verbs = ["TRUNCATE", "TRUNCATE", "ALTER", "REPLACE", "DROP"] * bool(there) + ["CREATE"] * bool(free)
    verbs += ["RENAME", "LIKE"] * bool(there and free) + ["SWAP"] * (len(there) == 2)
    verb = rng.choice(verbs)
    if verb == "CREATE":
        name = rng.choice(free)
        now[name] = next(tokens)
        return f"CREATE TABLE {name} (id INT, a INT)"
    old = rng.choice(there)
    if verb == "RENAME":
        new = rng.choice(free)
        now[new] = now.pop(old)
        return rng.choice((f"RENAME TABLE {old} TO {new}", f"ALTER TABLE {old} ADD a{next(tokens)} INT, RENAME {new}"))
    if verb == "LIKE":
        now[free[0]] = next(tokens)
        return f"CREATE TABLE {free[0]} LIKE {old}"
    if verb == "SWAP":
        one, other = there
        now[one], now[other] = now[other], now[one]
        return f"RENAME TABLE {one} TO {free[0]}, {other} TO {one}, {free[0]} TO {other}"
    if verb == "DROP":
        del now[old]
    elif verb == "REPLACE":
        now[old] = next(tokens)
    return {
        "TRUNCATE": f"TRUNCATE TABLE {old}",
        "ALTER": f"ALTER TABLE {old} ADD b{next(tokens)} INT",
        "REPLACE": f"CREATE OR REPLACE TABLE {old} (id INT)",
        "DROP": f"DROP TABLE {old}",
    }[verb]
