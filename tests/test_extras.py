import ast
import os
import subprocess
import sys
import tomllib
from importlib.metadata import metadata, packages_distributions
from pathlib import Path

import pytest

from ibbmaster.errors import IbbMasterError
from ibbmaster.extras import EXTRAS, ExtraMissingError, needed_for

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "ibbmaster"
GIVEN = {"hatchling", "pytest", "sniffio"}  # who imports these has them; trio brings the last


def imported() -> set[str]:
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        if "adapters" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"ibbmaster"}


def test_every_module_that_is_imported_comes_with_the_package_or_has_an_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    always = {text.partition(">")[0] for text in project["dependencies"]}
    homes = {name: {home.lower() for home in found} for name, found in packages_distributions().items()}

    assert {name for name in imported() if not always & set(homes.get(name, ()))} - EXTRAS.keys() == GIVEN
    assert set(EXTRAS.values()) <= set(metadata("ibbmaster").get_all("Provides-Extra") or ())


def test_an_error_inside_names_the_extra_unless_the_module_is_nobody_s():
    with (
        pytest.raises(ExtraMissingError, match=r"^to do it needs the extra 'arrow' \(no module numpy\): pip install"),
        needed_for("to do it"),
    ):
        raise ModuleNotFoundError("No module named 'numpy.linalg'", name="numpy.linalg")
    with pytest.raises(ModuleNotFoundError, match="No module named 'somebody'"), needed_for("it"):
        raise ModuleNotFoundError("No module named 'somebody'", name="somebody")
    assert issubclass(ExtraMissingError, IbbMasterError)


PROGRAM = """
import ibbmaster, sys
try:
    {use}
except ibbmaster.IbbMasterError as error:
    print(error)
"""
FIXTURE = ROOT / "fixtures" / "ibb" / "domains"
USES = {  # what is missing: (what is done, the extra)
    "pyarrow": ("ibbmaster.open({log!r}).to_arrow()", "arrow"),
    "numpy": ("ibbmaster.open({log!r}).to_arrow()", "arrow"),
}


def said_without(module: str, command: list[str], tmp_path: Path) -> subprocess.CompletedProcess[str]:
    text = f"raise ModuleNotFoundError(\"No module named '{module}'\", name='{module}')\n"
    (tmp_path / f"{module}.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    return subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.mark.parametrize("module", USES)
def test_whoever_imports_it_the_extra_is_named_and_not_the_module_alone(module, tmp_path):
    use, extra = USES[module]
    done = said_without(module, ["-c", PROGRAM.format(use=use.format(log=str(FIXTURE)))], tmp_path)

    assert done.stdout.endswith(f" (no module {module}): pip install 'ibbmaster[{extra}]'\n"), done.stderr
    assert f"needs the extra {extra!r}" in done.stdout


SNAPSHOT = ["lake", "snapshot", str(FIXTURE), "shop.orders"]
COMMANDS = {"pyarrow": (SNAPSHOT, "lake snapshot", "arrow"), "numpy": (SNAPSHOT, "this command", "arrow")}


@pytest.mark.parametrize("module", COMMANDS)
def test_a_command_says_the_same_in_a_line(module, tmp_path):
    command, what, extra = COMMANDS[module]
    done = said_without(module, ["-m", "ibbmaster", *command], tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"ibbmaster: {what} needs the extra {extra!r} (no module {module}): pip install 'ibbmaster[{extra}]'\n"
    )
