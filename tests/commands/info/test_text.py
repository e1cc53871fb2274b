from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.commands.info.log_info import log_info
from ibbmaster.commands.info.text import size_text, text_lines

FIXTURES = Path(__file__).parents[3] / "fixtures"


def test_a_log_in_lines():
    with ibbmaster.open(FIXTURES / "classic/10.11/domains") as log:
        facts = log_info(log.path, log.engine, log.stored)
    lines = list(text_lines(facts))

    assert lines[1].startswith("155 event groups, 745 events, 37.7 KiB of events; GTID position [0-2-27,")
    assert lines[2] == "from 2026-11-20T20:57:15Z (0-1-1) to 2026-11-20T20:57:21Z (4294967295-77-32)"
    assert "domain 1: 999 missing between 1-1-32 and 1-1-1032" in lines
    assert any(line.split()[:6] == ["dom_2.t", "32", "0", "0", "1", "1881"] for line in lines)


def test_control_characters_are_shown_as_numbers():
    with ibbmaster.open(FIXTURES / "ibb/domains") as log:
        facts = log_info(log.path, log.engine, log.stored)
    facts["tables"][0]["table"] = "d.\x1b[31mred\udcff\u202e"
    facts["path"] = "a\nb"
    text = "\n".join(text_lines(facts))

    assert "d.\\u001b[31mred\\udcff\\u202e" in text
    assert text.startswith("a\\u000ab: ibb, ")
    assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 << 30, "5.0 GiB"), (1 << 60, "1048576.0 TiB")],
)
def test_sizes_are_short(size, text):
    assert size_text(size) == text
