"""What a program appends to a log, real replicas take: by whichever way a transaction is ended."""

import pytest

import ibbmaster

INSERT = "INSERT INTO shop.t VALUES ({})"


# As mysql-test/suite/binlog_in_engine/xa.test
@pytest.mark.parametrize("version", ["10.11", "11.8"])
def test_a_replica_takes_transactions_of_texts_by_each_way_to_end_them(version, new_ibb_primary, new_replica, tmp_path):
    """XA transactions among others, before and after a restart of the writer."""
    with ibbmaster.create(tmp_path / "log") as log:
        log.append("0-1-1", "CREATE DATABASE shop")
        log.append("0-1-2", "CREATE TABLE shop.t (id INT PRIMARY KEY) ENGINE=InnoDB")
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
    with ibbmaster.open(tmp_path / "log", writable=True) as log:
        log.xa_commit("later", "0-1-6")
        log.xa_rollback("never")
        log.append("0-1-7", INSERT.format(9))
        assert list(log.verify()) == []
    replica, primary = new_replica(version), new_ibb_primary(tmp_path / "log", "--tls", "off")

    replica.follow(primary)
    replica.wait_for_gtid("0-1-7")

    assert replica.sql("SELECT id FROM shop.t ORDER BY id") == ((1,), (4,), (5,), (6,), (9,), (40,), (50,), (60,))
