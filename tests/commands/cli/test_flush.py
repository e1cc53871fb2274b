def test_flush_begins_the_next_file(run, feed, tmp_path):
    feed(tmp_path, range(1, 4))
    assert run("flush", tmp_path) == (0, "the active file is binlog-000001.ibb, GTID state [0-1-3]\n", "")
    code, _, err = run("flush", tmp_path, "--delete-domain", "0")
    assert (code, "binlog files may contain gtids from the domain ('0') being deleted" in err) == (2, True)


def test_a_domain_is_forgotten_once_its_files_are_purged(run, feed, tmp_path):
    feed(tmp_path, range(1, 4))
    run("flush", tmp_path)
    run("purge", tmp_path, "--to", "binlog-000001.ibb")
    code, out, _ = run("flush", tmp_path, "--delete-domain", "0", "--delete-domain", "9")
    assert (code, out) == (
        0,
        "domain 9 is not in the GTID state\nthe active file is binlog-000002.ibb, GTID state []\n",
    )
