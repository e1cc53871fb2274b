import json
from contextlib import closing

import pytest

import ibbmaster
from ibbmaster import errors
from ibbmaster.commands.cli.main import main
from ibbmaster.errors import ConfigurationError, GtidError
from ibbmaster.gtid import Gtid
from ibbmaster.logs.stages.options import check_stages, expect_tables, given_stages, stage_options
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.storage.disk.local import RealDisk
from tests.built_logs import FIXTURES
from tests.case_table import rows_of
from tests.machinery.events import XID_EVENT, make_gtid_event

TYPES = FIXTURES / "ibb" / "types"


def test_no_options_are_no_stages_and_what_is_none_is_refused():
    assert given_stages({name: option.default for name, option, *_ in stage_options()}) == {}
    assert given_stages({"only": "a.b", "port": 7}) == {"only": "a.b"}
    with pytest.raises(GtidError):
        check_stages({"until": "yesterdays"})
    with pytest.raises(TypeError, match="there is no stage 'upto'"):
        check_stages({"upto": "0-1-1"})


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


REFUSED = rows_of(__file__, "refused")


@pytest.mark.parametrize(("name", "options", "error", "problem"), REFUSED, ids=[row[1] for row in REFUSED])
def test_what_a_log_does_not_have_or_would_make_two_of_one_is_refused(name, options, error, problem):
    with ibbmaster.open(FIXTURES / name) as log, pytest.raises(getattr(errors, error), match=problem):
        log.through(**json.loads(options))


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


def test_a_day_that_reads_as_a_gtid_is_named():
    with ibbmaster.open(TYPES) as log, pytest.raises(ConfigurationError) as refused:
        log.through(until="2030-01-01")
    assert str(refused.value).endswith("to name a day, write --until '2030-01-01 00:00'")


@pytest.fixture
def two_servers(tmp_path):
    with closing(RealDisk(tmp_path)) as disk, BinlogWriter(disk, max_file_bytes=1 << 20, is_sparse=True) as writer:
        for text in ("0-1-1", "0-2-2", "0-1-4", "0-2-5"):
            gtid = Gtid.parse(text)
            writer.write_group(gtid, make_gtid_event(gtid), [XID_EVENT])
    return tmp_path


def test_a_part_ends_at_no_transaction_that_another_server_has_logged(two_servers):
    with ibbmaster.open(two_servers) as log:
        with pytest.raises(ConfigurationError, match=r"--until 0-1-2 is not in this log: .* 2 of its domain is 0-2-2"):
            log.through(until="0-1-2")
        assert [str(group.gtid) for group in log.through(until="0-2-2")] == ["0-1-1", "0-2-2"]


def test_of_an_end_that_is_not_in_the_log_it_is_said_where_the_part_ends(two_servers, capsys):
    with ibbmaster.open(two_servers) as log:
        part = log.through(until="0-1-3")
    said = "--until 0-1-3 is not in this log: of domain 0 it ends after 0-2-2, the last one before it"
    assert part.staged.notes == (said,)
    assert main(["cat", str(two_servers), "--until", "0-1-3"]) == 0
    assert capsys.readouterr() == ("", f"ibbmaster: {said}\n")


@pytest.mark.parametrize("given", [{}, {"after": "0-1-5"}])
def test_only_of_no_table_is_an_error_of_who_reads_the_whole_log(fixtures, tmp_path, given):
    with ibbmaster.open(fixtures / "ibb/xa-and-ddl") as log:
        if given:  # a part may have nothing of it
            assert log.through(only="shopp.*", **given).to_arrow().num_rows == 0
            return
        with pytest.raises(ConfigurationError, match=r"^no table of this log matches shopp\.\*: .*shop\.audit, "):
            log.through(only="shop.*,shopp.*")
        assert log.through(except_="shopp.*").to_arrow().num_rows > 90
