"""Rows about tables; the expected ones are those of MariaDB 11.8, but for what only a server knows."""

import pytest

from ibbmaster.primary.dialogue.session_schema import GTID_SLAVE_POS
from ibbmaster.schema import describing
from ibbmaster.schema.indexing import row_key
from tests.case_table import data_beside

DATA = data_beside(__file__)

VERSION = 110806


@pytest.fixture
def table(folded):
    folded.run(
        "CREATE DATABASE d CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "CREATE TABLE p (id int primary key)"
    )

    def make(made, name="t"):
        folded.run(f"CREATE TABLE {name} ({made}")
        return folded.known(name)

    return make


#: Definitions of a table, and the columns of what tells its rows apart.
KEYS = DATA["keys"]  # of a unique text there is only a hash


@pytest.mark.parametrize(("made", "names"), KEYS.items(), ids=list(KEYS))
def test_columns_that_tell_rows_apart_are_those_of_the_key(table, made, names):
    found = table(made)
    columns = {column.id: column.name for column in found.columns}
    key = row_key(found)

    assert (None if key is None else " ".join(columns[part.column_id] for part in key.parts)) == names
    primary = {columns[number] for number, kind in describing.column_keys(found).items() if kind == "PRI"}
    assert primary == set((names or "").split())


#: DATA_TYPE up to COLLATION_NAME.
SIZES = DATA["sizes"]


@pytest.mark.parametrize(("made", "sizes"), SIZES.items(), ids=list(SIZES))
def test_a_column_has_the_sizes_of_its_type(table, made, sizes):
    (row,) = describing.column_rows(table(f"c {made})"), VERSION)
    assert row[7:15] == tuple(sizes)


def test_a_column_says_its_default_key_and_whatever_else_it_is(table):
    made = table(
        "id int auto_increment primary key, b varchar(9) default 'x' unique, c int as (id + 1) virtual, "
        "d datetime default now() on update now(), e int invisible, key (d, e))"
    )
    rows = [
        (row[3], row[5], row[6], row[16], row[17], row[20], row[21]) for row in describing.column_rows(made, VERSION)
    ]
    now = "current_timestamp()"
    assert rows == [
        ("id", None, "NO", "PRI", "auto_increment", "NEVER", None),
        ("b", "'x'", "YES", "UNI", "", "NEVER", None),
        ("c", "NULL", "YES", "", "VIRTUAL GENERATED", "ALWAYS", "`id` + 1"),
        ("d", now, "YES", "MUL", f"on update {now}", "NEVER", None),
        ("e", "NULL", "YES", "", "INVISIBLE", "NEVER", None),
    ]


def test_show_columns_has_literals_without_quotes_and_expressions_as_they_are(table):
    made = table(
        "a varchar(9) default 'it''s', b blob default 'x', c varchar(9) default (concat('x')), d int default 5)"
    )
    rows = list(describing.shown_column_rows(made, VERSION, is_full=False))
    assert [row[4] for row in rows] == ["it's", "'x'", "concat('x')", "5"]


def test_full_columns_have_collation_and_comment(table):
    (row,) = describing.shown_column_rows(table("a varchar(9) comment 'c')"), VERSION, is_full=True)
    assert row == ("a", "varchar(9)", "utf8mb4_general_ci", "YES", "", None, "", "select", "c")


def test_an_index_has_a_row_for_each_column(table):
    made = table("a int, b varchar(20) not null, unique u (a), key k (b(3) desc, a) comment 'c', fulltext f (b))")
    assert list(map(list, describing.shown_index_rows(made, VERSION))) == DATA["indexes"]


def test_constraints_are_told_by_kind_with_their_columns(table):
    made = table(
        "a int primary key, b int unique check (b > 0), constraint f foreign key (b) references p (id), check (a > b))"
    )
    assert [list(row[2:]) for row in describing.constraint_rows(made)] == DATA["constraints"]
    assert [list(row[2:]) for row in describing.check_rows(made)] == DATA["checks"]
    assert [[row[2], *row[6:]] for row in describing.key_column_rows(made)] == DATA["key columns"]


def test_a_foreign_key_names_the_index_it_refers_to(table, folded):
    made = table("a int, constraint f foreign key (a) references p (id) on delete cascade)")
    (row,) = describing.reference_rows(made, {("d", "p"): folded.known("p")})
    assert row == ("def", "d", "f", "def", "d", "PRIMARY", "NONE", "RESTRICT", "CASCADE", "t", "p")
    (unknown,) = describing.reference_rows(made, {})
    assert unknown[5] is None


def test_a_table_says_what_it_is(table):
    row = describing.table_row(table("a int) engine=Aria checksum=1 comment 'c' partition by hash(a) partitions 2"))
    assert (row[3:7], row[17:]) == (
        ("BASE TABLE", "Aria", 10, "Page"),
        ("utf8mb4_general_ci", None, "checksum=1 partitioned", "c", None, "N"),
    )
    assert describing.status_row(table("a int)", "t2"))[:4] == ("t2", "InnoDB", 10, "Dynamic")
    assert describing.table_row(table("a int) with system versioning", "t3"))[3] == "SYSTEM VERSIONED"


def test_a_table_without_partitions_has_one_row_of_them(table):
    (row,) = describing.partition_rows(table("a int)"))
    assert row[3:12] == (None,) * 9
    assert len(list(describing.partition_rows(table("a int) partition by hash(a) partitions 3", "t2")))) == 3


def test_the_table_of_every_server_is_described_as_others_are():
    expected = ["domain_id", "sub_id", "server_id", "seq_no"]
    assert [row[0] for row in describing.shown_column_rows(GTID_SLAVE_POS, VERSION, is_full=False)] == expected
