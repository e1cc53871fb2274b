"""How much of the house a command loads: one that looks at files, or removes some, needs nothing about rows and SQL."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LOG = Path(__file__).parents[2] / "fixtures" / "ibb" / "domains"
PROGRAM = """
import json, sys
from ibbmaster.commands.cli.main import main
code = main(sys.argv[1:])
loaded = [one.__file__ for name, one in sys.modules.items() if name.partition(".")[0] == "ibbmaster"]
print(code, json.dumps(loaded), sep="\\n")
"""
#: Arguments behind the log, and how many modules and lines they may load.
REACH = {
    "seek": (["0-2-3"], 90, 10_500),
    "seek --time": (["--time", "2026-11-20 20:57:30Z"], 90, 10_500),
    "verify": (["--jobs", "1"], 85, 8_500),
    "purge": (["--max-total", "1T"], 110, 12_500),
}


@pytest.mark.parametrize("command", REACH)
def test_a_command_loads_what_it_needs(command, tmp_path):
    arguments, modules_max, lines_max = REACH[command]
    log = shutil.copytree(LOG, tmp_path / "log")
    given = [command.split()[0], str(log), *arguments]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *given], capture_output=True, text=True, check=True)
    *_, code, loaded = done.stdout.splitlines()
    modules = [Path(one) for one in json.loads(loaded)]
    lines = sum(one.read_text().count("\n") for one in modules)
    assert code == "0", done.stdout
    assert (len(modules) <= modules_max, lines <= lines_max) == (True, True), (len(modules), lines, modules)
