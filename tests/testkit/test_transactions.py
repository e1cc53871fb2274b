import pytest
from pymysqlreplication.event import MariadbGtidEvent, QueryEvent, XidEvent

from ibbmaster.errors import ConfigurationError, GtidError, GtidOrderError
from ibbmaster.replication.event.gtid_event import GtidExtraFlag, GtidFlag, decode_gtid_event
from ibbmaster.replication.event.statement.logged import decode_statement
from ibbmaster.testkit import FixturePrimary, FixtureTable, RowFormat


@pytest.fixture
def orders(ibb_primary) -> FixtureTable:
    return ibb_primary.table("shop.orders", id="int primary key", note="varchar(20)")


def groups_of(primary):
    return [
        (str(group.gtid), [event.type for event in group.events()][1:])
        for group in primary.log.groups()
        if not head_of(group).flags & GtidFlag.DDL
    ]


def head_of(group):
    return decode_gtid_event(next(iter(group.events())).data)


def texts_of(group):
    return [event.describe() for event in group.events()][1:]


ROWS = ["TABLE_MAP", "WRITE_ROWS_V1"]


def test_what_happens_inside_is_one_group_and_outside_each_change_is_one(ibb_primary, orders):
    with ibb_primary.transaction() as transaction:
        orders.insert(id=1)
        orders.insert(id=2)
    orders.insert(id=3)
    orders.insert(id=4)
    assert groups_of(ibb_primary) == [
        ("0-1-3", [*ROWS, *ROWS, "XID"]),
        ("0-1-4", [*ROWS, "XID"]),
        ("0-1-5", [*ROWS, "XID"]),
    ]
    assert str(transaction.gtid) == "0-1-3"


def test_the_innermost_transaction_takes_what_tables_are_told(ibb_primary, orders):
    with ibb_primary.transaction():
        orders.insert(id=1)
        with ibb_primary.transaction(domain=7):
            orders.insert(id=2)
        orders.insert(id=3)
    assert groups_of(ibb_primary) == [("7-1-1", [*ROWS, "XID"]), ("0-1-3", [*ROWS, *ROWS, "XID"])]


def test_primaries_beside_each_other_take_only_their_own_changes(ibb_primary, orders):
    with FixturePrimary() as other:
        other_table = other.table("shop.t", id="int primary key")
        with ibb_primary.transaction(), other.transaction(domain=3):
            orders.insert(id=1)
            other_table.insert(id=2)
        assert groups_of(other) == [("3-1-1", [*ROWS, "XID"])]
    assert groups_of(ibb_primary) == [("0-1-3", [*ROWS, "XID"])]


def test_any_gtid_that_is_newer_in_its_domain(ibb_primary, orders):
    for number, options in enumerate(
        [
            {"domain": 4294967295, "server_id": 4294967295},
            {"domain": 1, "seq_no": 2**63},
            {"domain": 1},
            {"gtid": "1-9-9223372036854775900"},
            {"seq_no": 100, "server_id": 5},
            {},
        ]
    ):
        with ibb_primary.transaction(**options):
            orders.insert(id=number)
    ibb_primary.ddl("CREATE DATABASE other", domain=2)
    assert [gtid for gtid, _ in groups_of(ibb_primary)] == [
        "4294967295-4294967295-1",
        "1-1-9223372036854775808",
        "1-1-9223372036854775809",
        "1-9-9223372036854775900",
        "0-5-100",
        "0-1-101",
    ]
    assert str(ibb_primary.log.position).startswith("0-1-101,1-9-9223372036854775900,2-1-1")


def test_a_gtid_that_is_not_newer_is_refused_and_its_changes_are_taken_back(ibb_primary, orders):
    orders.insert(id=1)
    with pytest.raises(GtidOrderError), ibb_primary.transaction(seq_no=2):
        orders.delete(id=1)
    assert [row["id"] for row in orders.rows] == [1]
    orders.insert(id=2)
    assert [gtid for gtid, _ in groups_of(ibb_primary)] == ["0-1-3", "0-1-4"]


