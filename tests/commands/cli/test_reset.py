def test_reset_asks_to_be_told_twice(run, feed, tmp_path):
    feed(tmp_path, range(1, 4))
    code, _, err = run("reset", tmp_path)
    assert (code, "add --yes to do it" in err) == (2, True)
    expected = (0, "the log begins again with binlog-000000.ibb, GTID state [0-1-7]\n", "")
    assert run("reset", tmp_path, "--yes", "--state", "0-1-7") == expected
