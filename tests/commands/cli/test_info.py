import json
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parents[3] / "fixtures"


def test_a_log_of_either_format(run):
    code, out, err = run("info", FIXTURES / "ibb/domains")
    assert (code, err) == (0, "")
    assert "event groups, " in out
    code, out, _ = run("info", FIXTURES / "classic/10.11/domains/binlog.000002", "--json")
    facts = json.loads(out)
    assert (code, facts["format"], [file["name"] for file in facts["files"]]) == (0, "traditional", ["binlog.000002"])


def test_one_file_of_pages(run):
    code, out, _ = run("info", FIXTURES / "ibb/types/binlog-000001.ibb", "--json")
    facts = json.loads(out)
    assert (code, [file["name"] for file in facts["files"]]) == (0, ["binlog-000001.ibb"])
    assert 0 < facts["groups"] < json.loads(run("info", FIXTURES / "ibb/types", "--json")[1])["groups"]


def test_a_part_of_a_log(run):
    code, out, err = run("info", FIXTURES / "ibb/xa-and-ddl", "--after", "0-1-20", "--until", "0-1-30", "--json")
    facts = json.loads(out)
    assert (code, err) == (0, "")
    assert (facts["groups"], facts["first"]["gtid"], facts["last"]["gtid"]) == (10, "0-1-21", "0-1-30")
    assert (facts["gtid_position"], facts["gtid_state"]) == ("0-1-30", "0-1-30")
    code, out, _ = run("info", FIXTURES / "ibb/xa-and-ddl", "--only", "shop.parent", "--kinds", "rows", "--json")
    assert [table["table"] for table in json.loads(out)["tables"] if table["insert"]["count"]] == ["shop.parent"]


@pytest.mark.parametrize("name", ["missing", "text", "empty"])
def test_what_is_no_log_is_one_line(run, tmp_path, name):
    (tmp_path / "text").write_text("no binlog")
    (tmp_path / "empty").mkdir()
    code, out, err = run("info", tmp_path / name)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert name in err


@pytest.mark.parametrize("name", ["ibb/domains/binlog-000000.ibb", "classic/10.11/checksum-switch/binlog.000003"])
def test_damaged_files_are_shown_or_refused_in_one_line(run, damaged, name):
    for path in damaged(FIXTURES / name, Path(name).name, copies=25, seed=7):
        code, out, err = run("info", path)
        assert (code, bool(out), err.count("\n")) in ((0, True, 0), (2, False, 1)), (out, err)


def test_a_page_and_the_path_of_a_search(run, tmp_path):
    path = tmp_path / "page.html"
    assert run("info", FIXTURES / "ibb/types", "--html", path, "--seek", "0-1-100") == (0, "", "")
    assert "start at <b>binlog-000001.ibb</b> page 8" in path.read_text()
    code, out, _ = run("info", FIXTURES / "ibb/types", "--json", "--seek", "0-1-100")
    assert (code, json.loads(out)["seek"]["page"]) == (0, 8)
    assert run("info", FIXTURES / "ibb/types", "--seek", "0-1-100")[1].endswith("state [0-1-88]; 7 pages read\n")


@pytest.mark.parametrize("arguments", [("missing",), (FIXTURES / "ibb/types", "--seek", "x")], ids=["log", "position"])
def test_what_fails_leaves_the_page_that_was_there(run, tmp_path, arguments):
    path = tmp_path / "page.html"
    path.write_text("before")
    code, out, err = run("info", *arguments, "--html", path)
    assert (code, out, err.count("\n"), path.read_text()) == (2, "", 1, "before")
    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]