def test_an_exception_rolls_back(ibb_primary, orders):
    orders.insert(id=1, note="kept")

    def fail():
        with ibb_primary.transaction():
            orders.update(id=1, note="lost")
            orders.insert(id=2)
            orders.delete(id=1)
            raise KeyError("of the test")

    with pytest.raises(KeyError):
        fail()
    assert orders.rows == [{"id": 1, "note": "kept"}]
    orders.insert(id=2)
    assert [gtid for gtid, _ in groups_of(ibb_primary)] == ["0-1-3", "0-1-4"]


def test_what_is_rolled_back_behind_ddl_goes_as_far_as_it_can(ibb_primary, orders):
    def fail():
        with ibb_primary.transaction():
            orders.insert(id=1, note="x")
            ibb_primary.ddl("ALTER TABLE shop.orders DROP COLUMN note")
            assert orders.rows == [{"id": 1}]
            if dropped:
                ibb_primary.ddl("DROP TABLE shop.orders")
            raise KeyError("of the test")

    for dropped in (False, True):
        with pytest.raises(KeyError):
            fail()
        if not dropped:
            assert orders.rows == []
            ibb_primary.ddl("ALTER TABLE shop.orders ADD COLUMN note varchar(20)")


def test_savepoints_take_back_rows_and_events(ibb_primary, orders):
    with ibb_primary.transaction() as transaction:
        orders.insert(id=1)
        transaction.savepoint("a")
        orders.insert(id=2)
        transaction.savepoint("b")
        orders.delete(id=1)
        transaction.roll_back_to("a")
        orders.insert(id=3)
        with pytest.raises(ConfigurationError, match="there is no savepoint 'b'; there are: a"):
            transaction.roll_back_to("b")
    assert [row["id"] for row in orders.rows] == [1, 3]
    assert groups_of(ibb_primary) == [("0-1-3", [*ROWS, "QUERY", *ROWS, "XID"])]


def test_events_have_the_time_of_the_clock(ibb_primary, orders):
    with ibb_primary.transaction():
        orders.insert(id=1)
        ibb_primary.clock.advance(-3600)
        orders.insert(id=2)
        ibb_primary.clock.set(1)
    *_, group = ibb_primary.log.groups()
    begin = 1767225600
    assert [event.header.timestamp for event in group.events()] == [1, *2 * [begin], *2 * [begin - 3600], 1]


def test_statements_annotations_and_compression(ibb_primary, orders, read_by_python):
    with ibb_primary.transaction(format=RowFormat(is_compressed=True)) as transaction:
        transaction.statement("DELETE FROM orders WHERE id > 5 /* €€€€€€€€€€ */", database="shop")
        transaction.annotate("INSERT INTO orders VALUES (1)")
        orders.insert(id=1)
    *_, group = ibb_primary.log.groups()
    types = ["QUERY_COMPRESSED", "ANNOTATE_ROWS", "TABLE_MAP", "WRITE_ROWS_COMPRESSED_V1", "XID"]
    assert [event.type for event in group.events()][1:] == types
    assert texts_of(group)[:2] == [
        "use `shop`; DELETE FROM orders WHERE id > 5 /* €€€€€€€€€€ */",
        "INSERT INTO orders VALUES (1)",
    ]
    with ibb_primary.transaction() as transaction:
        transaction.statement("DELETE FROM orders WHERE id > 5", database="shop")
    events = read_by_python(ibb_primary, QueryEvent, XidEvent, MariadbGtidEvent)
    assert [getattr(event, "query", event) for event in events[-3:-1]] == ["0-1-4", "DELETE FROM orders WHERE id > 5"]


def test_each_sort_of_statement_has_its_place_and_an_empty_transaction_none(ibb_primary, orders):
    with pytest.raises(ConfigurationError, match=r"give it to transaction\(\)\.statement\(\)"):
        ibb_primary.ddl("INSERT INTO t VALUES (1)")
    with ibb_primary.transaction() as transaction, pytest.raises(ConfigurationError, match=r"give it to ddl\(\)"):
        transaction.statement("CREATE TABLE t (a int)")
    with ibb_primary.transaction() as transaction:
        pass
    assert transaction.gtid is None
    assert groups_of(ibb_primary) == []
    with pytest.raises(ConfigurationError, match="the transaction has ended"):
        transaction.statement("DELETE FROM shop.orders")


