import shutil
from functools import partial

import pytest

import ibbmaster
from ibbmaster.errors import StoreError
from ibbmaster.gtid import GtidPosition
from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.logs.log import schema_history
from ibbmaster.logs.log.group_folding import GroupFolding
from ibbmaster.logs.log.history_cache import CACHE_FILE, HistoryCache
from ibbmaster.logs.log.schema_history import LoggedSchema
from ibbmaster.replication.event.control import GtidList, encode_gtid_list, encode_stop
from ibbmaster.replication.event.format_description import describe_format, encode_format_description
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.replication.event.query import Query, encode_query
from ibbmaster.replication.event.rows.encoding import written_table
from ibbmaster.replication.event.types import EventType
from ibbmaster.schema.catalog import SchemaCatalog
from ibbmaster.schema.model import TableVersion
from ibbmaster.tables.arrow.ddl_scan import scan_ddl
from ibbmaster.work import BreakReason, BrokenOffError, Work, doing
from tests.machinery.events import gtid_of, make_event
from tests.written_log import inserted, write_log

CREATE, ADD = "CREATE TABLE t (a INT)", "ALTER TABLE t ADD b INT"


@pytest.fixture
def log(tmp_path):
    class Numbered:
        path = tmp_path / "log"
        count = 0

        def __init__(self):
            self.writable = ibbmaster.create(self.path, durability="sync", has_background=False)

        def append(self, *statements):
            for one in statements:
                self.count += 1
                self.writable.append(f"0-1-{self.count}", one, database="d")
            return self

        def begin_anew(self):
            self.writable.reset()
            self.count = 0
            return self

        def schema(self, *, is_written=True, **given):
            return LoggedSchema(self.writable.engine, cache=HistoryCache(self.path, is_written=is_written), **given)

    numbered = Numbered()
    yield numbered
    numbered.writable.close()


def query(text):
    statement = Query(thread_id=7, seconds=0, error_code=0, status=b"", database=b"d", text=text.encode())
    return encode_query(statement, server_id=1)


def columns(schema, name="t"):
    table = schema.history().table_at("d", name)
    return None if table is None else [column.name for column in table.columns]


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches"


@pytest.fixture
def count_folds(monkeypatch):
    found, fold = [], GroupFolding.fold
    monkeypatch.setattr(GroupFolding, "fold", lambda *given: (found.append(given[1]), fold(*given)))
    return found


@pytest.fixture
def folded(count_folds):
    def fold(schema):
        count_folds.clear()
        return columns(schema), len(count_folds)

    return fold


def test_a_history_grows_with_its_log(log, folded):
    schema = log.append(CREATE).schema()
    assert folded(schema) == (["a"], 1)
    log.append("INSERT INTO t VALUES (1)", ADD)
    assert folded(schema) == (["a", "b"], 2)
    assert folded(schema) == (["a", "b"], 0)
    assert schema.history().end == log.writable.engine.end()


def test_what_is_kept_is_not_folded_again(log, folded):
    columns(log.append(CREATE, ADD).schema())
    assert folded(log.schema()) == (["a", "b"], 0)
    log.append("ALTER TABLE t DROP a")
    assert folded(log.schema()) == (["b"], 1)


def test_the_cache_of_another_log_or_a_damaged_one_leads_to_folding_anew(log, folded):
    cache = log.path / CACHE_FILE
    columns(log.append(CREATE, ADD).schema())
    kept = cache.read_bytes()
    log.begin_anew().append("CREATE TABLE t (z INT)", "DROP TABLE IF EXISTS x", "DROP TABLE IF EXISTS y")
    assert columns(log.schema()) == ["z"]
    for content in (kept, kept[:-1], b"", b"\xff" * 100):
        cache.write_bytes(content)
        assert folded(log.schema()) == (["z"], 3)


def test_rows_define_tables_from_when_they_are_needed(tmp_path, count_folds):
    tables = [written_table("d.t", {"id": "int", name: "int"}, table_id=number) for number, name in enumerate("ab")]
    path = write_log(tmp_path / "log", [inserted(tables[0], [1, 2])])
    with ibbmaster.open(path) as log:
        schema = LoggedSchema(log.engine, cache=HistoryCache(path, is_written=True))
        schema.history(lambda found: False)
        assert columns(schema) is None
        assert len(count_folds) == 1
        schema.history(lambda found: "t" not in found.names())
        assert len(count_folds) == 2
        schema.history(lambda found: pytest.fail("they define tables already"))
        write_log(path, "ALTER TABLE t RENAME COLUMN a TO b", [inserted(tables[1], [3, 4])], first=2)
        assert columns(schema) == ["id", "b"]
        assert len(count_folds) == 4
        others = LoggedSchema(log.engine, cache=HistoryCache(path, is_written=True))
        assert not isinstance(others.history().table_at("d", "t"), TableVersion)  # what rows say is not kept for them


