"""The options of `serve`, each checked before a file is touched; and where secrets come from."""

import json
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pymysql
import pytest

import ibbmaster
from ibbmaster.api.writing import WritableLog
from ibbmaster.commands.cli.main import main, parse_arguments
from ibbmaster.commands.cli.serve import open_log, read_options
from ibbmaster.commands.cli.service import parse_listen
from ibbmaster.errors import ConfigurationError
from ibbmaster.logs.store.followed import FollowedDirectory
from ibbmaster.replication.dump.profile import OpeningTimestamp
from ibbmaster.replication.wire.auth import native_password_hash

DOMAINS = Path(__file__).parents[3] / "fixtures" / "classic" / "10.11" / "domains"
LISTEN = {
    "127.0.0.1:3307": ("127.0.0.1", 3307),
    ":0": ("127.0.0.1", 0),
    "[::1]:3307": ("::1", 3307),
    "localhost:1": ("localhost", 1),
}


@pytest.mark.parametrize(("text", "expected"), LISTEN.items())
def test_an_address_is_read(text, expected):
    assert parse_listen(text) == expected


@pytest.mark.parametrize("text", ["", "3307", "host:", "host:x", "host:65536", "host:-1", "host:٣"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ConfigurationError, match="expected HOST:PORT"):
        parse_listen(text)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], OpeningTimestamp.ZERO),
        (["--profile", "compat"], OpeningTimestamp.FIRST_GROUP),
        (["--opening-timestamp", "first-group"], OpeningTimestamp.FIRST_GROUP),
        (["--opening-timestamp", "zero", "--profile", "compat"], OpeningTimestamp.ZERO),
    ],
)
def test_the_time_a_stream_opens_with_may_be_chosen(tmp_path, options, expected):
    args = parse_arguments(["serve", str(tmp_path), "--tls", "off", *options])
    assert read_options(args).primary.profile.opening_timestamp is expected


def test_options_make_a_primary(tmp_path):
    args = parse_arguments(["serve", str(tmp_path), "--listen", ":0", "--tls", "off", "--user", "u"])
    options = read_options(args).primary
    assert (options.host, options.port, options.account.user, options.certificate) == ("127.0.0.1", 0, "u", None)


