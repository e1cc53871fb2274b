"""Options of stages are checked before a log is touched, and each means the same wherever it is given."""

from __future__ import annotations

from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.api.stage_options import check_stages, expect_tables, given_stages, stage_options
from ibbmaster.cli.main import main
from ibbmaster.errors import ConfigurationError, GtidError

TYPES = Path(__file__).parents[2] / "fixtures" / "ibb" / "types"


def test_without_options_nothing_is_given():
    assert given_stages({name: option.default for name, option, *_ in stage_options()}) == {}
    assert given_stages({"only": "a.b", "port": 7}) == {"only": "a.b"}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"only": "orders"}, "'orders' is not a pattern for tables: expected database.table"),
        ({"except_": ["a.b", "c."]}, "'c.' is not a pattern"),
        ({"domain": "x"}, "--domain 'x': expected numbers"),
        ({"server": "-1"}, "--server '-1': expected numbers"),
        ({"kinds": "rows,colours"}, "--kinds 'colours': choose of rows, statements, ddl"),
        ({"only": "a.b,,c.d"}, "--only 'a.b,,c.d': expected one or several"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused(options, text):
    with pytest.raises(ConfigurationError, match=text):
        check_stages(options)


def test_a_position_that_is_none_is_refused_and_so_is_an_unknown_stage():
    with pytest.raises(GtidError):
        check_stages({"until": "yesterdays"})
    with pytest.raises(TypeError, match="there is no stage 'upto'"):
        check_stages({"upto": "0-1-1"})


@pytest.mark.parametrize("only", ["s.t,s.u", ["s.t", "s.u"], " s.t , s.u "])
def test_several_values_are_a_text_with_commas_or_a_list(only):
    check_stages({"only": only})


def test_a_pattern_about_no_table_is_refused_with_the_tables_there_are(capsys):
    with (
        ibbmaster.open(TYPES) as log,
        pytest.raises(ConfigurationError, match=r"no table of this log matches x\.\*: it has "),
    ):
        expect_tables(log.through(only="x.*").staged)

    assert main(["serve", str(TYPES), "--only", "x.*", "--listen", "127.0.0.1:0"]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert said.err.startswith("ibbmaster: no table of this log matches x.*: it has ")


def test_a_day_that_reads_as_a_gtid_is_named() -> None:
    with ibbmaster.open(TYPES) as log, pytest.raises(ConfigurationError) as refused:
        log.through(until="2030-01-01")
    assert str(refused.value).endswith("to name a day, write --until '2030-01-01 00:00'")
