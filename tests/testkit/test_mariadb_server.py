import shutil

import pytest

from ibbmaster.testkit.mariadb_programs import ServerPrograms, find_programs, installed_versions
from ibbmaster.testkit.mariadb_server import RealPrimary, RealServer, RealServerError, ServerTemplate, problem_of


@pytest.fixture
def programs() -> ServerPrograms:
    if not installed_versions():
        pytest.skip("no MariaDB here: sh .ci/prepare tests")
    return find_programs(installed_versions()[0])


def test_a_primary_starts_in_a_deep_directory_and_keeps_its_data_when_it_is_stopped(programs, tmp_path):
    directory = tmp_path / ("deep" * 30)  # no unix socket has such a path
    with RealPrimary(ServerTemplate.of_user(programs), directory, [], "--binlog-format=ROW") as primary:
        socket = primary.socket
        primary.sql("CREATE DATABASE shop")
        primary.stop()
        assert not socket.parent.exists()
        port = primary.port
        primary.start()

        assert primary.port == port
        assert primary.query("SELECT @@gtid_binlog_pos AS position") == [{"position": "0-1-1"}]
        assert ("shop",) in primary.sql("SHOW DATABASES")
    assert not directory.exists()
    assert not primary.socket.parent.exists()


def test_the_template_of_a_user_is_made_once(programs, tmp_path, monkeypatch):
    made = ServerTemplate.of_user(programs)
    cache = tmp_path / "ibbmaster"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    shutil.copytree(made.data.parent, cache / made.data.parent.name, symlinks=True)
    before = [path.stat().st_mtime_ns for path in sorted(cache.rglob("*"))]

    assert ServerTemplate.of_user(programs).data == cache / made.data.parent.name / "data"
    assert [path.stat().st_mtime_ns for path in sorted(cache.rglob("*"))] == before


def test_an_option_that_no_server_knows_is_an_error_with_its_log(programs, tmp_path):
    server = RealPrimary(ServerTemplate.of_user(programs), tmp_path / "r", [], "--no-such-option")

    with pytest.raises(RealServerError, match=r"did not start:(?s:.*)no-such-option"):
        server.start()


def test_programs_that_make_no_data_directory_leave_no_template(tmp_path):
    tree = tmp_path / "tree"
    (tree / "usr/share/mariadb/charsets").mkdir(parents=True)
    for name in ("mariadb_system_tables", "mariadb_performance_tables", "mariadb_system_tables_data"):
        (tree / f"usr/share/mariadb/{name}.sql").write_text("")
    (tree / "usr/share/mariadb/maria_add_gis_sp_bootstrap.sql").write_text("")
    for name in ("usr/sbin/mariadbd", "usr/lib/any-linux-gnu/ld-linux-any.so.1"):
        (tree / name).parent.mkdir(parents=True)
        (tree / name).write_text("#!/bin/sh\necho it is broken >&2\nexit 1\n")
        (tree / name).chmod(0o755)

    with pytest.raises(RealServerError, match=r"bootstrap of MariaDB 9\.9 failed:\nit is broken"):
        ServerTemplate(ServerPrograms(version="9.9", root=tree), tmp_path / "templates" / "one")
    assert list((tmp_path / "templates").iterdir()) == []


def test_a_new_server_writes_no_zeros_to_the_disk(programs, tmp_path):
    template = ServerTemplate.of_user(programs)
    server = RealServer(template, tmp_path / "server")

    written = [path.relative_to(server.data) for path in server.data.rglob("*") if path.is_file()]
    assert sorted(written) == sorted(
        path.relative_to(template.data) for path in template.data.rglob("*") if path.is_file()
    )
    assert all((server.data / path).read_bytes() == (template.data / path).read_bytes() for path in written)
    assert sum((server.data / path).stat().st_blocks * 512 for path in written) < 6 << 20


WELL = {"Last_SQL_Errno": 0, "Last_IO_Errno": 0, "Slave_IO_Running": "Yes", "Last_SQL_Error": "", "Last_IO_Error": ""}


NO_SERVER = {"Last_IO_Errno": 2003, "Last_IO_Error": "no server", "Slave_IO_Running": "Connecting"}
NO_ROW = {"Last_SQL_Errno": 1032, "Last_SQL_Error": "Can't find record"}


@pytest.mark.parametrize(
    ("status", "tolerates", "problem"),
    [
        ({}, False, None),
        (NO_ROW, True, "Can't find record"),
        (NO_SERVER, False, "no server"),
        (NO_SERVER, True, None),
        ({**NO_SERVER, "Slave_IO_Running": "No"}, True, "no server"),
    ],
)
def test_what_does_not_heal_by_itself_is_a_problem(status, tolerates, problem):
    assert problem_of({**WELL, **status}, tolerates_lost_connections=tolerates) == problem
