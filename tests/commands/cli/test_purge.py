import json

import pytest


def test_purge_says_what_went_and_what_could_not(run, feed, tmp_path):
    feed(tmp_path, range(1, 150))
    code, out, _ = run("purge", tmp_path, "--to", "binlog-000002.ibb", "--json")
    assert (code, json.loads(out)["removed"]) == (0, ["binlog-000000.ibb", "binlog-000001.ibb"])
    code, out, _ = run("purge", tmp_path, "--max-total", "0")
    assert code == 1
    assert "is in use" in out
    assert run("purge", tmp_path, "--before", "2001-01-01")[1].startswith("0 files removed")


PURGES_REFUSED = {
    "a size that is none": (["--max-total", "many"], "'many' is not a size: expected a number of bytes, as 64M"),
    "a size that is not ASCII": (["--max-total", "٣M"], "expected a number of bytes"),
}


@pytest.mark.parametrize(("options", "message"), PURGES_REFUSED.values(), ids=PURGES_REFUSED)
def test_a_purge_that_makes_no_sense_is_refused(run, feed, tmp_path, options, message):
    feed(tmp_path, range(1, 4))
    code, _, err = run("purge", tmp_path, *options)
    assert (code, message in err) == (2, True)
