import pytest

from ibbmaster.event.rows.charset import character_size
from ibbmaster.rows.keeps import keeps_values
from ibbmaster.schema.collations import character_sets
from ibbmaster.schema.model import SqlType

INT, BIGINT = SqlType(word="int", length=11), SqlType(word="bigint", length=20)
LATIN = {"charset": "latin1", "collation": "latin1_swedish_ci"}
UTF8 = {"charset": "utf8mb4", "collation": "utf8mb4_general_ci"}
UTF8_3 = {"charset": "utf8mb3", "collation": "utf8mb3_general_ci"}
GBK = {"charset": "gbk", "collation": "gbk_chinese_ci"}


@pytest.mark.parametrize(
    ("old", "new", "is_kept"),
    [
        (INT, BIGINT, True),
        (BIGINT, INT, False),
        (SqlType(word="int", is_unsigned=True), BIGINT, True),
        (INT, SqlType(word="bigint", is_unsigned=True), False),
        (INT, SqlType(word="int", length=5, is_unsigned=True, is_zerofill=True), False),
        (SqlType(word="int", is_unsigned=True), SqlType(word="int", is_unsigned=True, is_zerofill=True), True),
        (INT, SqlType(word="decimal", length=20, scale=0), True),
        (INT, SqlType(word="decimal", length=20, scale=0, is_unsigned=True), False),
        (BIGINT, SqlType(word="decimal", length=18, scale=0), False),
        (SqlType(word="decimal", length=10, scale=2), SqlType(word="decimal", length=14, scale=4), True),
        (SqlType(word="decimal", length=10, scale=2), SqlType(word="decimal", length=10, scale=4), False),
        (SqlType(word="decimal", length=5), SqlType(word="decimal", length=5, is_unsigned=True), False),
        (SqlType(word="datetime", scale=3), SqlType(word="datetime", scale=6), True),
        (SqlType(word="datetime", scale=3), SqlType(word="datetime"), False),
        (SqlType(word="datetime"), SqlType(word="timestamp"), False),
        (SqlType(word="date"), SqlType(word="datetime", scale=3), True),
        (SqlType(word="enum", labels=("a",), **UTF8), SqlType(word="enum", labels=("a", "b"), **UTF8), True),
        (SqlType(word="enum", labels=("a", "b"), **UTF8), SqlType(word="enum", labels=("b", "a"), **UTF8), True),
        (SqlType(word="enum", labels=("a", "b"), **UTF8), SqlType(word="enum", labels=("b",), **UTF8), False),
        (SqlType(word="varchar", length=5, **LATIN), SqlType(word="varchar", length=9, **UTF8), True),
        (SqlType(word="varchar", length=5, **UTF8), SqlType(word="varchar", length=9, **LATIN), False),
        (SqlType(word="varchar", length=9, **UTF8), SqlType(word="varchar", length=5, **UTF8), False),
        (SqlType(word="varchar", length=5, **GBK), SqlType(word="varchar", length=5, **UTF8_3), True),
        (SqlType(word="varchar", length=5, **UTF8), SqlType(word="varchar", length=5, **UTF8_3), False),
        (
            SqlType(word="varchar", length=5, is_compressed=True, **UTF8),
            SqlType(word="varchar", length=5, **UTF8),
            True,
        ),
        (SqlType(word="char", length=5, **UTF8), SqlType(word="varchar", length=5, **UTF8), True),
        (SqlType(word="varchar", length=5, **UTF8), SqlType(word="char", length=5, **UTF8), False),
        (SqlType(word="varchar", length=5, **UTF8), SqlType(word="text", **UTF8), True),
        (SqlType(word="char", length=5, **LATIN), SqlType(word="tinytext", **UTF8), True),
        (SqlType(word="varchar", length=64, **LATIN), SqlType(word="tinytext", **UTF8), False),
        (SqlType(word="text", **UTF8), SqlType(word="longtext", **UTF8), True),
        (SqlType(word="longtext", **UTF8), SqlType(word="text", **UTF8), False),
        (SqlType(word="binary", length=4), SqlType(word="varbinary", length=4), True),
        (SqlType(word="varbinary", length=4), SqlType(word="binary", length=4), False),
        (SqlType(word="float"), SqlType(word="double"), True),
        (SqlType(word="double"), SqlType(word="float"), False),
        (SqlType(word="double"), SqlType(word="double", length=10, scale=2), False),
        (SqlType(word="double", length=10, scale=2), SqlType(word="double"), True),
        (SqlType(word="float"), SqlType(word="double", is_unsigned=True), False),
        (SqlType(word="uuid"), SqlType(word="uuid"), True),
        (SqlType(word="point"), SqlType(word="geometry"), True),
        (SqlType(word="point"), SqlType(word="polygon"), False),
        (SqlType(word="vector", length=3), SqlType(word="vector", length=4), False),
        (SqlType(word="unheard"), SqlType(word="of"), False),
        (INT, SqlType(word="varchar", length=20, **UTF8), False),
    ],
)
def test_only_changes_that_keep_every_value_are_trusted(old: SqlType, new: SqlType, is_kept: bool) -> None:
    assert keeps_values(old, new) is is_kept
    assert keeps_values(old, old)


def test_characters_have_the_sizes_of_their_sets() -> None:
    assert {name: character_size(name) for name in character_sets()} == {
        name: known.size_max for name, known in character_sets().items()
    }
