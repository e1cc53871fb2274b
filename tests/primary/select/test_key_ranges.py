import itertools
import random
from operator import eq, ge, gt, le, lt, ne

import pytest

from ibbmaster.primary.select.key_ranges import KeyPart, ranges_of
from ibbmaster.rows.expr.kinds import Family, ValueType
from ibbmaster.rows.expr.scalars import SqlValue
from ibbmaster.sqltext.expression import Expression, Literal, Operation
from ibbmaster.tables.fold.kept_rows import successor

COMPARED = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def encode(value: object) -> bytes:
    return bytes((int(str(value)),))


def inverted(value: object) -> bytes:
    return bytes((255 - encode(value)[0],))


SLOTS = tuple(SqlValue(name, ValueType(kind=Family.INT)) for name in "abc")
PARTS = tuple(KeyPart(slot, inverted if slot.sql == "b" else encode, slot.sql == "b") for slot in SLOTS)
KEYS = list(itertools.product(range(4), repeat=3))


def compared(sign: str, slot: SqlValue, value: object) -> Operation:
    return Operation(sign, (slot, Literal(value)))


def condition(depth: int = 0) -> Expression:
    chance = random.random()
    if depth < 3 and chance < 0.5:
        return Operation(random.choice(["AND", "OR"]), tuple(condition(depth + 1) for _ in range(random.randint(2, 3))))
    if depth < 3 and chance < 0.6:
        return Operation("NOT", (condition(depth + 1),))
    column = random.choice(SLOTS)
    if chance < 0.7:
        return Operation("IN", (column, *(Literal(random.randrange(4)) for _ in range(2))))
    if chance < 0.8:
        return Operation("BETWEEN", (column, Literal(random.randrange(4)), Literal(random.randrange(4))))
    if chance < 0.85:
        return Operation("IS NULL", (column,))
    return compared(random.choice(list(COMPARED)), column, random.randrange(4))


def holds(expression: Expression, row: dict[str, int]) -> bool:
    match expression:
        case Operation("AND", operands):
            return all(holds(operand, row) for operand in operands)
        case Operation("OR", operands):
            return any(holds(operand, row) for operand in operands)
        case Operation("NOT", (operand,)):
            return not holds(operand, row)
        case Operation("IN", (SqlValue(sql=name), *values)):
            return row[name] in [value.value for value in values]  # type: ignore[union-attr]
        case Operation("BETWEEN", (SqlValue(sql=name), Literal(value=low), Literal(value=high))):
            return low <= row[name] <= high  # type: ignore[operator]
        case Operation("IS NULL", _):
            return False
        case Operation(sign, (SqlValue(sql=name), Literal(value=value))):
            return bool(COMPARED[sign](row[name], value))
    raise AssertionError(expression)


def key_of(values: tuple[int, ...]) -> bytes:
    return b"".join(part.encode(value) for part, value in zip(PARTS, values, strict=True))


def test_every_row_that_meets_a_condition_is_in_a_range_and_no_other_if_they_are_exact() -> None:
    exact = 0
    for _ in range(3000):
        where = condition()
        ranges = ranges_of(where, PARTS)
        assert list(ranges.intervals) == sorted(ranges.intervals)
        for values in KEYS:
            key = key_of(values)
            found = sum(first <= key and (end is None or key < end) for first, end in ranges.intervals)
            wanted = holds(where, dict(zip("abc", values, strict=True)))
            assert found <= 1, where
            assert found or not wanted, (where, values)
            assert not ranges.is_exact or bool(found) == wanted, (where, values)
        exact += ranges.is_exact
    assert exact > 500


def test_a_chunk_behind_a_key_is_one_range() -> None:
    a, _, b = SLOTS
    parts = (PARTS[0], PARTS[2])
    behind = Operation("OR", (compared(">", a, 1), Operation("AND", (compared("=", a, 1), compared(">", b, 2)))))

    ranges = ranges_of(behind, parts)

    assert ranges.intervals == ((b"\1\3", None),)
    assert ranges.is_exact


def test_a_constant_that_the_column_cannot_hold_leaves_the_condition_to_the_rows() -> None:
    ranges = ranges_of(compared(">", SLOTS[0], 1.5), PARTS)

    assert ranges.intervals == ((b"", None),)
    assert not ranges.is_exact


@pytest.mark.parametrize(("prefix", "behind"), [(b"a", b"b"), (b"a\xff", b"b"), (b"\xff\xff", None), (b"", None)])
def test_the_successor_of_a_prefix_is_behind_all_that_begin_with_it(prefix: bytes, behind: bytes | None) -> None:
    assert successor(prefix) == behind
