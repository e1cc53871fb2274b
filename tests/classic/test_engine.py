"""Traditional files served as they are: the same groups as after an import, found by the same positions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ibbmaster.classic import engine as engine_module
from ibbmaster.classic.convert import import_classic
from ibbmaster.classic.engine import ClassicBinlog
from ibbmaster.classic.following import FollowedFiles
from ibbmaster.disk.local import RealDisk
from ibbmaster.errors import PositionPurgedError
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.kernel import loading
from ibbmaster.log.directory import BinlogDirectory

CLASSIC = Path(__file__).parents[2] / "fixtures" / "classic"
SLOW = ("encrypted", "big", "big-none")
CAPTURES = ["10.11/domains", "11.8/domains", "10.11/checksum-switch", "10.11/crashed", "11.8/large-commit"]


def groups_from(engine, position=""):
    """GTID and bytes of every group a replica at a position has to read."""
    reader = engine.groups(engine.seek(GtidPosition.parse(position)))
    groups = []
    while (group := reader.next_group()) is not None:
        groups.append((group.gtid, group.gtid_event + b"".join(group.body)))
    return groups


@pytest.mark.parametrize("capture", CAPTURES)
def test_groups_and_state_are_those_of_an_import(tmp_path, capture):
    classic = ClassicBinlog([CLASSIC / capture])
    import_classic([CLASSIC / capture], RealDisk(tmp_path), max_file_bytes=1 << 20)
    imported = BinlogDirectory(RealDisk(tmp_path))
    assert groups_from(classic) == groups_from(imported)
    assert classic.state() == imported.state()
    expected = json.loads((CLASSIC / capture / "expected.json").read_text())
    assert set(str(classic.state().position()).split(",")) == set(expected["gtid_binlog_pos_after"].split(","))


def test_a_position_is_found_in_the_newest_file_that_begins_before_it():
    engine = ClassicBinlog([CLASSIC / "10.11" / "domains"])
    groups = groups_from(engine)
    for end in range(0, len(groups), 10):
        position = GtidState(gtid for gtid, _ in groups[:end]).position()
        rest = groups_from(engine, str(position))
        assert rest == groups[len(groups) - len(rest) :]
        assert len(rest) >= len(groups) - end
    assert len(groups_from(engine, str(engine.state().position()))) < 20


def test_a_position_before_the_oldest_file_is_refused_with_its_reason():
    files = sorted((CLASSIC / "10.11" / "domains").glob("binlog.0*"))[2:]
    engine = ClassicBinlog(files)
    with pytest.raises(PositionPurgedError, match=r"domain 0: the replica has nothing, binlog\.000003 begins after 0-"):
        engine.seek(GtidPosition())


def test_files_have_the_names_and_sizes_of_the_server():
    engine = ClassicBinlog([CLASSIC / "10.11" / "checksum-switch"])
    expected = json.loads((CLASSIC / "10.11/checksum-switch/expected.json").read_text())["files"]
    assert [(file.name, file.size) for file in engine.files()] == [(file["name"], file["bytes"]) for file in expected]
    assert (engine.file_name(engine.end().file_no), engine.end().offset) == ("binlog.000005", 656)
    assert engine.start_of_file(2).position == (2, 4)
    with pytest.raises(KeyError):
        engine.start_of_file(8)


def test_the_state_at_the_end_is_the_same_with_kernels_and_without(monkeypatch):
    assert loading.load() is not None
    directories = sorted(path.parent for path in CLASSIC.glob("*/*/expected.json") if path.parent.name not in SLOW)
    for directory in directories:
        fast = ClassicBinlog([directory])
        assert fast.state()
        with monkeypatch.context() as patched:
            patched.setattr(engine_module, "kernels", lambda *parts: None)
            assert list(ClassicBinlog([directory]).state()) == list(fast.state())


@pytest.mark.parametrize("name", ["10.11/domains", "11.8/domains", "11.8/group-commit"])
def test_halving_finds_the_newest_file_that_one_after_the_other_finds(name, monkeypatch):
    engine = ClassicBinlog([Path(__file__).parents[2] / "fixtures" / "classic" / name])
    groups, reached, positions = engine.groups(engine.start_of_file()), {}, [GtidPosition()]
    while (group := groups.next_group()) is not None:
        reached[group.gtid.domain_id] = group.gtid
        positions += [GtidPosition(reached.values()), GtidPosition([group.gtid])]

    def found():
        for position in positions:
            try:
                yield engine.seek(position)
            except PositionPurgedError as error:
                yield str(error)

    halved = list(found())
    monkeypatch.setattr(FollowedFiles, "growing", lambda files: ())
    assert halved == list(found())
