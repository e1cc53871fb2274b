import json
from contextlib import closing

import pytest

import ibbmaster
from ibbmaster.errors import ClassicFormatError, PositionPurgedError
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.kernel import loading
from ibbmaster.logs.classic import following, framing
from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.logs.classic.exporting import export_traditional
from ibbmaster.logs.classic.following import FollowedFiles
from ibbmaster.logs.classic.head import head_of
from ibbmaster.logs.log.directory import BinlogDirectory
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.storage.disk.local import RealDisk
from tests.built_logs import CLASSIC, captures
from tests.damage import flip
from tests.machinery.events import groups_behind
from tests.machinery.importing import import_classic

CAPTURES = ["10.11/domains", "11.8/domains", "10.11/checksum-switch", "10.11/crashed", "11.8/large-commit"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_groups_and_state_are_those_of_an_import(tmp_path, capture):
    classic = ClassicBinlog([CLASSIC / capture])
    import_classic([CLASSIC / capture], RealDisk(tmp_path), max_file_bytes=1 << 20)
    imported = BinlogDirectory(RealDisk(tmp_path))
    assert groups_behind(classic) == groups_behind(imported)
    assert classic.state() == imported.state()
    expected = json.loads((CLASSIC / capture / "expected.json").read_text())
    assert set(str(classic.state().position()).split(",")) == set(expected["gtid_binlog_pos_after"].split(","))


def test_a_position_is_found_in_the_newest_file_that_begins_before_it():
    engine = ClassicBinlog([CLASSIC / "10.11" / "domains"])
    groups = groups_behind(engine)
    for end in range(0, len(groups), 10):
        rest = groups_behind(engine, str(GtidState(gtid for gtid, _ in groups[:end]).position()))
        assert rest == groups[len(groups) - len(rest) :]
        assert len(rest) >= len(groups) - end
    assert len(groups_behind(engine, str(engine.state().position()))) < 20


def test_a_position_before_the_oldest_file_is_refused_with_its_reason():
    engine = ClassicBinlog(sorted((CLASSIC / "10.11" / "domains").glob("binlog.0*"))[2:])
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
    for name in captures("encrypted", "big", "big-none"):
        fast = ClassicBinlog([CLASSIC / name])
        assert fast.state()
        with monkeypatch.context() as patched:
            patched.setattr(framing, "kernels", lambda: None)
            assert list(ClassicBinlog([CLASSIC / name]).state()) == list(fast.state())


@pytest.mark.parametrize("name", ["10.11/domains", "11.8/domains", "11.8/group-commit"])
def test_halving_finds_the_newest_file_that_one_after_the_other_finds(name, monkeypatch):
    engine = ClassicBinlog([CLASSIC / name])
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
    engine = ClassicBinlog([CLASSIC / name], reads_heads_at_once=False)
    assert halved == list(found())
    monkeypatch.setattr(FollowedFiles, "growing", lambda files: ())
    assert halved == list(found())


@pytest.fixture
def many_files(tmp_path):
    """Forty small files and more, with groups 0-1-1 to 0-1-400."""
    source, directory = tmp_path / "log", tmp_path / "classic"
    with ibbmaster.create(source) as log, closing(RealDisk(directory)) as disk:
        directory.mkdir()
        for number in range(1, 401):
            log.append(f"0-1-{number}", f"INSERT INTO t VALUES ('{'x' * 900}')", database="d")
        export_traditional(log.engine, disk, PROFILES["classic-10.11"], max_file_bytes=10_000)
    return directory


@pytest.fixture
def heads(monkeypatch):
    found = []
    monkeypatch.setattr(following, "head_of", lambda file: (found.append(file.name), head_of(file))[1])
    return found


@pytest.mark.parametrize("number", [5, 77, 200, 399])
def test_a_search_reads_only_the_heads_that_it_asks_for(many_files, heads, number):
    position = GtidPosition.parse(f"0-1-{number}")
    expected = ClassicBinlog([many_files]).seek(position).position
    assert len(heads) >= 40
    heads.clear()
    assert ClassicBinlog([many_files], reads_heads_at_once=False).seek(position).position == expected
    assert len(heads) == len(set(heads)) <= 7


@pytest.mark.parametrize("damaged", [1, 20, 39])
def test_a_search_meets_a_head_that_is_damaged_only_where_it_begins_there_or_in_front(many_files, damaged):
    names = sorted(path.name for path in many_files.glob("binlog.0*[0-9]"))
    whole = ClassicBinlog([many_files])
    starts = {number: whole.seek(GtidPosition.parse(f"0-1-{number}")).position for number in range(1, 400, 7)}
    flip(many_files / names[damaged], 60, 0xFF)
    engine = ClassicBinlog([many_files], reads_heads_at_once=False)
    for number, start in starts.items():
        position = GtidPosition.parse(f"0-1-{number}")
        if start.file_no > damaged:
            assert engine.seek(position).position == start
        else:
            with pytest.raises(ClassicFormatError, match=names[damaged]):
                engine.seek(position)


def test_a_step_back_of_the_states_that_a_search_reads_ends_what_is_halved(many_files):
    """As after a domain was forgotten: the last file begins after less than those in front of it."""
    engine = ClassicBinlog([many_files], reads_heads_at_once=False)
    series = engine._series
    series._heads[series.last.index, series.last.life] = series.head(series.first)
    assert engine.seek(GtidPosition.parse("0-1-250")).position.file_no == series.last.index
