from decimal import Decimal
from typing import Any

import pytest

from ibbmaster_scorecard.same_value import BitValue, EncodedText, PaddedBytes, is_same_value, shown_value

SAME: list[tuple[Any, Any]] = [
    *((None, None), (7, 7), (7, "7"), (7, 7.0), (1, True), (18446744073709551615, "18446744073709551615")),
    *((Decimal("9.90"), "9.9"), (Decimal("9.90"), 9.9), (Decimal("-0.00"), "0")),
    *((1.5, "1.5"), (0.10000000149011612, 0.1), (3.4e38, "3.4E+38")),
    *(("x", "x"), ("7", 7), ("x", "0x78"), ('{"a":1,"b":[2]}', '{"b": [2], "a": 1}')),
    ("2026-01-01 10:00:00.500", "2026-01-01T10:00:00.5Z"),
    ("2026-01-01 10:00:00.000", "2026-01-01 10:00:00"),
    *(("2026-01-01", "2026-01-01"), ("-10:00:00.25", "-10:00:00.250000")),
    *((b"\xff\x00", "0xff00"), (b"\xff\x00", "0xFF00"), (b"abc", "abc"), (b"", ""), (b"", "0x")),
    (EncodedText("abc", "utf32"), "\0\0\0a\0\0\0b\0\0\0c"),  # bytes that are UTF-8 by chance
    *((BitValue(5), "00101"), (BitValue(5), "0x05"), (BitValue(5), 5)),
    *((PaddedBytes(b"\1\0"), "0x01"), (PaddedBytes(b"\1\0"), "0x0100"), (PaddedBytes(b"ab\0"), "ab")),
    *((EncodedText("Zoë", "latin1"), "Zoë"), (EncodedText("Zoë", "latin1"), "0x5a6feb")),
    *((EncodedText("Zoë", "utf8mb4"), "0x5a6fc3ab"), (EncodedText("x", "utf32"), "0x00000078")),
    (EncodedText("x", "no such one"), "0x78"),
]
DIFFERENT: list[tuple[Any, Any]] = [
    *((None, ""), (None, 0), (0, None), ("", None)),
    *((7, 8), (7, "x"), (5, "101"), (1, [1]), (7, "NaN"), (7, "sNaN"), (Decimal("9.90"), "9.91")),
    *((1.5, "1.6"), (1.5, "NaN and more"), (1.5, "NaN"), (1.5, "sNaN"), (1.5, "1e999999999"), (1.5, "Infinity")),
    *(("x", "X"), ("x", "x "), ("x", 7), ("{no json", "{no  json"), ("[" * 100_000, "[" * 100_001)),
    *(("2026-01-01 10:00:00", "2026-01-01 11:00:00"), ("2026-01-01 10:00:00", "2026-01-01")),
    ("-10:00:00", "10:00:00"),
    *((b"\xff", "0xfe"), (b"\xff", "\ufffd"), (b"\xff", 255), (b"\1\0", "0x01")),
    *((BitValue(5), "00111"), (BitValue(5), ""), (PaddedBytes(b"\1\0"), "0x0001")),
    *((EncodedText("Zoë", "latin1"), "0x5a6fc3ab"), (EncodedText("x", "utf32"), "x\0")),
]


@pytest.mark.parametrize(("logged", "told"), SAME)
def test_the_same_value_in_another_form_is_the_same(logged, told):
    assert is_same_value(logged, told)


@pytest.mark.parametrize(("logged", "told"), DIFFERENT, ids=range(len(DIFFERENT)))
def test_another_value_is_another_one(logged, told):
    assert not is_same_value(logged, told)


def test_values_are_shown_in_short():
    assert shown_value(b"\xff") == "0xff"
    assert shown_value("x" * 500) == repr("x" * 80)
    assert shown_value(Decimal("9.90")) == "9.90"
