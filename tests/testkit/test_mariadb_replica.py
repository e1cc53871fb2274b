"""What stops a replica, as SHOW SLAVE STATUS tells it; interop/test_replica.py follows primaries with it."""

from ibbmaster.testkit.mariadb_replica import problem_of

WELL = {"Last_SQL_Errno": 0, "Last_IO_Errno": 0, "Slave_IO_Running": "Yes", "Last_SQL_Error": "", "Last_IO_Error": ""}


def test_a_replica_that_runs_has_no_problem():
    assert problem_of(WELL, tolerates_lost_connections=False) is None


def test_a_row_that_cannot_be_applied_is_a_problem_always():
    status = {**WELL, "Last_SQL_Errno": 1032, "Last_SQL_Error": "Can't find record"}

    assert problem_of(status, tolerates_lost_connections=True) == "Can't find record"


def test_a_lost_connection_is_a_problem_only_for_who_does_not_tolerate_it():
    status = {**WELL, "Last_IO_Errno": 2003, "Last_IO_Error": "no server", "Slave_IO_Running": "Connecting"}

    assert problem_of(status, tolerates_lost_connections=False) == "no server"
    assert problem_of(status, tolerates_lost_connections=True) is None
    assert problem_of({**status, "Slave_IO_Running": "No"}, tolerates_lost_connections=True) == "no server"
