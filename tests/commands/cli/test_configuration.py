"""Options from a file and the environment: what wins, what is refused with line and remedy, what SIGHUP changes."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pymysql
import pytest

from ibbmaster.commands.cli.configuration import configured_commands
from ibbmaster.commands.cli.main import build_parser, main, parse_arguments
from ibbmaster.commands.cli.serve import read_options
from ibbmaster.errors import ConfigurationError

DOMAINS = Path(__file__).parents[3] / "fixtures" / "classic" / "10.11" / "domains"


@pytest.fixture
def config(tmp_path):
    def write(text, mode=0o600):
        path = tmp_path / "ibbmaster.toml"
        path.write_text(text)
        path.chmod(mode)
        return path

    return write


WHOLE = """
[serve]
directory = "kept"
listen = "127.0.0.1:0"
max-connections = 7
expire = 12.5
buffer = "8M"
own = true
only = ["shop.*", "crm.*"]
lower-case-table-names = 1
password = "secret"

[follow]
source = "mysql://repl@db1,db2"
to = "kept"
buffer = 1048576
semi-sync = true
"""


def test_one_file_has_the_options_of_each_command_in_a_section(config):
    path = config(WHOLE)
    served = parse_arguments(["serve", "--config", str(path)])
    assert (str(served.directory), served.max_connections, served.expire) == ("kept", 7, 12.5)
    assert (served.buffer, served.own, served.only) == (8 << 20, True, ["shop.*", "crm.*"])
    assert read_options(served).password == "secret"
    followed = parse_arguments(["follow", f"--config={path}"])
    assert (followed.source, str(followed.to), followed.buffer) == ("mysql://repl@db1,db2", "kept", 1 << 20)
    assert followed.semi_sync


def test_the_environment_is_above_the_file_and_flags_are_above_both(config, monkeypatch):
    path = config(WHOLE)
    for name, value in {"MAX_CONNECTIONS": "8", "OWN": "false", "ONLY": '["a.*"]', "PASSWORD": "from here"}.items():
        monkeypatch.setenv(f"IBBMASTER_{name}", value)
    served = parse_arguments(["serve", "--config", str(path)])
    assert (served.max_connections, served.own, served.only) == (8, False, ["a.*"])
    assert read_options(served).password == "from here"
    flags = ["--max-connections", "9", "--only", "b.*", "--only", "c.*", "--password", "given", "--listen", ":1"]
    served = parse_arguments(["serve", "other", "--config", str(path), *flags])
    assert (str(served.directory), served.max_connections, served.only) == ("other", 9, ["b.*", "c.*"])
    assert (read_options(served).password, read_options(served).primary.port) == ("given", 1)


def test_each_option_of_a_command_is_a_key(config):
    """But those that are about the file itself."""
    for command in configured_commands():
        parser = build_parser(command)._subparsers._group_actions[0].choices[command]
        flags = [flag for action in parser._actions for flag in action.option_strings if flag.startswith("--")]
        keys = [flag.removeprefix("--") for flag in flags if flag not in ("--help", "--config", "--check-config")]
        path = config(f"[{command}]\n" + "".join(f"{key} = [[]]\n" for key in keys))
        with pytest.raises(ConfigurationError) as caught:
            parse_arguments([command, "--config", str(path)])
        told = str(caught.value).splitlines()
        lines = enumerate(zip(keys, told, strict=True), 2)
        assert all(f"line {number}: {key}: " in line for number, (key, line) in lines)


MISTAKES = {
    "a key that is misspelt": ("[serve]\n\nmax-conections = 3", r"line 3: \[serve\] has no key 'max-conections' \(did"),
    "a key of Python": (
        "[serve]\nmax_connections = 3",
        r"line 2: .*'max_connections' \(did you mean 'max-connections'",
    ),
    "a key like no other": (
        "[serve]\nzzzz = 3",
        r"line 2: \[serve\] has no key 'zzzz': `ibbmaster serve --help` lists",
    ),
    "a key about the file": ("[serve]\nconfig = 'x'", r"line 2: \[serve\] has no key 'config'"),
    "no section": ("listen = ':0'", r"line 1: 'listen' is in no section: put it below \[serve\]"),
    "a section that is misspelt": ("\n[server]", r"line 2: there is no section \[server\] \(did you mean 'serve'\?\)"),
    "a text for a number": ("[serve]\nmax-connections = 'x'", "line 2: max-connections: expected a number, found 'x'"),
    "a flag for a number": ("[serve]\nmax-connections = true", "expected a number, found True"),
    "a number for a text": ("[serve]\nlisten = 3307", "listen: expected a text in quotes, found 3307"),
    "a text for a flag": ("[serve]\nown = 'yes'", "own: expected true or false, found 'yes'"),
    "no size": ("[serve]\nbuffer = 'many'", "buffer: 'many' is not a size"),
    "another choice": ("[serve]\ntls = 'requried'", r"'requried' is none of auto, off, required \(did you mean 'requi"),
    "no TOML": ("[serve]\nlisten = :0", r"is not TOML: .*line 2, column 10"),
    "a key twice": ("[serve]\nlisten = ':0'\nlisten = ':1'", "is not TOML: Cannot overwrite a value"),
    "deeper than can be": ("[serve]\nx = " + "[" * 9999, "is not TOML"),
    "a table": ("[serve.listen]\nx = 1", "listen: expected a text in quotes"),
    "a password of a URL for all": ("[follow]\nsource = 'mysql://u:p@h'\nto = 'x'", "every user of this machine"),
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_with_its_line_and_what_to_do(config, text, message):
    path = config(text, mode=0o644)
    with pytest.raises(ConfigurationError, match=message):
        parse_arguments(["follow" if "[follow]" in text else "serve", "--config", str(path)])


def test_all_mistakes_are_told_at_once(config, capsys, monkeypatch):
    monkeypatch.setenv("IBBMASTER_MAX_STATEMENT_TIME", "long")
    path = config("[serve]\nlisten = 1\nmax-conections = 3\n")
    assert main(["serve", "--config", str(path), "--check-config"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("ibbmaster: ") for line in lines)
    assert "IBBMASTER_MAX_STATEMENT_TIME: expected a number, found 'long'" in lines[2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[serve]\ndirectory = 'x'\nlisten = '0.0.0.0:0'", "0.0.0.0 can be reached from other machines"),
        ("[serve]\ndirectory = 'x'\nserver-id = 0", "server id 0: expected a number from 1"),
        ("[serve]\ndirectory = 'x'\nmax-total = 'much'", "'much' is not a size"),
        ("[serve]\ndirectory = 'x'\nfrom = 'db1'", "expected mysql://USER@HOST"),
        ("[serve]\nscenario = 'none'\npace = 'max'", "play a directory, and no --scenario"),
        ("[follow]\nsource = 'db1'\nto = 'x'", "expected mysql://USER@HOST"),
    ],
)
def test_what_the_command_would_refuse_is_refused_by_the_check(config, capsys, text, message):
    path = config(text)
    assert main(["follow" if "[follow]" in text else "serve", "--config", str(path), "--check-config"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", ["serve", "replay", "follow"])
def test_what_is_right_is_said_to_be(config, capsys, command):
    assert main([command, "--config", str(config(WHOLE.replace("own = true", ""))), "--check-config"]) == 0
    assert capsys.readouterr().out == "OK\n"


@pytest.mark.parametrize("key", ["password", "password-file"])
def test_a_password_that_every_user_may_read_is_refused(config, tmp_path, key):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    value, open_to_all = ("secret", "ibbmaster.toml") if key == "password" else (str(secret), "secret")
    text = f'[serve]\ndirectory = "x"\n{key} = "{value}"\n'
    with pytest.raises(ConfigurationError, match=rf"{open_to_all} has a password, .*`chmod o= "):
        read_options(parse_arguments(["serve", "--config", str(config(text, mode=0o644))]))
    secret.chmod(0o640)
    assert read_options(parse_arguments(["serve", "--config", str(config(text, mode=0o640))])).password == "secret"


def test_a_line_that_is_too_long_for_a_file_of_options_is_not_read(config):
    with pytest.raises(ConfigurationError, match="larger than 1048576 bytes"):
        parse_arguments(["serve", "--config", str(config("#" * (2 << 20)))])


def test_sighup_reads_the_file_again_and_says_what_cannot_change(config):
    text = (
        f'[serve]\ndirectory = "{DOMAINS}"\nlisten = "127.0.0.1:0"\ntls = "off"\npassword = "{{}}"\nserver-id = {{}}\n'
    )
    path = config(text.format("first", 1))
    command = [sys.executable, "-m", "ibbmaster", "serve", "--config", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        end = threading.Timer(60, process.kill)
        end.start()
        port = int(process.stdout.readline().split(" (")[0].rpartition(":")[2])
        account = {"host": "127.0.0.1", "port": port, "user": "repl", "ssl_disabled": True}
        kept = pymysql.connect(**account, password="first")
        config(text.format("second", 2))
        process.send_signal(signal.SIGHUP)
        lines = []
        while not lines or "read again" not in lines[-1]:
            lines.append(process.stderr.readline())
        assert any(line.endswith("WARNING SIGHUP: --server-id: unchanged until the next start\n") for line in lines)
        pymysql.connect(**account, password="second").close()
        with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
            pymysql.connect(**account, password="first")
        config("[serve]\nnothing = 1\n")
        process.send_signal(signal.SIGHUP)
        told = process.stderr.readline()
        while "stay as they are" not in told:
            told = process.stderr.readline()
        assert "[serve] has no key 'nothing'" in told
        kept.ping(reconnect=False)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(60) == 0
        end.cancel()