def test_a_log_that_began_anew_is_folded_anew(log):
    schema = log.append(CREATE, ADD).schema()
    assert columns(schema) == ["a", "b"]
    log.begin_anew()
    assert columns(schema) is None
    log.append("CREATE TABLE t (z INT)")
    assert columns(schema) == ["z"]


def test_what_was_purged_stays_known_while_it_is_kept(log):
    schema = log.append(CREATE).schema()
    columns(schema)
    log.writable.flush()
    log.append("CREATE TABLE u (a INT)")
    assert columns(schema, "u") == ["a"]
    log.writable.purge(to=log.writable.files[-1].name)
    assert columns(schema) == columns(log.schema()) == ["a"]


def test_other_rules_or_another_base_fold_anew(log, folded, monkeypatch):
    columns(log.append(CREATE).schema())
    base = SchemaCatalog(tables={("d", "older"): TableVersion(database="d", name="older")})
    assert columns(log.schema(base=base), "older") == []
    monkeypatch.setattr(schema_history, "_code", lambda: "other")
    assert folded(log.schema()) == (["a"], 1)


def test_what_the_base_holds_already_is_passed_over(log):
    log.append("CREATE TABLE t (old INT)", "DROP TABLE t", CREATE)
    base = SchemaCatalog(tables={("d", "t"): TableVersion(database="d", name="t")})
    assert columns(log.schema(base=base, behind=GtidPosition.parse("0-1-3"))) == []
    assert columns(log.schema(base=base, behind=GtidPosition.parse("0-1-1"))) == ["a"]


def test_who_only_reads_leaves_the_directory_as_it_is_and_takes_what_its_writer_keeps(log, folded):
    log.append(CREATE)
    assert columns(log.schema(is_written=False)) == ["a"]
    assert not (log.path / CACHE_FILE).exists()
    columns(log.schema())
    assert folded(log.schema(is_written=False)) == (["a"], 0)


def test_who_only_reads_a_long_log_keeps_its_history_among_the_caches_of_the_user(log, folded, caches):
    log.append(CREATE)
    columns(log.schema(is_written=False))
    assert not caches.exists()  # folded again as soon as it was read
    log.writable.flush()
    log.append(ADD)
    assert columns(log.schema(is_written=False)) == ["a", "b"]
    assert not (log.path / CACHE_FILE).exists()
    assert folded(log.schema(is_written=False)) == (["a", "b"], 0)


def test_of_two_caches_the_one_that_is_of_this_log_is_taken(log, folded):
    log.append(CREATE)
    log.writable.flush()
    columns(log.append(ADD).schema(is_written=False))
    log.begin_anew()
    columns(log.append("CREATE TABLE t (z INT)").schema())
    assert folded(log.schema(is_written=False)) == (["z"], 0)


def test_a_directory_that_cannot_be_written_has_no_cache(log):
    (log.path / CACHE_FILE).mkdir()
    assert columns(log.append(CREATE).schema()) == ["a"]
    assert columns(log.schema()) == ["a"]


def test_a_part_that_was_folded_before_an_error_is_not_folded_twice(log, monkeypatch):
    schema = log.append(CREATE).schema()
    columns(schema)
    log.append(ADD, "ALTER TABLE t ADD c INT")
    fold = GroupFolding.fold

    def fail_at_the_last(folding, group, *others):
        if group.gtid.seq_no == 3:
            raise StoreError("gone for a moment")
        fold(folding, group, *others)

    monkeypatch.setattr(GroupFolding, "fold", fail_at_the_last)
    with pytest.raises(StoreError):
        schema.history()
    monkeypatch.setattr(GroupFolding, "fold", fold)
    assert columns(schema) == ["a", "b", "c"]


@pytest.mark.parametrize("created", [0, 5])
def test_temporary_tables_end_where_a_server_was_started(tmp_path, created):
    number = 0
    for file_no, statements in enumerate([(CREATE, "CREATE TEMPORARY TABLE t (z INT)"), ("ALTER TABLE t ADD b INT",)]):
        description = describe_format("11.8.6-MariaDB", type_count=171, created=created)
        events = [
            encode_format_description(description, server_id=1),
            encode_gtid_list(GtidList(gtids=()), server_id=1),
        ]
        if file_no:
            events[1] = encode_gtid_list(GtidList(gtids=(gtid_of(number),)), server_id=1)
        for text in statements:
            number += 1
            head = GtidEvent(gtid=gtid_of(number), flags=GtidFlag.STANDALONE | GtidFlag.DDL)
            events += [encode_gtid_event(head), query(text)]
        events.append(encode_stop(server_id=1))
        (tmp_path / f"binlog.00000{file_no + 1}").write_bytes(b"\xfebin" + b"".join(events))
    for scan in (None, scan_ddl):
        assert columns(LoggedSchema(ClassicBinlog([tmp_path]), scan=scan)) == (["a", "b"] if created else ["a"])


