"""SHOW CREATE VIEW and SHOW CREATE SEQUENCE; sequences were printed by MariaDB 11.8."""

import pytest

from ibbmaster.schema.model import TableKind, TableVersion
from ibbmaster.schema.view_text import create_sequence, create_view, view_parts
from tests.case_table import data_beside

MAX, MIN = "9223372036854775806", "-9223372036854775807"
SEQUENCES = data_beside(__file__)
VIEW = (
    "CREATE OR REPLACE ALGORITHM=MERGE DEFINER=`root`@`localhost` SQL SECURITY INVOKER VIEW `d`.`v` (x) "
    "AS select 1 AS a from t WITH LOCAL CHECK OPTION"
)


def table(text, kind):
    return TableVersion(database="d", name="v", kind=kind, text=text)


@pytest.mark.parametrize(("made", "printed"), SEQUENCES.items(), ids=list(SEQUENCES))
def test_a_sequence_is_printed_with_all_it_has(made, printed):
    assert create_sequence(table(made, TableKind.SEQUENCE)) == f"CREATE SEQUENCE `v` {printed} ENGINE=InnoDB"


def test_a_view_is_told_apart_and_any_other_text_is_its_own_query():
    assert view_parts(table("nonsense", TableKind.VIEW)).query == "nonsense"
    parts = view_parts(table(VIEW, TableKind.VIEW))
    assert (parts.query, parts.check_option) == ("select 1 AS a from t", "LOCAL")
    assert (parts.definer, parts.security, parts.algorithm) == ("root@localhost", "INVOKER", "MERGE")


def test_a_view_is_printed_with_its_query_as_it_was_written():
    assert create_view(table("CREATE VIEW v AS SELECT a FROM t", TableKind.VIEW)) == (
        "CREATE ALGORITHM=UNDEFINED SQL SECURITY DEFINER VIEW `v` AS SELECT a FROM t"
    )
    assert create_view(table(VIEW, TableKind.VIEW)) == (
        "CREATE ALGORITHM=MERGE DEFINER=`root`@`localhost` SQL SECURITY INVOKER VIEW `v` (x) AS select 1 AS a from t "
        "WITH LOCAL CHECK OPTION"
    )