NO_STATEMENTS = [
    *("SELEC 1", "", " ; ", "/* x */", "'x'", "CREATE TABEL t (a int)"),
    *("CREATE TABLE shop.t", "CREATE TABLE shop.t (a INTT)"),
    *("CREATE TABLE shop.t (a int", "CREATE TABLE shop.t (a int) garbage", "DROP TABLE", "TRUNCATE", "DROP TABEL t"),
    *("ALTER TABLE shop.orders ADD COLUM note int", "ALTER TABLE shop.orders DROP COLUMN", "RENAME TABLE a b"),
    *("CREATE INDEX i ON t", "DROP VIEW", "ALTER TABLE shop.orders ADD COLUMN (a int"),
]


@pytest.mark.parametrize("sql", NO_STATEMENTS)
def test_what_no_server_would_take_is_refused_and_not_logged(sql, ibb_primary):
    orders = ibb_primary.table("shop.orders", id="int primary key")
    before = str(ibb_primary.log.position)
    with pytest.raises(ConfigurationError, match="is not a statement that is known here"):
        ibb_primary.ddl(sql)
    if sql.startswith("ALTER"):
        with pytest.raises(ConfigurationError, match="is not a statement that is known here"):
            ibb_primary.start_alter(sql)
    assert str(ibb_primary.log.position) == before
    orders.insert(id=1)


def test_tables_of_other_engines_end_their_groups_by_commit(ibb_primary, orders):
    with ibb_primary.transaction(is_transactional=False, commit_id=77):
        orders.insert(id=1)
    *_, group = ibb_primary.log.groups()
    head = head_of(group)
    assert (head.flags, head.commit_id) == (GtidFlag.ALLOW_PARALLEL | GtidFlag.GROUP_COMMIT, 77)
    assert texts_of(group)[-1] == "COMMIT"


def test_a_log_of_12_3_has_a_prepared_transaction_when_it_commits(ibb_primary, orders):
    for name in ("one", "two"):
        with ibb_primary.transaction() as transaction:
            orders.insert(id=1 if name == "one" else 2)
            transaction.prepare(name)
    assert orders.rows == []
    assert ibb_primary.xa_rollback("one") is None
    assert str(ibb_primary.xa_commit("two", domain=4)) == "4-1-1"
    assert [row["id"] for row in orders.rows] == [2]
    assert groups_of(ibb_primary) == [("4-1-1", [*ROWS, "QUERY"])]
    with pytest.raises(ConfigurationError, match="no transaction 'two' is prepared; prepared are: none"):
        ibb_primary.xa_commit("two")


def test_a_prepared_name_is_taken(ibb_primary, orders):
    with ibb_primary.transaction() as transaction:
        orders.insert(id=1)
        transaction.prepare("one")
    with ibb_primary.transaction() as again:
        orders.insert(id=2)
        with pytest.raises(ConfigurationError, match="'one' is the name of a prepared"):
            again.prepare("one")
        again.roll_back()
    assert orders.rows == []


# GTIDs at their borders

TOP_ID, TOP_SEQ_NO = 2**32 - 1, 2**64 - 1


@pytest.mark.parametrize("seq_no", [2**63 - 1, 2**63, TOP_SEQ_NO])
def test_the_greatest_gtids_are_written_as_they_are(ibb_primary, orders, seq_no):
    with ibb_primary.transaction(domain=TOP_ID, server_id=TOP_ID, seq_no=seq_no) as transaction:
        orders.insert(id=1)
    gtid = f"{TOP_ID}-{TOP_ID}-{seq_no}"
    assert (str(transaction.gtid), groups_of(ibb_primary)) == (gtid, [(gtid, [*ROWS, "XID"])])
    assert gtid in str(ibb_primary.log.position)


