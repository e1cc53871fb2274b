import shutil

import pytest

from ibbmaster.errors import ClassicFormatError
from ibbmaster.logs.classic.binlog import ClassicReader
from ibbmaster.logs.classic.series import find_series
from tests.built_logs import CLASSIC


@pytest.mark.parametrize("series", ["10.11/encrypted", "11.8/encrypted"])
def test_an_encrypted_binlog_is_refused_with_advice(series):
    with pytest.raises(ClassicFormatError, match=r"binlog\.000001 offset 256: .*encrypted.*mariadb-binlog"):
        ClassicReader(find_series([CLASSIC / series]))


def test_restarts_are_counted_and_reading_may_begin_in_the_middle():
    reader = ClassicReader(find_series([CLASSIC / "11.8" / "domains"]))
    assert sum(1 for _ in reader.groups()) == 155
    assert reader.restart_count == 2  # one clean, one after SIGKILL
    reader = ClassicReader(find_series(sorted((CLASSIC / "11.8" / "checksum-switch").glob("binlog.*"))[2:]))
    assert str(reader.initial_state) == "0-1-10"
    assert [str(group.gtid) for group in reader.groups()] == [f"0-1-{seq_no}" for seq_no in range(11, 20)]


@pytest.mark.parametrize("name", ["domains", "domains-none"])
@pytest.mark.parametrize("missing", range(2, 9))
def test_a_missing_file_is_an_error_that_names_both_neighbours(tmp_path, name, missing):
    for path in (CLASSIC / "11.8" / name).glob("binlog.00000?"):
        shutil.copy(path, tmp_path)
    (tmp_path / f"binlog.{missing:06d}").unlink()
    before, after = f"binlog.{missing - 1:06d}", f"binlog.{missing + 1:06d}"
    with pytest.raises(ClassicFormatError, match=f"^{after} offset .*{before} ends at"):
        list(ClassicReader(find_series([tmp_path])).groups())


def test_files_of_two_servers_do_not_make_a_series(tmp_path):
    shutil.copy(CLASSIC / "11.8" / "vectors" / "binlog.000001", tmp_path)
    shutil.copy(CLASSIC / "11.8" / "checksum-switch" / "binlog.000002", tmp_path)
    with pytest.raises(ClassicFormatError, match="not of one binlog"):
        list(ClassicReader(find_series([tmp_path])).groups())


def test_a_head_that_cannot_be_read_is_found_before_the_first_group(tmp_path):
    for path in (CLASSIC / "11.8" / "checksum-switch").glob("binlog.00000?"):
        shutil.copy(path, tmp_path)
    (tmp_path / "binlog.000003").write_bytes(b"\xfebin")
    with pytest.raises(ClassicFormatError, match=r"^binlog\.000003 offset 0: the file ends inside its head"):
        ClassicReader(find_series([tmp_path]))
