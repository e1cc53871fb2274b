"""Arguments that several commands have."""

from __future__ import annotations

import argparse

import pytest

from ibbmaster.cli.arguments import add_directory, add_log, open_to_change, size
from ibbmaster.errors import IbbMasterError


def test_a_size_is_a_number_of_bytes_or_refused_in_the_words_of_the_command_line():
    assert (size("7"), size("2M")) == (7, 2 << 20)
    with pytest.raises(argparse.ArgumentTypeError, match="'many' is no size"):
        size("many")


@pytest.mark.parametrize("add", [add_directory, add_log])
def test_a_log_is_named_by_its_directory(add, tmp_path):
    parser = argparse.ArgumentParser()
    add(parser)
    assert parser.parse_args([str(tmp_path)]).directory == tmp_path


def test_a_log_that_is_changed_is_opened_and_left_and_none_is_begun(tmp_path, feed):
    with pytest.raises(IbbMasterError, match="no binlog files"):
        open_to_change(tmp_path)
    feed(tmp_path, range(1, 3))
    with open_to_change(tmp_path) as log:
        assert str(log.position) == "0-1-2"
