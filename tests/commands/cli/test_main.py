import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.commands.cli import main as program
from ibbmaster.facts import rows_of

MISSING = {
    "pyspark": "ibbmaster: this command needs the extra 'spark' (no module pyspark): pip install 'ibbmaster[spark]'\n",
    "somebody.elses": "ibbmaster: No module named 'somebody.elses'\n",
}


@pytest.mark.parametrize(("module", "message"), MISSING.items(), ids=MISSING)
def test_a_module_that_is_missing_is_named_with_the_extra_that_brings_it(capsys, monkeypatch, module, message):
    def run(args):
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr(importlib.import_module("ibbmaster.commands.cli.seek"), "run", run)
    assert program.main(["seek", ".", "0-1-1"]) == program.EXIT_UNUSABLE
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("moment", ["parse_args", "run"])
def test_an_interrupt_ends_a_command_without_a_word(capsys, monkeypatch, moment):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    if moment == "run":
        monkeypatch.setattr(importlib.import_module("ibbmaster.commands.cli.seek"), "run", interrupt)
    else:
        monkeypatch.setattr(program, "build_parser", interrupt)
    assert program.main(["seek", ".", "0-1-1"]) == program.EXIT_INTERRUPTED
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("command", "instead"), rows_of("ibbmaster.commands.cli", "gone"))
@pytest.mark.parametrize("arguments", [[], ["LOG", "--to", "x"], ["--to=x", "LOG", "a.b", "id=3"], ["--help"]])
def test_what_was_a_command_once_names_the_way_out(capsys, command, instead, arguments):
    assert program.main([*command.split(), *arguments]) == program.EXIT_UNUSABLE
    assert capsys.readouterr() == ("", f"ibbmaster: `ibbmaster {command}` was removed: {instead}\n")


REFUSED = json.loads(Path(__file__).with_suffix(".json").read_text())


# As mysql-test/suite/binlog_in_engine/mysqlbinlog_convert_engine_binlog_unsupported_options.test
@pytest.mark.parametrize("refused", REFUSED)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(run, tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("[repl]\npassword=x\n")
    (tmp_path / "full/file").chmod(0o600)
    fixtures = str(Path(__file__).parents[3] / "fixtures")
    arguments, message = json.loads(json.dumps(REFUSED[refused]).replace("FIXTURES", fixtures))
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n"), err.partition(" ")[0]) == (2, "", 1, "ibbmaster:")
    assert message in err
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == ["full", "full/file"]


UNKNOWN = {
    "serve": ["serve", ".", "--lisen", "x"],
    "seek": ["seek", ".", "0-1-1", "more"],
    "lake snapshot": ["lake", "snapshot", ".", "a.b", "--nothing"],
    "verify": ["--nothing", "verify", "."],
}


@pytest.mark.parametrize("command", UNKNOWN)
def test_who_gives_a_command_what_it_does_not_know_is_shown_its_usage(capsys, command):
    with pytest.raises(SystemExit) as ended:
        program.main(UNKNOWN[command])
    said = capsys.readouterr().err
    assert ended.value.code == program.EXIT_UNUSABLE
    assert said.startswith(f"usage: ibbmaster {command} ")
    assert said.splitlines()[-1].startswith(f"ibbmaster {command}: error: unrecognized arguments: ")


def test_the_version_is_said_without_loading_a_command():
    program = (
        "import contextlib, sys\nfrom ibbmaster.commands.cli.main import main\n"
        "with contextlib.suppress(SystemExit):\n    main(['--version'])\n"
        "print(sorted(one for one in sys.modules if one.startswith('ibbmaster.commands.cli.')))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [
        f"ibbmaster {ibbmaster.__version__}",
        "['ibbmaster.commands.cli.main', 'ibbmaster.commands.cli.options']",
    ]
