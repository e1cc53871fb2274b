"""Which kind of log a path holds, told by names alone."""

import pytest

from ibbmaster.classic.kind import holds_traditional

HELD = {  # files of a directory -> whether they are traditional ones
    "a server's": (["binlog.000001", "binlog.000002", "binlog.index"], True),
    "packed": (["mysql-bin.000001.xz"], True),
    "the engine's": (["binlog-000000.ibb"], False),
    "both": (["binlog-000000.ibb", "binlog.000001"], False),
    "something else": (["notes.txt"], False),
    "nothing": ([], False),
}


@pytest.mark.parametrize(("names", "is_traditional"), HELD.values(), ids=HELD)
def test_a_directory_is_known_by_the_names_in_it(tmp_path, names, is_traditional):
    for name in names:
        (tmp_path / name).touch()
    assert holds_traditional(tmp_path) is is_traditional


def test_a_file_is_traditional_unless_it_is_one_of_the_engine(tmp_path):
    for name in ("binlog.index", "binlog-000000.ibb"):
        (tmp_path / name).touch()
    assert holds_traditional(tmp_path / "binlog.index")
    assert not holds_traditional(tmp_path / "binlog-000000.ibb")
    assert not holds_traditional(tmp_path / "nowhere")
