"""Which table a name means: it is followed by generation, through RENAME, swaps and TRUNCATE, and no further."""

import random
from itertools import count

import pytest

from ibbmaster.position import LogPosition
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.identity import ranges_of
from ibbmaster.schema.saved_history import LastFolded, decode_history, encode_history
from tests.table_versions import logged_statement, place

T = "CREATE TABLE t (id INT, a INT)"
U = "CREATE TABLE u (id INT)"
CASES = {  # statements, one at each place from 1 on; then the names of t at the end, and from where to where
    "from its CREATE TABLE on": ([T], {"t": (1, None)}),
    "nothing is said of it": ([U], {"t": (None, None)}),
    "altered": ([T, "ALTER TABLE t ADD b INT"], {"t": (1, None)}),
    "truncated": ([T, "TRUNCATE TABLE t"], {"t": (1, None)}),
    "renamed": ([U, "RENAME TABLE u TO t"], {"u": (1, None), "t": (2, None)}),
    "truncated, and renamed": ([U, "TRUNCATE u", "ALTER TABLE u RENAME t"], {"u": (1, None), "t": (3, None)}),
    "swapped": ([T, U, "RENAME TABLE t TO v, u TO t, v TO u"], {"u": (2, 3), "t": (3, None)}),
    "dropped and created": ([T, "DROP TABLE t", T], {"t": (3, None)}),
    "replaced": ([T, "CREATE OR REPLACE TABLE t (id INT)"], {"t": (2, None)}),
    "replaced by a query": ([T, "CREATE OR REPLACE TABLE t SELECT 1"], {"t": (2, None)}),
    "gone with its database": ([T, "DROP DATABASE db", T], {"t": (3, None)}),
    "copied": ([U, "CREATE TABLE t LIKE u"], {"t": (2, None)}),
    "gone at the end": ([T, "DROP TABLE t"], {"t": (1, None)}),
    "called otherwise at the end": ([T, "RENAME TABLE t TO v"], {"t": (1, None), "v": (2, None)}),
    "from before the log": (["ALTER TABLE t ADD b INT"], {"t": (None, None)}),
    "from before the log, replaced": ([T], {"t": (1, None)}),
    "from before the log, renamed": (["RENAME TABLE u TO t"], {"u": (None, None), "t": (1, None)}),
    "from before the log, renamed twice": (
        ["RENAME TABLE u TO v", "RENAME TABLE v TO t"],
        {"u": (None, None), "v": (1, None), "t": (2, None)},
    ),
    "from before the log, swapped": (["RENAME TABLE t TO v, u TO t"], {"u": (None, None), "t": (1, None)}),
    "from before the log, and not understood": (
        ["RENAME TABLE u TO t", "ALTER TABLE t FROBNICATE"],
        {"u": (None, None), "t": (1, None)},
    ),
    "not understood, and made anew": (
        [T, "ALTER TABLE t FROBNICATE", T.replace("TABLE", "OR REPLACE TABLE")],
        {"t": (3, None)},
    ),
    "not understood, and renamed": (
        [U, "ALTER TABLE u FROBNICATE", "RENAME TABLE u TO t"],
        {"u": (1, None), "t": (3, None)},
    ),
}


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
    assert found_in(history) == names


def test_a_name_means_what_it_means_at_a_place() -> None:
    history = folded([T, U, "RENAME TABLE t TO v, u TO t"])
    assert found_in(history, at=2) == {"t": (1, 3), "v": (3, None)}
    assert found_in(history, at=3) == {"u": (2, None), "t": (3, None)}


def test_whatever_happens_to_names_a_table_has_those_that_a_model_of_them_says() -> None:
    """The model knows nothing of columns and generations: it moves tokens from name to name.

    A name that no table has at a place is in no event there.
    """
    seeds = random.sample(range(1 << 32), 40)
    for seed in seeds:
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
    """A statement that a server takes; `now` has by its name what tells each table from the others."""
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
