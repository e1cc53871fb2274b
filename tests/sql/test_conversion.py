from __future__ import annotations

import pytest

from ibbmaster.schema.model import SqlType
from ibbmaster.sql.conversion import keeps_values

INT, BIGINT = SqlType(word="int", length=11), SqlType(word="bigint", length=20)
LATIN = {"charset": "latin1", "collation": "latin1_swedish_ci"}
UTF8 = {"charset": "utf8mb4", "collation": "utf8mb4_general_ci"}


@pytest.mark.parametrize(
    ("old", "new", "is_kept"),
    [
        (INT, BIGINT, True),
        (BIGINT, INT, False),
        (SqlType(word="int", is_unsigned=True), BIGINT, True),
        (INT, SqlType(word="bigint", is_unsigned=True), False),
        (INT, SqlType(word="int", length=5, is_zerofill=True), True),
        (SqlType(word="decimal", length=10, scale=2), SqlType(word="decimal", length=14, scale=4), True),
        (SqlType(word="decimal", length=10, scale=2), SqlType(word="decimal", length=10, scale=4), False),
        (SqlType(word="datetime", scale=3), SqlType(word="datetime", scale=6), True),
        (SqlType(word="datetime", scale=3), SqlType(word="datetime"), False),
        (SqlType(word="datetime"), SqlType(word="timestamp"), False),
        (SqlType(word="enum", labels=("a",), **UTF8), SqlType(word="enum", labels=("a", "b"), **UTF8), True),
        (SqlType(word="enum", labels=("a", "b"), **UTF8), SqlType(word="enum", labels=("b", "a"), **UTF8), False),
        (SqlType(word="varchar", length=5, **LATIN), SqlType(word="varchar", length=9, **UTF8), True),
        (SqlType(word="varchar", length=5, **UTF8), SqlType(word="varchar", length=9, **LATIN), False),
        (SqlType(word="varchar", length=9, **UTF8), SqlType(word="varchar", length=5, **UTF8), False),
        (SqlType(word="char", length=5, **UTF8), SqlType(word="varchar", length=5, **UTF8), True),
        (SqlType(word="varchar", length=5, **UTF8), SqlType(word="char", length=5, **UTF8), False),
        (SqlType(word="text", **UTF8), SqlType(word="longtext", **UTF8), True),
        (SqlType(word="longtext", **UTF8), SqlType(word="text", **UTF8), False),
        (SqlType(word="float"), SqlType(word="double"), False),
        (SqlType(word="double"), SqlType(word="double", length=10, scale=2), False),
        (SqlType(word="uuid"), SqlType(word="uuid"), True),
        (INT, SqlType(word="varchar", length=20, **UTF8), False),
    ],
)
def test_only_changes_that_keep_every_value_are_trusted(old: SqlType, new: SqlType, is_kept: bool) -> None:
    assert keeps_values(old, new) is is_kept