def test_traditional_files_have_one_too_and_it_grows_by_files(tmp_path, fixtures, count_folds, caches):
    files = sorted((fixtures / "classic" / "11.8" / "domains").glob("binlog.0*[0-9]"))
    path = tmp_path / "log"
    path.mkdir()
    for file in files[:2]:
        shutil.copy(file, path)

    def history():
        return LoggedSchema(ClassicBinlog([path]), cache=HistoryCache(path, is_written=False)).history()

    before = history()
    count_folds.clear()
    for file in files[2:]:
        shutil.copy(file, path)
    grown = history()
    folded = len(count_folds)
    shutil.rmtree(caches)
    count_folds.clear()
    anew = history()
    assert grown.lines == anew.lines
    assert grown.end == anew.end > before.end
    assert 0 < folded < len(count_folds)
    assert sorted(file.name for file in path.iterdir()) == [file.name for file in files]


def break_off(schema, is_wanted):
    """Ask for a history by work that is broken off as soon as it is not wanted."""
    work = Work(lambda: 0.0)
    work.check = lambda: is_wanted() or Work.check(work)
    work.break_off(BreakReason.KILLED)
    with doing(work), pytest.raises(BrokenOffError):
        schema.history()


def test_folding_that_is_broken_off_keeps_what_was_folded_and_the_next_goes_on_there(log, count_folds):
    log.append(CREATE, *["INSERT INTO t VALUES (1)"] * 5, ADD)
    schema = log.schema()

    for number in (2, 2, 1):
        left = len(count_folds) + number
        break_off(schema, lambda left=left: len(count_folds) < left)  # the last is folded
        assert len(count_folds) == left

    assert columns(schema) == ["a", "b"]
    assert len(count_folds) == 7
    both = (schema, log.schema(is_written=False))
    assert len({tuple(map(str, each.history().versions("d", "t"))) for each in both}) == 1


def test_folding_is_broken_off_inside_a_group_and_goes_on_there(log):
    """CREATE TABLE ... SELECT has its rows behind the statement."""
    log.append(CREATE)
    gtid = gtid_of(2)
    rows = [make_event(EventType.WRITE_ROWS_V1, 1, bytes(9))] * 5
    events = [
        event for text in ("CREATE TABLE u (a INT)", "ALTER TABLE u ADD b INT", ADD) for event in [query(text), *rows]
    ]
    log.writable.store.write_direct(gtid, encode_gtid_event(GtidEvent(gtid=gtid, flags=GtidFlag.DDL)), events)
    log.count = 2
    log.append("ALTER TABLE u ADD c INT")
    schema = log.schema()

    for left in range(3, 14):
        break_off(schema, partial(next, iter([True] * left), False))

    assert columns(schema) == ["a", "b"]
    assert columns(schema, "u") == ["a", "b", "c"]
    anew = log.schema(is_written=False)
    for name in ("t", "u"):
        assert len({tuple(map(str, each.history().versions("d", name))) for each in (schema, anew)}) == 1
    assert schema._last == anew._last


def test_to_look_for_how_names_are_compared_can_be_broken_off(tmp_path):
    """The statements are folded then, and are not once more."""
    with ibbmaster.create(tmp_path / "log", durability="sync", has_background=False) as writable:
        writable.append("0-1-1", "CREATE TABLE Tt (a INT)", database="d")
        writable.append("0-1-2", "INSERT INTO Tt VALUES (1)", database="d")
        schema = LoggedSchema(writable.engine)
        checks = iter([True] * 3)  # of two groups that are folded, and of the first that is looked at
        break_off(schema, lambda: next(checks, False))
        assert schema._looked._bytes == 0  # who breaks off takes nothing from those who come later
        assert schema.history().end == writable.engine.end()


def test_another_log_at_the_path_of_one_that_was_read_is_folded_anew(tmp_path, fixtures, caches):
    path = tmp_path / "log"
    for version in ("11.8", "10.11"):  # where the last group of the first was, the second is inside an event
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(fixtures / "classic" / version / "domains", path)
        found = LoggedSchema(ClassicBinlog([path]), cache=HistoryCache(path, is_written=False)).history()
    assert found.lines == LoggedSchema(ClassicBinlog([path])).history().lines
