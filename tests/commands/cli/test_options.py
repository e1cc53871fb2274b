import argparse

import pytest

from ibbmaster.commands.cli.options import add_command, add_options, size
from ibbmaster.facts import rows_of

COMMANDS = [name for name, *_ in rows_of("ibbmaster.commands.cli", "commands")]
GIVEN = {row[0] for row in rows_of("ibbmaster.commands.cli", "options")}


def test_a_size_is_a_number_of_bytes_or_refused_in_the_words_of_the_command_line():
    assert (size("7"), size("2M")) == (7, 2 << 20)
    with pytest.raises(argparse.ArgumentTypeError, match="'many' is not a size"):
        size("many")


def test_each_option_is_one_of_a_command_or_of_several():
    assert {name for name in GIVEN if not name.startswith("@")} <= set(COMMANDS)
    used = {row[2] for row in rows_of("ibbmaster.commands.cli", "options")}
    assert {name for name in GIVEN if name.startswith("@")} <= used


def test_a_value_may_be_needed_given_again_or_under_another_name():
    parser = argparse.ArgumentParser()
    add_options(add_command(parser.add_subparsers(), "record"), "record")
    said = parser.parse_args(["record", "--from", "host", "--to", "x", "--seconds", "1"])
    assert (said.source, said.seconds, said.max_connections) == ("host", 1.0, 64)
    with pytest.raises(SystemExit):
        parser.parse_args(["record", "--from", "host"])
    add_options(flush := argparse.ArgumentParser(), "flush")
    assert flush.parse_args([".", "--delete-domain", "1", "--delete-domain", "2"]).delete_domain == [1, 2]
