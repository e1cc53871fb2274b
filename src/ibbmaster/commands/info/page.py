"""The content of a log as one page of HTML: it loads nothing, runs nothing, and says no more than the JSON."""

import datetime
import html
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ibbmaster.storage.codec.printable import printable
from .text import size_text, table_bytes

WIDTH, HEIGHT = 960, 160  # of the time line
BAR_MIN = 1.5  # wide, and as high: what is there is seen
SHOWN_MAX = 1000  # rows of a table; the JSON has all
GAPS_SHOWN = 20
KINDS = ("insert", "update", "delete", "ddl")
SECURITY = "default-src 'none'; style-src 'unsafe-inline'"

STYLE = Path(__file__).with_name("page.css")


def page(facts: dict[str, Any]) -> str:
    """The page for `log_info`; with `seek` in it also where a replica begins, and how that was found."""
    parts = [
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
        f'content="{SECURITY}"><meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<title>{_text(facts['path'])}</title><style>\n{STYLE.read_text()}</style></head><body>",
        f"<h1>{_text(facts['path'])}</h1>",
        *_head(facts),
        *_time_line(facts["time_line"]),
        *_files(facts),
        *_seek(facts.get("seek")),
        *_domains(facts["domains"]),
        *_tables(facts["tables"]),
        *_largest(facts["largest"]),
        *_types(facts["event_types"]),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def _text(value: object) -> str:
    return html.escape(printable(str(value)))


def _head(facts: dict[str, Any]) -> Iterator[str]:
    first, last, pause = facts["first"], facts["last"], facts["longest_pause"]
    rows: list[tuple[str, object]] = [
        ("format", facts["format"]),
        ("checksums", facts["checksums"]),
        ("event groups", f"{facts['groups']:,}"),
        ("events", f"{facts['events']:,}, {size_text(facts['bytes'])}"),
        ("GTID position", facts["gtid_position"] or "nothing is logged"),
    ]
    if first is not None:
        rows += [("first", f"{first['time']}  {first['gtid']}"), ("last", f"{last['time']}  {last['gtid']}")]
    if pause is not None:
        rows.append(("longest pause", f"{pause['seconds']:,} s from {pause['from']}, after {pause['after']}"))
    if facts["clock_steps_back"]:
        rows.append(("clock went back", f"{facts['clock_steps_back']:,} times; earliest {facts['earliest']}"))
    servers = ", ".join(f"MariaDB {one['version']} ({one['starts']} starts)" for one in facts["servers"])
    rows += [("written by", servers)] if servers else []
    rows += [("compressed events", f"{facts['compressed_events']:,}"), ("annotations", f"{facts['annotations']:,}")]
    yield "<dl>" + "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in rows) + "</dl>"


def _time_line(line: dict[str, Any]) -> Iterator[str]:
    spans = line["spans"]
    if not spans:
        return
    span_s = line["span_seconds"]
    times = [_seconds(span["from"]) for span in spans]
    count = (times[-1] - times[0]) // span_s + 1
    step, most = WIDTH / count, max(span["bytes"] for span in spans) or 1
    yield f"<h2>Bytes over time</h2><p class=note>{len(spans)} spans of {span_s:,} s with transactions</p>"
    yield f'<svg viewBox="0 0 {WIDTH} {HEIGHT + 16}" role="img" aria-label="bytes over time">'
    for span, since in zip(spans, times, strict=True):
        height = max(HEIGHT * span["bytes"] / most, BAR_MIN)
        x, width = (since - times[0]) // span_s * step, max(step - 0.5, BAR_MIN)
        title = f"{span['from']}: {span['groups']:,} groups, {size_text(span['bytes'])}"
        yield (
            f'<rect x="{x:.1f}" y="{HEIGHT - height:.1f}" width="{width:.1f}" height="{height:.1f}">'
            f"<title>{_text(title)}</title></rect>"
        )
    yield f'<text x="0" y="{HEIGHT + 13}">{_text(spans[0]["from"])}</text>'
    yield f'<text x="{WIDTH}" y="{HEIGHT + 13}" text-anchor="end">{_text(spans[-1]["from"])}</text>'
    yield f'<text x="{WIDTH}" y="10" text-anchor="end">{_text(size_text(most))}</text></svg>'


def _seconds(text: str) -> int:
    return int(datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z").timestamp())


def _files(facts: dict[str, Any]) -> Iterator[str]:
    yield "<h2>Files</h2>"
    largest = max((file["bytes"] for file in facts["files"]), default=0) or 1
    marks = _marks(facts.get("seek"))
    rows = []
    for file in facts["files"]:
        state = f"<span class=bad>{_text(file['state'])}</span>" if "problem" in file else _text(file["state"])
        problem = f"<br><span class=bad>{_text(file['problem'])}</span>" if "problem" in file else ""
        share = f'<div class=share><i style="width:{100 * file["bytes"] / largest:.1f}%"></i></div>'
        mark = f" <span class=mark>{_text(marks[file['name']])}</span>" if file["name"] in marks else ""
        begins = "" if file["begins_after"] is None else f"[{file['begins_after']}]"
        rows.append([_text(file["name"]) + mark, size_text(file["bytes"]) + share, state + problem, _text(begins)])
    yield _table(["file", "size", "state", "begins after"], rows)
    if facts["redo_log"] is not None:
        yield f"<p>{_text(facts['redo_log']['text'])}</p>"


def _marks(seek: dict[str, Any] | None) -> dict[str, str]:
    """By file, which steps of a search looked there, and where it ended."""
    if seek is None or "file" not in seek:
        return {}
    looked: dict[str, list[str]] = {}
    for number, step in enumerate(seek.get("steps", ()), start=1):
        looked.setdefault(step.partition(" ")[0], []).append(str(number))
    looked.setdefault(seek["file"], []).append("start")
    return {name: f"← {', '.join(steps)}" for name, steps in looked.items()}


def _seek(seek: dict[str, Any] | None) -> Iterator[str]:
    if seek is None:
        return
    yield f"<h2>Where a replica at [{_text(seek['gtid_position'])}] begins</h2>"
    if "refused" in seek:
        yield f"<p class=bad>refused: {_text(seek['refused'])}: {_text(seek['explanation'])}</p>"
        return
    yield "<ol>" + "".join(f"<li>{_text(step)}</li>" for step in seek.get("steps", ())) + "</ol>"
    place = f"page {seek['page']}" if "page" in seek else f"offset {seek['file_offset']}"
    reads = f"; {seek['page_reads']} pages read" if "page_reads" in seek else ""
    yield f"<p>start at <b>{_text(seek['file'])}</b> {place}, state [{_text(seek['gtid_state'])}]{reads}</p>"


def _domains(domains: Sequence[dict[str, Any]]) -> Iterator[str]:
    rows = []
    for one in domains:
        servers = ", ".join(str(server["server_id"]) for server in one["servers"])
        notes = [
            f"{gap['missing']:,} missing between {gap['after']} and {gap['before']}" for gap in one["gaps"][:GAPS_SHOWN]
        ]
        notes += [f"… {one['gap_count'] - GAPS_SHOWN:,} more gaps"] * (one["gap_count"] > GAPS_SHOWN)
        notes += [f"{one['steps_back']:,} not newer than the one before"] * bool(one["steps_back"])
        numbers = [f"{one[name]:,}" for name in ("groups", "bytes")]
        texts = [_text(one["first"]), _text(one["last"]), _text(servers), "<br>".join(map(_text, notes))]
        rows.append([str(one["domain"]), *numbers, *texts])
    names = ["domain", "groups", "bytes", "first", "last", "servers", "gaps"]
    yield from _section("GTID domains", names, rows, numbers=range(3))


def _tables(tables: Sequence[dict[str, Any]]) -> Iterator[str]:
    order = sorted(tables, key=lambda one: (-table_bytes(one), one["table"]))
    rows = []
    for one in order[:SHOWN_MAX]:
        counts = [f"{one[kind]['count']:,}" if one[kind] else "?" for kind in KINDS]
        note = "" if one["column_names"] else "no column names"
        rows.append([_text(one["table"]), *counts, f"{table_bytes(one):,}", note])
    names = ["table", "inserts", "updates", "deletes", "DDL", "bytes", ""]
    yield from _section("Tables", names, rows, numbers=range(1, 6))
    if len(order) > SHOWN_MAX:
        yield f"<p class=note>… and {len(order) - SHOWN_MAX:,} tables more: --json has all</p>"


def _largest(groups: Sequence[dict[str, Any]]) -> Iterator[str]:
    rows = []
    for one in groups:
        gtid, *texts = map(_text, (one["gtid"], one["time"], ", ".join(one["tables"])))
        rows.append([gtid, f"{one['bytes']:,}", f"{one['events']:,}", *texts])
    names = ["GTID", "bytes", "events", "time", "tables"]
    yield from _section("Largest transactions", names, rows, numbers=range(1, 3))


def _types(types: Sequence[dict[str, Any]]) -> Iterator[str]:
    rows = [[_text(one["type"]), f"{one['events']:,}", f"{one['bytes']:,}"] for one in types]
    yield from _section("Event types", ["type", "events", "bytes"], rows, numbers=range(1, 3))


def _section(title: str, names: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: range) -> Iterator[str]:
    if rows:
        yield f"<h2>{title}</h2>"
        yield _table(names, rows, numbers=numbers)


def _table(names: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: range = range(0)) -> str:
    kind = [' class="n"' if number in numbers else "" for number in range(len(names))]
    head = "".join(f"<th{kind[number]}>{_text(name)}</th>" for number, name in enumerate(names))
    body = "\n".join(
        "<tr>" + "".join(f"<td{kind[number]}>{cell}</td>" for number, cell in enumerate(row)) + "</tr>" for row in rows
    )
    return f"<div class=wide><table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>"