@pytest.mark.parametrize(
    "options",
    [
        {"domain": TOP_ID + 1},
        {"domain": -1},
        {"server_id": TOP_ID + 1},
        {"seq_no": TOP_SEQ_NO + 1},
        {"gtid": f"0-1-{TOP_SEQ_NO + 1}"},
    ],
    ids=str,
)
def test_what_is_beyond_them_is_no_gtid(ibb_primary, options):
    before = ibb_primary.log.position
    for write in (ibb_primary.transaction, lambda **given: ibb_primary.ddl("CREATE TABLE shop.t (a int)", **given)):
        with pytest.raises(GtidError, match="is not a valid GTID"):
            write(**options)
    assert ibb_primary.log.position == before


def test_behind_the_greatest_sequence_number_nothing_follows(ibb_primary, orders):
    ibb_primary.ddl("CREATE DATABASE late", seq_no=TOP_SEQ_NO)
    with pytest.raises(GtidError, match=f"0-1-{TOP_SEQ_NO + 1}' is not a valid GTID"):
        orders.insert(id=1)
    assert orders.rows == []


def test_compressed_statements_are_those_that_were_said(ibb_primary):
    ibb_primary.format = RowFormat(is_compressed=True)
    orders = ibb_primary.table("shop.orders", id="int primary key")
    ibb_primary.commit_alter(ibb_primary.start_alter("ALTER TABLE shop.orders ADD COLUMN a int"))
    with ibb_primary.transaction() as transaction:
        transaction.statement("DELETE FROM shop.orders")
    orders.insert(id=1, a=2)
    types = [event.type for group in ibb_primary.log.groups() for event in list(group.events())[1:]]
    row = ["TABLE_MAP", "WRITE_ROWS_COMPRESSED_V1", "XID"]
    assert types == ["QUERY_COMPRESSED"] * 5 + ["XID", *row]
    again = FixturePrimary(ibb_primary.log)  # it reads the log's statements for what tables are
    assert again.table("shop.orders").known == orders.known


def test_an_alter_of_two_phases_takes_effect_at_its_end(ibb_primary):
    orders = ibb_primary.table("shop.orders", id="int primary key", a="int")
    started = ibb_primary.start_alter("ALTER TABLE orders DROP COLUMN a", database="shop", domain=2)
    failing = ibb_primary.start_alter("ALTER TABLE shop.orders ADD UNIQUE (a)")
    orders.insert(id=1, a=2)
    ibb_primary.rollback_alter(failing)
    ended = ibb_primary.commit_alter(str(started), seq_no=9)
    assert (str(started), str(ended), orders.rows) == ("2-1-1", "2-1-9", [{"id": 1}])
    heads = [head_of(group) for group in ibb_primary.log.groups()]
    assert {head.thread_id for head in heads} == {1}  # every one names it
    told = {str(head.gtid): (head.extra_flags & ~GtidExtraFlag.THREAD_ID, head.alter_seq_no) for head in heads}
    assert {gtid: what for gtid, what in told.items() if what[0]} == {
        "2-1-1": (GtidExtraFlag.START_ALTER, None),
        str(failing): (GtidExtraFlag.START_ALTER, None),
        "0-1-5": (GtidExtraFlag.ROLLBACK_ALTER, failing.seq_no),
        "2-1-9": (GtidExtraFlag.COMMIT_ALTER, 1),
    }
    queries = (event for group in ibb_primary.log.groups() for event in group.events() if event.type == "QUERY")
    statements = [decode_statement(event.data) for event in queries]
    assert [one.has_effect for one in statements if one.text.startswith("ALTER")] == [False, False, False, True]
    with pytest.raises(ConfigurationError, match="no ALTER has begun with 2-1-1; begun have: none"):
        ibb_primary.commit_alter(started)
    with pytest.raises(ConfigurationError, match="'DROP TABLE t' is no ALTER TABLE"):
        ibb_primary.start_alter("DROP TABLE t")
