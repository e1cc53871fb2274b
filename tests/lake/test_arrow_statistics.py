"""What is in a log, counted in this process: as the info of a log counts it; Spark is compared in `tests/cli`."""

from __future__ import annotations

import pytest

import ibbmaster
from ibbmaster.info.log_info import log_info
from ibbmaster.lake.arrow_statistics import KINDS, count_log


@pytest.mark.parametrize("name", ["ibb/xa-and-ddl", "ibb/domains", "classic/11.8/domains"])
def test_all_that_the_info_of_a_log_counts_is_counted_alike(fixtures, name):
    with ibbmaster.open(fixtures / name) as log:
        facts = log_info(log)
        found = count_log(log.read_options())

    assert [(one["domain"], one["groups"], one["bytes"]) for one in found["domains"]] == [
        (one["domain"], one["groups"], one["bytes"]) for one in facts["domains"]
    ]
    assert {one["table"]: [one[kind] for kind in KINDS.values()] for one in found["tables"] if one["rows"]} == {
        one["table"]: counts
        for one in facts["tables"]
        if any(counts := [one[kind]["count"] for kind in ("insert", "update", "delete")])
    }
    assert [one["bytes"] for one in found["biggest"]] == [one["bytes"] for one in facts["largest"]]
    assert sum(one["groups"] for one in found["hours"]) == sum(one["groups"] for one in found["domains"])
