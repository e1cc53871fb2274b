"""What `ibbmaster.create` writes from SQL texts, `ibbmaster.serve` sends and a real replica then holds."""

import pytest
from lanes.primary import PASSWORD, USER

import ibbmaster

TEXTS = ("plain", "äöü €", "𝄞 文字 ひ", 'it\'s \\\\ "quoted"')


@pytest.mark.parametrize("version", ["10.11", "11.8"])
def test_a_replica_follows_a_log_written_as_sql_texts_while_it_is_written(version, tmp_path, new_replica):
    replica = new_replica(version)
    with (
        ibbmaster.create(tmp_path / "log") as log,
        ibbmaster.serve(log, user=USER, password=PASSWORD, tls="off") as primary,
    ):
        log.append("0-77-1", "CREATE DATABASE `größe` CHARACTER SET utf8mb4")
        log.append("0-77-2", "CREATE TABLE t (id INT PRIMARY KEY, x VARCHAR(100))", database="größe")
        replica.follow(primary)  # type: ignore[arg-type]  # it has all that a client needs
        for number, text in enumerate(TEXTS, start=3):
            escaped = text.replace("\\", "\\\\").replace("'", "\\'")
            log.append(f"0-77-{number}", [f"INSERT INTO t VALUES ({number}, '{escaped}')"], database="größe")
        with log.begin(server_id=77, database="größe") as group:
            group.write("INSERT INTO t VALUES (1, 'first')")
            group.write("UPDATE t SET id = 100 WHERE id = 3")
            group.commit("0-77-7")
        replica.wait_for_gtid("0-77-7")
        assert replica.sql("SELECT x FROM `größe`.t ORDER BY id") == tuple(
            (text,) for text in ("first", *TEXTS[1:], TEXTS[0])
        )
