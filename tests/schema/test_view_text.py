"""SHOW CREATE VIEW and SHOW CREATE SEQUENCE; sequences were printed by MariaDB 11.8."""

import pytest

from ibbmaster.schema.model import TableKind, TableVersion
from ibbmaster.schema.view_text import create_sequence, create_view, view_parts

MAX, MIN = "9223372036854775806", "-9223372036854775807"
SEQUENCES = {
    "CREATE SEQUENCE s START 5 INCREMENT 2 MAXVALUE 100 NOCACHE CYCLE": (
        "start with 5 minvalue 1 maxvalue 100 increment by 2 nocache cycle"
    ),
    "CREATE SEQUENCE s": f"start with 1 minvalue 1 maxvalue {MAX} increment by 1 cache 1000 nocycle",
    "CREATE SEQUENCE s INCREMENT BY -1 CACHE 5 NO CYCLE": (
        f"start with -1 minvalue {MIN} maxvalue -1 increment by -1 cache 5 nocycle"
    ),
    "CREATE SEQUENCE s START = 3 NO MAXVALUE": (
        f"start with 3 minvalue 1 maxvalue {MAX} increment by 1 cache 1000 nocycle"
    ),
}
VIEW = (
    "CREATE OR REPLACE ALGORITHM=MERGE DEFINER=`root`@`localhost` SQL SECURITY INVOKER VIEW `d`.`v` (x) "
    "AS select 1 AS a from t WITH LOCAL CHECK OPTION"
)


def table(text, kind):
    return TableVersion(database="d", name="v", kind=kind, text=text)


@pytest.mark.parametrize(("made", "printed"), SEQUENCES.items(), ids=list(SEQUENCES))
def test_a_sequence_is_printed_with_all_it_has(made, printed):
    assert create_sequence(table(made, TableKind.SEQUENCE)) == f"CREATE SEQUENCE `v` {printed} ENGINE=InnoDB"


def test_a_view_is_told_apart():
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


def test_a_text_that_is_no_view_is_its_own_query():
    assert view_parts(table("nonsense", TableKind.VIEW)).query == "nonsense"
