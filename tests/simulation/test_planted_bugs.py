"""Bugs that are planted on purpose turn a test red, each of them: here a sample, all of them with `--planted all`."""

import random

import pytest

from tests.simulation.planting import PLANTED, Bug, UnfitPatchError, all_bugs, is_found

SAMPLE = {  # quick ones of each kind; the first five are those that a single thread cannot show
    "acknowledged-when-written",
    "sync-counts-later-writes",
    "acknowledged-by-the-sync-of-another",
    "checkpoint-end-taken-late",
    "redo-buffer-cleared",
    "commit-without-sync",
    "real-sync-does-nothing",
    "group-behind-a-hole-skipped",
}
DRAWN = 5  # of those, by the seed
BUGS = {bug.name: bug for bug in all_bugs()}


def pytest_generate_tests(metafunc):
    if "bug" in metafunc.fixturenames:
        sample = random.Random(metafunc.config.getoption("--seed")).sample(sorted(SAMPLE & BUGS.keys()), DRAWN)
        names = BUGS if metafunc.config.getoption("--planted") == "all" else sample
        metafunc.parametrize("bug", [BUGS[name] for name in sorted(names)], ids=sorted(names))


def test_a_planted_bug_is_found(bug):
    found, said = is_found(bug)
    assert found, f"nobody has found {bug.name} ({bug.title}):\n{said}"


def test_every_patch_fits_the_sources(tmp_path):
    for bug in BUGS.values():
        for name in bug.changes:
            target = tmp_path / bug.name / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text((PLANTED.parents[2] / name).read_text())
        bug.plant(tmp_path / bug.name)
        for name in bug.changes:
            compile((tmp_path / bug.name / name).read_text(), name, "exec")
    assert BUGS.keys() >= SAMPLE


def test_a_patch_that_fits_no_longer_is_named(tmp_path):
    path = tmp_path / "gone.patch"
    path.write_text("title: t\nfound-by: x\n--- a/src/x.py\n+++ b/src/x.py\n@@ -1 +1 @@\n-old\n+new\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "src/x.py").write_text("other\n")
    with pytest.raises(UnfitPatchError, match=r"gone\.patch does not fit any more: src/x\.py"):
        Bug.read(path).plant(tmp_path)