def test_a_primary_whose_port_is_taken_says_so(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", str(DOMAINS), "--listen", f"127.0.0.1:{port}", "--tls", "off"]) == 2
    assert f"cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err


# What is opened


def options_of(directory, *more):
    return parse_arguments(["serve", str(directory), *more])


def test_a_directory_that_is_owned_is_recovered_and_written(tmp_path, feed):
    feed(tmp_path, [1], crash=True)
    with open_log(options_of(tmp_path, "--own")) as opened:
        assert isinstance(opened, WritableLog)
        assert str(opened.state) == "0-1-1"


@pytest.mark.parametrize("options", [["--max-total", "100G"], ["--expire", "1e9"]])
def test_who_is_to_remove_files_owns_the_directory(tmp_path, options):
    with open_log(options_of(tmp_path, *options)) as opened:
        assert isinstance(opened, WritableLog)
    with (
        pytest.raises(ConfigurationError, match="--read-only excludes"),
        open_log(options_of(tmp_path, "--read-only", *options)),
    ):
        pass


@pytest.mark.parametrize("options", [[], ["--read-only"]])
def test_without_that_nothing_is_changed_and_everything_that_is_durable_is_served(tmp_path, caplog, options, feed):
    feed(tmp_path, [1], crash=True)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with open_log(options_of(tmp_path, *options)) as opened:
        assert isinstance(opened.engine, FollowedDirectory)
        assert str(opened.state) == "0-1-1"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert "1 groups are in the redo log of a writer that is gone, and are served from there" in caplog.text


def test_a_log_that_is_archived_is_rotated_and_does_not_begin_anew(tmp_path):
    options = options_of(tmp_path / "log", "--own", "--archive", str(tmp_path / "archive"))
    with open_log(options) as log, ibbmaster.serve(log, tls="off", grant="ALL") as primary:
        log.append("0-1-1", "CREATE DATABASE shop")
        with pymysql.connect(host="127.0.0.1", port=primary.port, user="repl", ssl_disabled=True) as connection:
            for sql in ("RESET MASTER", "SET GLOBAL gtid_binlog_state=''", "FLUSH BINARY LOGS DELETE_DOMAIN_ID=(0)"):
                with pytest.raises(
                    pymysql.err.MySQLError, match=r"1290.*the archive at .*archive goes on with this one"
                ):
                    connection.query(sql)
            connection.query("FLUSH BINARY LOGS")
            connection.query(f"PURGE BINARY LOGS TO '{log.status.active_file}'")


SCENARIO = """
[primary]
profile = "10.6"
server_id = 3
[tables]
"shop.t" = {id = "int primary key"}
[[fault]]
place = "before dump"
action = "error"
text = "as the scenario says"
"""


def served_scenario(tmp_path, *options):
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO)
    command = [sys.executable, "-m", "ibbmaster", "serve", "--scenario", str(file), "--listen", "127.0.0.1:0", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_scenario_is_served_until_its_control_socket_says_stop(tmp_path):
    with served_scenario(tmp_path, "--json", "--user", "ada", "--server-id", "9") as process:
        said = json.loads(process.stdout.readline())
        assert (said["host"], said["user"], said["server_id"]) == ("127.0.0.1", "ada", 9)
        connection = pymysql.connect(host=said["host"], port=said["port"], user="ada")
        assert connection.get_server_info().endswith("10.6.22-MariaDB-log")
        connection.close()
        host, port = said["control"].split(":")
        with socket.create_connection((host, int(port))) as control, control.makefile("rw") as file:
            for question in ("position", "stop"):
                file.write(json.dumps({"do": question, "token": said["control_token"]}) + "\n")
                file.flush()
                assert json.loads(file.readline())["ok"]
        assert process.wait(60) == 0


def test_a_scenario_is_served_until_a_signal_comes(tmp_path):
    with served_scenario(tmp_path) as process:
        assert re.fullmatch(
            r"serving .*scenario\.toml on 127\.0\.0\.1:\d+, control socket 127\.0\.0\.1:\d+ with token [\w-]{20,}\n",
            process.stdout.readline(),
        )
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_a_scenario_that_means_nothing_is_refused_in_a_line(tmp_path, capsys):
    file = tmp_path / "scenario.toml"
    file.write_text("[[fault]]\nplace = 'after gtid'\naction = 'fly'\n")
    assert main(["serve", "--scenario", str(file)]) != 0
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{file}: fault 1: action 'fly': expected one of cut, stall" in line


def test_without_a_scenario_nothing_of_it_is_there(tmp_path):
    """No stage and no observer: dumps and conversations pay nothing; nor does a start, which imports nothing of it."""
    options = read_options(parse_arguments(["serve", str(tmp_path)]))
    assert (options.primary.stages, options.primary.observer) == ((), None)
    started = "import sys, ibbmaster.api.serving, ibbmaster.commands.cli.serve"
    code = f"{started}; print([name for name in sys.modules if 'testkit' in name])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_sighup_reads_accounts_again_and_what_is_wrong_with_them_changes_nothing(tmp_path):
    password, accounts = tmp_path / "password", tmp_path / "accounts"
    password.write_text("first\n")
    accounts.write_text("[cdc]\npassword = one\n")
    for file in (password, accounts):
        file.chmod(0o600)
    command = [sys.executable, "-m", "ibbmaster", "serve", DOMAINS, "--listen", "127.0.0.1:0", "--json"]
    command += ["--password-file", password, "--accounts", accounts, "--tls", "off"]

    def logs_in(user, word):
        try:
            pymysql.connect(host="127.0.0.1", port=port, user=user, password=word).close()
        except pymysql.err.OperationalError as error:
            return error.args[0] != 1045
        return True

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:

        def hang_up():
            process.send_signal(signal.SIGHUP)
            return next(line for line in process.stderr if "SIGHUP" in line)

        port = json.loads(process.stdout.readline())["port"]
        assert logs_in("repl", "first")
        password.write_text("second\n")
        hashed = f"*{native_password_hash('two').hex().upper()}"
        accounts.write_text(f"[other]\npassword-hash = {hashed}\nhosts = 127.0.0.%\n")
        assert "were read again" in hang_up()
        assert [logs_in("repl", "first"), logs_in("repl", "second")] == [False, True]
        assert [logs_in("cdc", "one"), logs_in("other", "two")] == [False, True]
        accounts.write_text(f"[other]\npassword-hash = {hashed[1:]}\n")
        assert "stay as they are: " in (said := hang_up())
        assert "accounts, account 'other': password-hash is not one of mysql_native_password: expected * and 40" in said
        assert logs_in("other", "two")
        accounts.write_text(f"[other]\npassword-hash = {hashed}\nhosts = 10.0.%\n")
        assert "were read again" in hang_up()
        assert not logs_in("other", "two")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_sighup_does_not_end_a_scenario(tmp_path):
    with served_scenario(tmp_path, "--json") as process:
        said = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGHUP)
        pymysql.connect(host=said["host"], port=said["port"], user=said["user"]).close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_what_is_logged_is_text_and_has_addresses_as_they_are_written(tmp_path):
    """Statements as the client wrote them, an IPv6 address in brackets, and what ends the server."""
    command = [sys.executable, "-m", "ibbmaster", "serve", str(DOMAINS), "--listen", "[::1]:0", "--tls", "off", "-v"]
    with subprocess.Popen(
        [*command, "--user", "cdc"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        serving = re.fullmatch(r"serving .* on \[::1\]:(\d+) \(profile .*\)\n", process.stdout.readline())
        with pymysql.connect(host="::1", port=int(serving[1]), user="cdc", ssl_disabled=True) as connection:
            connection.query("SELECT 'it''s', 'ü\t'")
        process.send_signal(signal.SIGTERM)
        logged = process.stderr.read()
        assert process.wait(60) == 0
    utc = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    assert re.search(rf"{utc} DEBUG connection 1 of cdc@\[::1\]:\d+: SELECT 'it''s', 'ü\\u0009'\n", logged)
    assert re.search(rf"{utc} INFO ibbmaster {ibbmaster.__version__} serves .* on \[::1\]:{serving[1]}\n", logged)
    assert re.search(rf"{utc} INFO SIGTERM: serving ends, and \d connections with it\n{utc} INFO stopped\n$", logged)
    assert "b'" not in logged


def test_no_address_is_written_without_brackets():
    """`address` puts a host and a port together; nothing else does."""
    joined = re.compile(r"host\}:\{|%s:%d")
    found = [path.name for path in Path(ibbmaster.__file__).parent.rglob("*.py") if joined.search(path.read_text())]
    assert found == ["printable.py"]
