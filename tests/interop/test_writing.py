"""What a program appends to a log, real replicas take: while it is written, and by whichever way a transaction ends."""

import pytest
from lanes.primary import PASSWORD, USER

import ibbmaster

INSERT = "INSERT INTO shop.t VALUES ({})"
TEXTS = ("plain", "äöü €", "𝄞 文字 ひ", 'it\'s \\\\ "quoted"')


# As mysql-test/suite/binlog_in_engine/xa.test
@pytest.mark.parametrize("version", ["10.11", "11.8"])
def test_a_replica_takes_transactions_of_texts_by_each_way_to_end_them(version, new_ibb_primary, new_replica, tmp_path):
    """XA transactions among others, before and after a restart of the writer; odd texts while it is followed."""
    replica = new_replica(version)
    with (
        ibbmaster.create(tmp_path / "log") as log,
        ibbmaster.serve(log, user=USER, password=PASSWORD, tls="off") as primary,
    ):
        log.append("0-1-1", "CREATE DATABASE shop")
        log.append("0-1-2", "CREATE TABLE shop.t (id INT PRIMARY KEY) ENGINE=InnoDB")
        log.append("7-1-1", "CREATE DATABASE `größe` CHARACTER SET utf8mb4")
        log.append("7-1-2", "CREATE TABLE t (id INT PRIMARY KEY, x VARCHAR(100))", database="größe")
        replica.follow(primary)
        for number, text in enumerate(TEXTS, start=3):
            escaped = text.replace("\\", "\\\\").replace("'", "\\'")
            log.append(f"7-1-{number}", [f"INSERT INTO t VALUES ({number}, '{escaped}')"], database="größe")
        log.append("0-1-3", INSERT.format(1))
        for number, name in ((4, None), (5, "here"), (6, "later"), (7, "never")):
            with log.begin(database="shop") as group:
                group.write(INSERT.format(number))
                group.savepoint("a")
                group.write(INSERT.format(-number))
                group.roll_back_to("a")
                group.write(INSERT.format(10 * number))
                if name is None:
                    group.commit(f"0-1-{number}")
                else:
                    group.prepare(name)
        log.xa_commit("here", "0-1-5")
        replica.wait_for_gtid("0-1-5,7-1-6")
        assert replica.sql("SELECT x FROM `größe`.t ORDER BY id") == tuple((text,) for text in TEXTS)
    with ibbmaster.open(tmp_path / "log", writable=True) as log:
        log.xa_commit("later", "0-1-6")
        log.xa_rollback("never")
        log.append("0-1-7", INSERT.format(9))
        assert list(log.verify()) == []

    replica.sql("STOP SLAVE")
    replica.follow(new_ibb_primary(tmp_path / "log", "--tls", "off"))
    replica.wait_for_gtid("0-1-7")

    assert replica.sql("SELECT id FROM shop.t ORDER BY id") == ((1,), (4,), (5,), (6,), (9,), (40,), (50,), (60,))
