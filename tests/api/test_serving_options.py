import re
from os import PathLike

import pytest

import ibbmaster
from ibbmaster.api.serving import check_options
from ibbmaster.api.serving_options import default_options, serving_options
from ibbmaster.commands.cli.main import main
from ibbmaster.option import flag_of

LISTENING = {"host", "port"}  # --listen says both
ACCOUNT = {"user", "password"}  # these flags are those of all commands that log in


def test_each_option_has_a_flag_or_is_said_by_listen_and_the_account(capsys):
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    shown = capsys.readouterr().out

    assert {name for name, *_ in serving_options() if not re.search(rf"{flag_of(name)}\s", shown)} == LISTENING
    assert {name for name, option, _, _ in serving_options() if not option.help} == LISTENING | ACCOUNT


def test_the_docstring_of_serve_names_each_option():
    assert [name for name, *_ in serving_options() if f"`{name}`" not in (ibbmaster.serve.__doc__ or "")] == []


def test_what_an_option_takes_is_read_from_its_annotation():
    kinds = {name: (kind, choices) for name, _, kind, choices in serving_options()}

    assert kinds["auth"] == (str, ("native", "ed25519"))
    assert kinds["lower_case_table_names"] == (int, (0, 1, 2))
    assert kinds["base"] == (PathLike, ())
    assert kinds["server_id"] == (int, ())
    assert kinds["max_row_event_bytes"] == (str, ())  # a number, or text as "512M"
    assert kinds["only"] == (list, ())
    assert kinds["drop_empty"] == (bool, ())
    assert kinds["tls"] == (str, ("auto", "off", "required"))


def test_options_have_defaults_and_an_unknown_one_is_named():
    assert check_options().primary.server_id == default_options()["server_id"]
    assert check_options().primary.connections_max == default_options()["max_connections"]
    with pytest.raises(TypeError, match="serving has no option 'colour'"):
        check_options(colour="red")


@pytest.mark.parametrize("size", [1 << 20, "1M"])
def test_a_size_is_a_number_or_a_text(size):
    assert (
        check_options(max_row_event_bytes=size).primary.row_event_max
        == check_options(max_row_event_bytes="1024K").primary.row_event_max
    )
