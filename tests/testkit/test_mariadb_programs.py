import re
from pathlib import Path

import pytest

from ibbmaster.testkit import mariadb_programs
from ibbmaster.testkit.mariadb_programs import ProgramsMissingError, candidate_roots, find_programs


def test_a_variable_of_the_environment_names_the_only_place_and_the_cache_comes_after_the_system():
    assert candidate_roots("11.8", {"IBBMASTER_LANE_118": "/opt/tree", "HOME": "/root"}) == [Path("/opt/tree")]
    assert candidate_roots("10.11", {"IBBMASTER_LANE_1011": "/opt/old"}) == [Path("/opt/old")]
    found = candidate_roots("11.8", {"XDG_CACHE_HOME": "/srv/cache"})
    assert found == [Path("/"), Path("/srv/cache/ibbmaster/mariadb-11.8")]


def test_a_missing_version_is_an_error_that_says_what_to_do_and_is_not_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("IBBMASTER_LANE_74", str(tmp_path))
    text = f"no mariadbd below {tmp_path}: install mariadb-server-core and mariadb-client of this version"

    with pytest.raises(ProgramsMissingError, match=rf"MariaDB 7\.4: {re.escape(text)}, or let IBBMASTER_LANE_74 name"):
        find_programs("7.4")
    monkeypatch.setattr(mariadb_programs, "MARIADB_VERSIONS", ("7.5", "7.6"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert mariadb_programs.installed_versions() == []


@pytest.mark.parametrize("above", ["usr/lib", "lib"])  # where Debian's packages have it, since 13 and before
def test_a_tree_of_another_version_is_not_taken(monkeypatch, tmp_path, above):
    program = tmp_path / "usr" / "sbin" / "mariadbd"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'mariadbd  Ver 9.1.2-MariaDB'\n")
    program.chmod(0o755)
    loader = tmp_path / above / "any-linux-gnu" / "ld-linux-any.so.1"
    loader.parent.mkdir(parents=True)
    loader.write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    loader.chmod(0o755)
    find_programs.cache_clear()
    for version in ("9.1", "9.2"):
        monkeypatch.setenv(f"IBBMASTER_LANE_{version.replace('.', '')}", str(tmp_path))

    assert find_programs("9.1").root == tmp_path
    with pytest.raises(ProgramsMissingError, match=r"is another version: mariadbd  Ver 9\.1\.2-MariaDB"):
        find_programs("9.2")


def test_programs_that_others_can_write_are_not_run(monkeypatch, tmp_path):
    tree = tmp_path / "ibbmaster" / "mariadb-7.7"
    tree.mkdir(parents=True)
    tree.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    with pytest.raises(ProgramsMissingError, match=rf"nothing is run from {tree}: other users can write {tree}"):
        find_programs("7.7")
