import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.primary.dialogue.privileges import PRIVILEGES, READING, grant_text, parse_privileges


def test_a_list_names_privileges_in_any_case_and_by_their_old_names_and_no_unknown_ones():
    assert parse_privileges("replication  slave, REPLICATION CLIENT,") == {"REPLICATION SLAVE", "BINLOG MONITOR"}
    assert parse_privileges("ALL PRIVILEGES") == set(PRIVILEGES)
    assert parse_privileges("") == parse_privileges("USAGE") == set()
    with pytest.raises(ConfigurationError, match=r"no privilege 'FLYING': expected some of SELECT, RELOAD"):
        parse_privileges("SELECT, flying")


def test_what_is_granted_is_told_in_the_order_of_real_servers():
    held = parse_privileges("BINLOG MONITOR, SELECT, REPLICATION SLAVE, LOCK TABLES, SHOW DATABASES, PROCESS, RELOAD")
    assert grant_text("a`b", held) == (
        "GRANT SELECT, RELOAD, PROCESS, SHOW DATABASES, LOCK TABLES, REPLICATION SLAVE, BINLOG MONITOR "
        "ON *.* TO `a``b`@`%`"
    )
    assert grant_text("a", ()) == "GRANT USAGE ON *.* TO `a`@`%`"
    assert set(PRIVILEGES) - READING == {"SUPER", "CONNECTION ADMIN", "BINLOG ADMIN", "SHUTDOWN"}
