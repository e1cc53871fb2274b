import json
import shutil
from pathlib import Path

import ibbmaster
from tests.damage import flip
from tests.written_log import write_log

FIXTURES = Path(__file__).parents[3] / "fixtures"
IBB = FIXTURES / "ibb"
CLASSIC = FIXTURES / "classic" / "11.8"


def test_a_log_equals_the_files_that_it_was_imported_from(run):
    assert run("diff", IBB / "xa-and-ddl", CLASSIC / "ddl-trx-xa") == (0, "93 transactions are equal\n", "")


def test_the_first_difference_is_shown_with_both_places(run, tmp_path):
    first = write_log(tmp_path / "a", "CREATE TABLE t (a INT)", "CREATE TABLE u (a INT)")
    second = write_log(tmp_path / "b", "CREATE TABLE t (a INT)", "CREATE TABLE u (b INT)", "DROP TABLE u")
    code, out, err = run("diff", first, second)
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        "0-1-2 event 1 differs in its body from byte 40",
        f"  {first} binlog-000000.ibb page 1 offset 112: QUERY, 65 bytes: use `d`; CREATE TABLE u (a INT)",
        f"  {second} binlog-000000.ibb page 1 offset 112: QUERY, 65 bytes: use `d`; CREATE TABLE u (b INT)",
        f"0-1-3 only in {second}, at binlog-000000.ibb page 1 offset 219",
        "1 transaction is equal, 2 are not: 1 QUERY, 1 only in second",
    ]
    assert run("diff", first, second, "--quiet") == (1, "", "")
    assert run("diff", first, second, "--until", "0-1-1")[0] == 0
    assert run("diff", first, second, "--limit", "1")[1].splitlines()[-2] == "... 1 more"


def test_it_speaks_json(run, tmp_path):
    first = write_log(tmp_path / "a", "CREATE TABLE t (a INT)")
    code, out, _ = run("diff", first, write_log(tmp_path / "b", "CREATE TABLE t (b INT)", "DROP TABLE t"), "--json")
    answer = json.loads(out)
    assert (code, answer["equal"], answer["different"]) == (1, 0, 2)
    assert answer["kinds"] == {"QUERY": 1, "only in second": 1}
    shown, alone = answer["shown"]
    assert (shown["gtid"], shown["event_no"], alone["first_place"]) == ("0-1-1", 1, "")


def test_what_a_replica_writes_otherwise_can_be_ignored(run):
    pair = FIXTURES / "classic" / "10.11" / "types-full-crc32", CLASSIC / "types-full-crc32"
    assert run("diff", *pair, "--quiet")[0] == 1
    *_, counts = run("diff", *pair, "--ignore", "replica")[1].splitlines()
    assert counts == (  # sessions have other collations, and some values are those of the day
        "133 transactions are equal, 18 are not: 15 QUERY, 2 UPDATE_ROWS_V1, 1 WRITE_ROWS_V1"
    )


def test_a_running_primary_is_a_side(run):
    with ibbmaster.serve(IBB / "domains", password="secret", tls="off") as primary:
        side = f"{primary.host}:{primary.port}"
        assert run("diff", IBB / "domains", side, "--password", "secret")[:2] == (0, "155 transactions are equal\n")
        code, _, err = run("diff", IBB / "domains", side, "--password", "secret", "--only", "dom_0.*")
        assert (code, err) == (2, f"ibbmaster: {side}: of a running primary only --after can be chosen\n")


def test_a_damaged_log_is_neither_equal_nor_different(run, tmp_path):
    shutil.copytree(IBB / "types", tmp_path / "log")
    flip(tmp_path / "log" / "binlog-000001.ibb", 5 * 16384 + 700)
    code, out, err = run("diff", IBB / "types", tmp_path / "log")
    assert (code, out) == (2, "")
    assert err.startswith("ibbmaster: binlog-000001.ibb page 5")
