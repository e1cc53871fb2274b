import os
import random
from pathlib import Path

from ibbmaster.tables.fold.row_file import READ_SIZE, UNWRITTEN_MAX, RowFile


def test_rows_are_read_as_they_were_added_written_or_not() -> None:
    rows = RowFile()
    images = [random.randbytes(random.choice([0, 1, 50, READ_SIZE, UNWRITTEN_MAX // 3])) for _ in range(40)]

    places = [rows.append(number, [image])[0] for number, image in enumerate(images)]

    assert [rows.read(place) for place in places] == list(enumerate(images))
    data = rows.data()
    rows.append(1, [b"later"])
    assert bytes(data[places[-1] + 6 :]) == images[-1]  # what was handed out stays as it is
    assert [rows.read(place) for place in places] == list(enumerate(images))


def test_nothing_of_it_is_left_on_the_disk(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    rows = RowFile()
    rows.append(1, [bytes(UNWRITTEN_MAX)])

    assert list(tmp_path.iterdir()) == []
    descriptors = len(os.listdir("/proc/self/fd"))
    del rows
    assert len(os.listdir("/proc/self/fd")) == descriptors - 1


def test_a_file_without_rows_has_no_bytes() -> None:
    assert bytes(RowFile().data()) == b""
