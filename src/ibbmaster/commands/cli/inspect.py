"""`ibbmaster inspect`: what is in a file, page by page or event by event."""

import argparse
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ibbmaster.api.file_states import traditional_facts
from ibbmaster.errors import ConfigurationError, FormatError
from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.logs.classic.series import starts_like_a_binlog
from ibbmaster.logs.log.event_groups import decode_first_event
from ibbmaster.position import LOG_START, LogPosition
from ibbmaster.primary.server.listing import StoredListing
from ibbmaster.replication.event.header import decode_event_header
from ibbmaster.replication.event.split import event_heads
from ibbmaster.replication.event.types import type_name
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.storage.codec.printable import printable
from ibbmaster.storage.disk.place import open_disk
from ibbmaster.storage.ibb.chunk import Chunk, RecordType
from ibbmaster.storage.ibb.commit import decode_commit_header
from ibbmaster.storage.ibb.file_header import decode_file_header
from ibbmaster.storage.ibb.file_name import format_file_name, parse_file_name
from ibbmaster.storage.ibb.gtid_state import decode_gtid_state
from ibbmaster.storage.ibb.oob import decode_oob_node
from ibbmaster.storage.ibb.page import PAGE_SIZE, verify_page
from ibbmaster.storage.ibb.scan import page_chunks


def run(args: argparse.Namespace) -> int:
    file_no = parse_file_name(args.file.name)
    if file_no is not None:
        if args.offset is not None:
            raise ConfigurationError(f"{args.file.name} has pages: --page N")
        disk = open_disk(args.file.parent)
        lines = _page(disk, file_no, args.page) if args.page is not None else _file(disk, file_no)
    elif not args.file.is_file() or not starts_like_a_binlog(args.file):
        raise ConfigurationError(
            f"{args.file.name} is not the name of a binlog file: expected one like binlog-000000.ibb, "
            "or a traditional file"
        )
    elif args.page is not None:
        raise ConfigurationError(f"{args.file.name} has no pages: --offset N lists events")
    else:
        lines = _events(args.file, args.offset) if args.offset is not None else _traditional(args.file)
    for line in lines:
        shown = "  ".join(f"{key.replace('_', ' ')} {value}" for key, value in line.items())
        print(json.dumps(line) if args.json else printable(shown))
    return 0


def _traditional(path: Path) -> Iterator[dict[str, Any]]:
    counts: dict[str, int] = {}
    gtids: list[Any] = []
    with closing(ClassicBinlog([path])) as engine:
        [found] = engine.file_states()
        yield traditional_facts(found)
        with closing(engine.stored_groups(engine.start_of_file())) as groups:
            while (group := groups.next_group()) is not None:
                for event in event_heads(group.gtid_event, group.body):
                    name = type_name(decode_event_header(event).event_type)
                    counts[name] = counts.get(name, 0) + 1
                if group.gtid is not None:
                    gtids = [*gtids[:1], group.gtid]
        yield {f"{name.lower()}_events": count for name, count in sorted(counts.items())}
        if gtids:
            yield {"first_gtid": str(gtids[0]), "last_gtid": str(gtids[-1])}
        if engine.unfinished is not None:
            yield {"note": engine.unfinished}


def _events(path: Path, offset: int) -> Iterator[dict[str, Any]]:
    """A traditional file's events from an offset on, as SHOW BINLOG EVENTS lists them."""
    with closing(ClassicBinlog([path])) as engine:
        [file] = engine.files()
        if offset < 0:
            raise ConfigurationError(f"{file.name} has no offset {offset}: expected one from 4 to {file.size}")
        try:
            rows = StoredListing(engine).rows(file, offset)
        except RefusedError:
            raise ConfigurationError(f"{file.name}: no event begins at offset {offset}") from None
        for row in rows:
            yield {
                "offset": row.position,
                "type": row.event_type,
                "server_id": row.server_id,
                "end": row.end_position,
                "info": row.info,
            }


def _file(disk: Any, file_no: int) -> Iterator[dict[str, Any]]:
    yield from _page(disk, file_no, 0)
    counts: dict[str, int] = {}
    used = 0
    first_gtid = last_gtid = None
    page_no = 1
    while (page := _read_page(disk, file_no, page_no)) is not None:
        chunks = list(page_chunks(memoryview(page), file_no=file_no, page_no=page_no))
        used += bool(chunks)
        for chunk in chunks:
            if chunk.is_first:
                name = RecordType(chunk.record_type).name
                counts[name] = counts.get(name, 0) + 1
                gtid = _gtid(chunk)
                if gtid is not None:
                    first_gtid, last_gtid = first_gtid or gtid, gtid
        page_no += 1
    records = {f"{name.lower()}_records": count for name, count in sorted(counts.items())}
    yield {"pages": page_no, "pages_with_data": used, **records}
    if first_gtid is not None:
        yield {"first_gtid": str(first_gtid), "last_gtid": str(last_gtid)}


def _page(disk: Any, file_no: int, page_no: int) -> Iterator[dict[str, Any]]:
    name = format_file_name(file_no)
    count = disk.size(name) // PAGE_SIZE
    page = _read_page(disk, file_no, page_no) if 0 <= page_no < count else None
    if page is None:
        allowed = f"expected one from 0 to {count - 1}" if count else "it has none"
        raise ConfigurationError(f"{name} has no page {page_no}: {allowed}")
    if page_no == 0:
        header = decode_file_header(page, file_no=file_no)
        if header is None:
            yield {"page": 0, "holds": "nothing: the file is pre-allocated and not used yet"}
        else:
            yield {"page": 0, **asdict(header)}
        return
    for chunk in page_chunks(memoryview(page), file_no=file_no, page_no=page_no):
        yield {"page": page_no, "offset": chunk.page_offset, **_described(chunk)}


def _read_page(disk: Any, file_no: int, page_no: int) -> bytes | None:
    page: bytes = disk.read(format_file_name(file_no), page_no * PAGE_SIZE, PAGE_SIZE)
    if len(page) < PAGE_SIZE:
        return None
    verify_page(page, LogPosition.on_page(file_no, page_no))
    return page


def _described(chunk: Chunk) -> dict[str, Any]:
    name = RecordType(chunk.record_type).name.lower().replace("_", " ")
    parts = {(True, True): "whole", (True, False): "begins", (False, False): "goes on"}
    line: dict[str, Any] = {"record": name, "part": parts.get((chunk.is_first, chunk.is_last), "ends")}
    nowhere = LogPosition.on_page(0, 0)
    try:
        if chunk.is_first and chunk.record_type == RecordType.GTID_STATE and chunk.is_last:
            line["gtid_state"] = ",".join(map(str, decode_gtid_state(chunk.data, nowhere).gtids))
        elif chunk.is_first and chunk.record_type == RecordType.OOB_DATA:
            line["node"] = decode_oob_node(chunk.data, nowhere)[0].node_index
        elif (gtid := _gtid(chunk)) is not None:
            line["gtid"] = str(gtid)
    except FormatError:
        line["header"] = "cut here, or unreadable"
    line["bytes"] = len(chunk.data)
    return line


def _gtid(chunk: Chunk) -> Any:
    """Of a commit record whose first chunk holds it whole."""
    if chunk.record_type != RecordType.COMMIT or not chunk.is_first:
        return None
    try:
        _, size = decode_commit_header(chunk.data, LogPosition.on_page(0, 0))
        return decode_first_event(bytes(chunk.data), size, LOG_START)[0]
    except FormatError:
        return None
