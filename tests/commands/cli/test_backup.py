import json


# As mysql-test/suite/binlog_in_engine/mariabackup_binlog_dir.test
def test_backup_makes_a_directory_that_can_be_used(run, feed, tmp_path):
    feed(tmp_path / "a", range(1, 20), crash=True)
    code, out, err = run("backup", tmp_path / "a", "--to", tmp_path / "b", "--json")
    assert (code, err, json.loads(out)["gtid_state"]) == (0, "", "0-1-19")
    assert run("verify", tmp_path / "b")[0] == 0
    code, _, err = run("backup", tmp_path / "a", "--to", tmp_path / "b")
    assert (code, "is not empty: give a new directory" in err) == (2, True)
