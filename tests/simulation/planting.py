"""Bugs that are planted on purpose: each must turn a test red. `python -m tests.simulation.planting [NAME ...]`

A patch in `planted/` begins with `title:` and `found-by:` lines, the latter with what pytest is to run; a unified diff
of the sources follows. It is applied to a copy of them, and those tests run against the copy: they must fail. A bug
that nobody finds, and a patch that fits no longer, is a failure.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLANTED = Path(__file__).parent / "planted"
HUNK = re.compile(r"^@@ .*@@.*\n", re.MULTILINE)
TESTS_FAILED = 1  # exit status of pytest
WHOLE = ("--interop-all", "--crash-states=6000", "--schedules=30")  # what finds them, and not a sample
TIMEOUT_S = 3600  # only the rare ones come near it


class UnfitPatchError(Exception):
    """The patch has to be written anew: the sources have changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """A patch file in parts; `changes` maps a path to the hunks of it, old text and new."""

    name: str
    title: str
    found_by: tuple[str, ...]
    changes: dict[str, list[tuple[str, str]]]

    @classmethod
    def read(cls, path):
        head, _, rest = path.read_text().partition("--- ")
        fields = re.findall(r"^(title|found-by): (.*)$", head, re.MULTILINE)
        changes = {}
        for part in ("--- " + rest).split("\n--- "):
            names, *hunks = HUNK.split(part)
            changes[names.split("+++ b/")[1].split()[0]] = [(_side(hunk, "-"), _side(hunk, "+")) for hunk in hunks]
        return cls(
            name=path.stem,
            title=next(value for field, value in fields if field == "title"),
            found_by=tuple(value for field, value in fields if field == "found-by"),
            changes=changes,
        )

    def plant(self, root):
        """Change the sources below `root`.
        Raises UnfitPatchError: what is to be changed is not there, or several times."""
        for name, hunks in self.changes.items():
            path = root / name
            text = path.read_text()
            for old, new in hunks:
                if text.count(old) != 1:
                    raise UnfitPatchError(
                        f"planted/{self.name}.patch does not fit any more: {name} has {text.count(old)} times:\n{old}"
                    )
                text = text.replace(old, new)
            path.unlink()  # it may be a link to the original
            path.write_text(text)


def _side(hunk, sign):
    return "".join(line[1:] for line in hunk.splitlines(keepends=True) if line[:1] in (" ", sign))


def all_bugs():
    return [Bug.read(path) for path in sorted(PLANTED.glob("*.patch"))]


def is_found(bug):
    """Whether a test fails with the bug, and what pytest said. Raises UnfitPatchError: the patch does not fit."""
    with tempfile.TemporaryDirectory(prefix="ibbmaster-planted-") as directory:
        root = Path(directory)
        shutil.copytree(ROOT / "src", root / "src")  # with what is compiled: it stays valid
        bug.plant(root)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        command += [*WHOLE, *(word for line in bug.found_by for word in line.split())]
        paths = [str(root / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "IBBMASTER_PLANTED": bug.name}
        run = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    if run.returncode not in (0, TESTS_FAILED):
        raise UnfitPatchError(f"planted/{bug.name}.patch: pytest ended with {run.returncode}:\n{run.stdout[-2000:]}")
    return run.returncode == TESTS_FAILED, run.stdout


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.planting", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="patches in tests/simulation/planted (default: all)")
    parser.add_argument("--at-once", type=int, default=os.cpu_count(), help="how many (default: %(default)s)")
    options = parser.parse_args(arguments)
    bugs = [bug for bug in all_bugs() if not options.names or bug.name in options.names]
    lost = 0
    with ThreadPoolExecutor(options.at_once) as pool:
        try:
            for number, (bug, outcome) in enumerate(zip(bugs, pool.map(_outcome, bugs), strict=True), start=1):
                lost += outcome != "found"
                print(f"{number:>3}/{len(bugs)} {outcome:<9} {bug.name}: {bug.title}", flush=True)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            return 130
    print(f"{len(bugs) - lost} of {len(bugs)} found")
    return min(lost, 1)


def _outcome(bug):
    try:
        return "found" if is_found(bug)[0] else "NOT FOUND"
    except UnfitPatchError as error:
        return f"UNFIT: {error}"


if __name__ == "__main__":
    sys.exit(main())
