import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.testkit.written import TEXT_SIZE_MAX, TIMES_MAX, repeated_groups


def test_changes_and_texts_come_so_many_times():
    (group,) = repeated_groups([{"changes": [{"times": 3, "delete": "t.a", "values": {"id": "{n}"}}]}])
    assert [change["values"]["id"] for change in group["changes"]] == [1, 2, 3]
    (group,) = repeated_groups([{"changes": [{"insert": "t.a", "values": [{"a": {"text": "ab", "times": 3}}]}]}])
    assert group["changes"][0]["values"][0]["a"] == "ababab"
    change = {"insert": "t.a", "values": [{"id": "{n}", "note": "number {n}"}]}
    assert list(repeated_groups([{"times": 2, "first": 7, "gtid": "0-3-{n}", "changes": [change]}])) == [
        {"gtid": "0-3-7", "changes": [{"insert": "t.a", "values": [{"id": 7, "note": "number 7"}]}]},
        {"gtid": "0-3-8", "changes": [{"insert": "t.a", "values": [{"id": 8, "note": "number 8"}]}]},
    ]


@pytest.mark.parametrize("group", [{"ddl": "DROP TABLE a"}, {"changes": "nothing"}, {"changes": [1]}, 5, "text", {}])
def test_everything_else_stays_as_it_is(group):
    assert list(repeated_groups([group])) == [group]


@pytest.mark.parametrize(
    "group",
    [
        {"times": "many", "flush": True},
        {"times": -1, "flush": True},
        {"times": True, "flush": True},
        {"times": TIMES_MAX + 1, "flush": True},
        {"times": 2, "first": 1 << 63, "flush": True},
        {"changes": [{"times": 1.5, "insert": "t.a"}]},
        {"changes": [{"insert": "t.a", "values": {"a": {"text": "abc", "times": TEXT_SIZE_MAX}}}]},
    ],
)
def test_a_number_that_is_none_or_too_large_is_refused(group):
    with pytest.raises(ConfigurationError, match="expected a whole number from 0 to"):
        list(repeated_groups([group]))
