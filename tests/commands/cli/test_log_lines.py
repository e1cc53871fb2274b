import json
import logging
import subprocess
import sys

import pytest

from ibbmaster.commands.cli.log_lines import JsonRecords, TextRecords
from ibbmaster.primary.server.registry import Session
from ibbmaster.replication.dump.error import too_old

TIME = 1763647385.1239  # 2025-11-20 14:03:05 UTC


CLIENT = Session(connection_id=3, host="::1", port=3399, since=0.0, user="repl")


def record(text, *arguments, level=logging.WARNING, exc_info=None):
    made = logging.LogRecord("ibbmaster.primary", level, "", 0, text, arguments, exc_info)
    made.created = TIME
    return made


def test_a_line_of_text_has_the_time_in_utc_the_level_and_the_address_as_it_is_written():
    line = TextRecords().format(record("%s is too slow: dropped", CLIENT))
    assert line == "2025-11-20T14:03:05.123Z WARNING connection 3 of repl@[::1]:3399 is too slow: dropped"


def test_a_client_cannot_forge_a_line():
    line = TextRecords().format(record("login of %s refused", "x\n2025-11-20T14:03:05.123Z INFO all is well\x1b[2J"))
    assert "\n" not in line
    assert "\x1b" not in line


def test_a_line_of_json_has_the_fields_of_what_it_is_about():
    line = json.loads(JsonRecords().format(record("%s refused: %s", CLIENT, too_old("0-1-5 was purged"))))
    assert line == {
        "time": "2025-11-20T14:03:05.123Z",
        "level": "warning",
        "message": line["message"],
        "logger": "ibbmaster.primary",
        "connection": 3,
        "user": "repl",
        "client": "[::1]:3399",
        "error": 1236,
        "reason": "0-1-5 was purged",
    }
    assert line["message"].startswith("connection 3 of repl@[::1]:3399 refused: error 1236 (Could not find GTID state")


@pytest.mark.parametrize("lines", [TextRecords(), JsonRecords()])
def test_an_exception_is_told_with_its_way(lines):
    try:
        raise ValueError("of ours")
    except ValueError:
        told = lines.format(record("it failed", exc_info=sys.exc_info()))
    assert "ValueError: of ours" in told
    assert "Traceback" in told


def test_verbose_is_about_our_own_log_lines_and_no_others():
    program = (
        "import logging, sys, argparse\n"
        "from ibbmaster.commands.cli.log_lines import begin_log\n"
        "begin_log(is_verbose=True)\n"
        "logging.getLogger('ibbmaster.primary.server.connection').debug('a statement')\n"
        "logging.getLogger('trio.other').debug('a dump of bytecode')\n"
        "logging.getLogger('trio').info('told')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "DEBUG a statement" in done.stderr
    assert "INFO told" in done.stderr
    assert "bytecode" not in done.stderr
