"""The changes of one table as CSV: the rows of its DataFrame, in quotes where they are needed."""

import csv
import io
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.commands.printing.csv_lines import OWN_COLUMNS, CsvLines, line_of
from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.replication.event.rows.encoding import written_table
from ibbmaster.tables.arrow.cell import text_of
from tests.table_versions import without_statements
from tests.written_log import inserted, write_log

CLASSIC = Path(__file__).parents[3] / "fixtures" / "classic"


@pytest.fixture
def lines(printed):
    def read(path, table):
        return list(csv.reader(io.StringIO(printed(path, CsvLines(table), schema_mode="latest"))))

    return read


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("11.8/ddl-trx-xa", "shop.parent"),
        ("11.8/ddl-trx-xa", "shop.child"),
        ("11.8/ddl-trx-xa", "shop_2.stock"),
        ("11.8/domains-none", "dom_2.t"),
        ("11.8/types-minimal-none", "types.ints"),
    ],
)
def test_lines_have_the_rows_of_the_dataframe_of_the_table(name, table, lines):
    with ibbmaster.open(CLASSIC / name) as log:
        frame = log.to_arrow(table=table).to_pylist()

    header, *found = lines(CLASSIC / name, table)

    own = header[len(OWN_COLUMNS) :]
    wanted = [
        [row["_gtid"], row["_change_type"], str(row["_change_no"]), *(text_of(row[key]) or "" for key in own)]
        for row in frame
    ]
    assert header[: len(OWN_COLUMNS)] == list(OWN_COLUMNS)
    assert [[line[0], line[2], line[3], *line[len(OWN_COLUMNS) :]] for line in found] == wanted != []


def test_null_is_nothing_and_an_empty_text_two_quotes():
    cells = [None, "", "a", 'say "a", b', "two\nlines", " space", "ends\r", "é"]
    assert line_of(cells).decode() == ',"",a,"say ""a"", b","two\nlines"," space","ends\r",é\n'
    assert next(csv.reader(io.StringIO(line_of(cells).decode(), newline=""))) == [cell or "" for cell in cells]


def test_columns_that_an_image_leaves_out_are_named(lines):
    header, *found = lines(CLASSIC / "11.8" / "types-minimal-none", "types.ints")
    update = next(line for line in found if line[2] == "update_preimage")
    assert update[header.index("_absent")].split() == header[len(OWN_COLUMNS) + 1 :]


def test_a_table_of_which_no_row_comes_is_an_error_that_names_others(lines):
    with pytest.raises(
        ConfigurationError, match=r"no row of table vec.w is in this log: there are vec.indexed, vec.v$"
    ):
        lines(CLASSIC / "11.8" / "vectors", "vec.w")


def test_columns_without_names_are_an_error(lines, tmp_path):
    log = without_statements(CLASSIC / "10.11" / "domains-none", tmp_path / "log")
    with pytest.raises(EventError, match=r"its columns have no names here; declare them with --schema"):
        lines(log, "dom_0.t")


def test_columns_that_are_called_as_ours_have_one_more_underscore(lines, tmp_path):
    table = written_table("d.t", {"_gtid": "int", "b": "varbinary(3)"}, table_id=1)
    header, line = lines(write_log(tmp_path / "log", [inserted(table, [1, b"\xff"])]), "d.t")
    assert (header[-2:], line[-2:]) == (["__gtid", "b"], ["1", "0xff"])
