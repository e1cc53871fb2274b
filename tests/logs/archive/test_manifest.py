"""What the manifest of an archive says, and what is refused of one that someone changed."""

import itertools
import json
from dataclasses import asdict, replace

import pytest

from ibbmaster.errors import StoreError
from ibbmaster.gtid import GtidState
from ibbmaster.logs.archive import manifest
from ibbmaster.logs.archive.manifest import (
    Head,
    Segment,
    chained,
    decode_head,
    decode_page,
    encode_head,
    page_number,
    segment_name,
    segment_number,
)

SHA = "0" * 64


def entry_of(number):
    return Segment(
        number=number, name=f"{number:08}_0-1-{number}.zst", before=f"0-1-{number - 1}", after=f"0-1-{number}",
        first_time=number, last_time=number, groups=2, bytes=10, size=100, sha256=SHA, chain=SHA,
    )  # fmt: skip


def head_of(count):
    head, pages = Head(server_version="11.8.6-MariaDB-log", begin=""), {}
    for number in range(1, count + 1):
        head = head.with_segment(entry_of(number))
        if (sealed := head.sealed()) is not None:
            head, page, pages[page.number] = sealed
    return head, pages


@pytest.fixture(autouse=True)
def of_three(monkeypatch):
    monkeypatch.setattr(manifest, "PAGE_ENTRIES", 3)


@pytest.mark.parametrize("count", range(12))
def test_a_head_is_what_it_was_and_each_entry_is_in_the_head_or_one_page(count):
    head, pages = head_of(count)
    assert decode_head(encode_head(head), "head") == head
    assert len(head.entries) <= 3 < count + 4
    for number in range(1, count + 1):
        page = head.page_of(number)
        entries = head.entries if page is None else decode_page(pages[page.number], page, "page")
        assert entry_of(number) in entries
    assert (head.end, head.next_number) == (f"0-1-{count}" if count else "", count + 1)


def test_a_page_has_the_sums_and_ends_of_its_entries():
    head, _ = head_of(4)
    [page] = head.pages
    assert (page.number, page.before, page.first_time, page.last_time, page.groups, page.bytes) == (
        1,
        "0-1-0",
        1,
        3,
        6,
        30,
    )


def test_a_pruned_head_names_no_page_without_a_kept_segment():
    head, _ = head_of(11)
    assert [page.number for page in head.pages] == [1, 4, 7]
    assert [[page.number for page in head.pruned(first).pages] for first in (1, 3, 4, 6, 7, 10)] == [
        [1, 4, 7], [1, 4, 7], [4, 7], [4, 7], [7], [],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("state", "name"),
    [
        ("", "00000007_.zst"),
        ("0-1-5", "00000007_0-1-5.zst"),
        ("0-1-5,0-2-6,3-1-1", "00000007_0-2-6_3-1-1.zst"),
        (",".join(f"{one}-1-1000000" for one in range(20)), "00000007_61ec5f4d86ac1e8c.zst"),
    ],
)
def test_the_name_of_a_segment_says_what_it_holds_or_is_a_hash_of_that(state, name):
    found = segment_name(7, GtidState.parse(state))
    assert found == name or len(name) == len(found) == 29
    assert segment_number(found) == 7 or not state


@pytest.mark.parametrize("name", ["", "archive.json", "7_0-1-1.zst", "00000007_0-1-1.zst.tmp", "00000007_a/b.zst"])
def test_other_names_are_no_segments_and_no_pages(name):
    assert segment_number(name) is page_number(name) is None


def test_the_chain_is_of_all_that_came_before():
    assert chained(chained(SHA, "a"), "b") != chained(chained(SHA, "b"), "a")
    assert Head(server_version="", begin="0-1-1").end_chain != Head(server_version="", begin="0-1-2").end_chain


def changed(**changes):
    return json.dumps({**json.loads(encode_head(head_of(5)[0])), **changes}).encode()


ENTRY = asdict(entry_of(5))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "it is not JSON"),
        (b"\xff", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"[]", "it is not a JSON object"),
        (b"{}", "expected the head of an archive, 'ibbmaster archive 1'"),
        (changed(format="ibbmaster archive 2"), "expected the head of an archive, 'ibbmaster archive 1'"),
        (changed(entries=None), "is damaged"),
        (changed(entries=[1]), "is damaged"),
        (changed(entries=[], first=2), "its first segment is 2"),
        (changed(entries=[ENTRY, ENTRY]), "its entries are not in order"),
        (changed(entries=[{**ENTRY, "number": "5"}]), "number is '5'"),
        (changed(entries=[{**ENTRY, "number": 6}]), "the name '00000005_0-1-5.zst' or its SHA-256 cannot be right"),
        (changed(entries=[{**ENTRY, "name": "../../00000005_x.zst"}]), "cannot be right"),
        (changed(entries=[{**ENTRY, "sha256": "x"}]), "or its SHA-256 cannot be right"),
        (changed(entries=[{**ENTRY, "before": "0-1"}]), "is not a valid GTID"),
        (changed(entries=[{"number": 5}]), "is damaged"),
        (changed(first=0), "its first segment is 0"),
        (changed(first=99), "its first segment is 99"),
        (changed(first="1"), "first is '1'"),
        (changed(begin="x"), "is not a valid GTID"),
        (changed(checked_at="now"), "checked_at is 'now'"),
        (changed(server_version=None), "server_version is None"),
    ],
    ids=itertools.count(),
)
def test_a_head_that_someone_changed_is_refused_in_one_line(data, problem):
    with pytest.raises(StoreError) as refused:
        decode_head(data, "s3://b/archive.json")
    assert problem in str(refused.value)
    assert str(refused.value).startswith("s3://b/archive.json: ")
    assert "\n" not in str(refused.value)


def test_pages_without_newer_entries_are_refused():
    with pytest.raises(StoreError, match="its entries are not in order"):
        decode_head(encode_head(replace(head_of(4)[0], entries=())), "")


def test_fields_of_later_versions_are_left_out():
    entries = [{**entry, "more": 1} for entry in json.loads(changed())["entries"]]
    assert decode_head(changed(later=[1], entries=entries), "") == head_of(5)[0]


def test_a_page_must_be_the_one_that_the_head_names():
    head, pages = head_of(4)
    [page] = head.pages
    with pytest.raises(StoreError, match=r"p: its SHA-256 is [0-9a-f]{64}, and the head of the archive says"):
        decode_page(pages[1] + b" ", page, "p")
    for data in (b"{}", b'{"entries": []}', json.dumps({"entries": [ENTRY]}).encode()):
        with pytest.raises(StoreError, match="p: the manifest of the archive is damaged"):
            decode_page(data, replace(page, sha256=manifest._sha256(data)), "p")
