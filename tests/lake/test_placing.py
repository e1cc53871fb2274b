import errno
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from ibbmaster.errors import BusyError, DiskFullError, StoreError
from ibbmaster.lake.placing import check_free, make_directory, only_writer, replace_file, write_whole
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.disk.place import place

HOLDER = """
import sys
from pathlib import Path
from ibbmaster.lake.placing import only_writer
with only_writer(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_job_is_refused_until_the_first_has_ended(tmp_path) -> None:
    place = tmp_path / "tables"
    place.mkdir()

    with only_writer(place):
        for attempt in (only_writer(place).__enter__, lambda: check_free(place)):
            with pytest.raises(BusyError) as refused:
                attempt()
            assert str(refused.value) == (
                f"{place}: another job writes here: wait until it has ended, or give another directory"
            )

    check_free(place)
    with only_writer(place):
        pass


def test_what_a_killed_job_had_is_free(tmp_path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(BusyError):
            check_free(tmp_path)
        holder.kill()
        assert holder.wait() == -signal.SIGKILL

    with only_writer(tmp_path):
        pass


def test_jobs_in_different_places_do_not_meet_and_no_file_shows_their_locks(tmp_path) -> None:
    with only_writer(tmp_path / "one"), only_writer(tmp_path / "two"), only_writer(tmp_path):
        assert sorted(tmp_path.rglob("*")) == [tmp_path / "one", tmp_path / "two"]


def test_a_directory_that_was_made_and_stayed_empty_goes_again(tmp_path) -> None:
    with only_writer(tmp_path / "a/b/empty"):
        assert (tmp_path / "a/b/empty").is_dir()
    assert list(tmp_path.iterdir()) == []

    with only_writer(tmp_path / "a/b/filled"):
        (tmp_path / "a/b/filled/file").touch()
    assert (tmp_path / "a/b/filled/file").exists()

    (tmp_path / "given").mkdir()
    with only_writer(tmp_path / "given"):
        pass
    assert (tmp_path / "given").exists()


@pytest.mark.parametrize("is_late", [False, True], ids=["before", "after"])
def test_a_directory_that_goes_while_it_is_locked_is_made_and_locked_anew(tmp_path, monkeypatch, is_late) -> None:
    place, lock, calls = tmp_path / "tables", RealDisk.lock, []

    def lock_while_another_job_ends(disk: RealDisk) -> None:
        calls.append(disk)
        if len(calls) == 1 and not is_late:
            place.rmdir()
        lock(disk)
        if len(calls) == 1:
            place.rmdir()

    monkeypatch.setattr(RealDisk, "lock", lock_while_another_job_ends)
    with only_writer(place):
        monkeypatch.undo()
        assert len(calls) == 2
        with pytest.raises(BusyError):
            check_free(place)
    assert not place.exists()


def test_seeing_whether_a_place_is_free_makes_nothing(tmp_path) -> None:
    check_free(tmp_path / "tables")

    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_made_is_named_with_the_reason(tmp_path) -> None:
    (tmp_path / "file").touch()
    for name, problem in {
        "file": "this is not a directory",
        "file/below": f"cannot be made: {tmp_path / 'file'} is not a directory",
        "file/far/below": f"cannot be made: {tmp_path / 'file'} is not a directory",
        "x" * 300: "cannot be written: File name too long",
    }.items():
        with pytest.raises(StoreError) as refused, only_writer(tmp_path / name):
            pass
        assert str(refused.value) == f"{tmp_path / name}: {problem}"
    with pytest.raises(StoreError, match=r"^/proc/none: cannot be written: No such file or directory$"):
        make_directory(Path("/proc/none"))


def test_errors_of_files_name_the_place(tmp_path) -> None:
    with pytest.raises(DiskFullError) as full, only_writer(tmp_path), open("/dev/full", "w") as file:
        file.write("x")
    assert str(full.value) == f"{tmp_path}: No space left on device"
    with pytest.raises(StoreError) as missing, only_writer(tmp_path):
        (tmp_path / "none").unlink()
    assert str(missing.value) == f"{tmp_path / 'none'}: No such file or directory"


def numbers(count: int) -> pa.Table:
    return pa.table({"id": range(count)})


def test_a_table_is_written_by_one_job(tmp_path) -> None:
    place = tmp_path / "numbers"
    with only_writer(place), pytest.raises(BusyError, match="numbers: another job writes here"):
        write_whole(numbers(1), place)
    with only_writer(tmp_path / ".numbers.new"), pytest.raises(BusyError, match="/numbers: another job writes here"):
        write_whole(numbers(1), place)
    assert list(tmp_path.iterdir()) == []

    for count in (3, 4):
        assert write_whole(numbers(count), place) == count
        assert [path.name for path in tmp_path.iterdir()] == ["numbers"]
        assert parquet.read_table(place).num_rows == count


def test_a_table_that_cannot_be_written_leaves_the_one_before(tmp_path, monkeypatch) -> None:
    place = tmp_path / "numbers"
    write_whole(numbers(3), place)

    def fail(rows: pa.Table, path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(parquet, "write_table", fail)
        with pytest.raises(DiskFullError, match=f"^{place}: No space left on device$"):
            write_whole(numbers(4), place)

    assert parquet.read_table(place).num_rows == 3
    assert [path.name for path in tmp_path.iterdir()] == ["numbers"]


def test_one_job_writes_to_a_place_in_an_object_store(object_store) -> None:
    lake = place(object_store.new_place())
    with only_writer(lake):
        replace_file(lake / "list", b"first")
        replace_file(lake / "list", b"other")
        with (
            pytest.raises(BusyError, match="another job writes here, or was killed: if so, remove s3://"),
            only_writer(lake),
        ):
            pass
    with only_writer(lake):
        assert (lake / "list").read_bytes() == b"other"
    assert [path.name for path in lake.iterdir()] == ["list"]
