"""Which kernels there are, where each is, and which are compiled, kept and loaded together."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class KernelSet(StrEnum):
    """Kernels that are needed together."""

    SERVE = "serve"  # blocks of pages and of traditional files become packets
    IMPORT = "import"  # traditional files become pages
    EXPORT = "export"  # pages become traditional files
    VERIFY = "verify"  # pages are checked
    READ = "read"  # events and rows become columns, for Spark
    PRINT = "print"  # rows become lines of text
    SELECT = "select"  # rows become answers


class Part(StrEnum):
    """Kernels that are compiled and kept together, as one object file."""

    PAGES = "pages"
    FILES = "files"
    CHANGES = "changes"
    CONVERT = "convert"
    CHECK = "check"
    COLLECT = "collect"
    PLACE = "place"
    COLUMNS = "columns"
    LINES = "lines"
    ANSWERS = "answers"
    FOLD = "fold"


PARTS: dict[KernelSet, tuple[Part, ...]] = {  # in the order in which they are needed
    KernelSet.SERVE: (Part.PAGES, Part.FILES, Part.CHANGES),
    KernelSet.IMPORT: (Part.CONVERT,),
    KernelSet.EXPORT: (Part.COLLECT, Part.PLACE),
    KernelSet.VERIFY: (Part.CHECK,),
    KernelSet.READ: (Part.COLLECT, Part.COLUMNS),
    KernelSet.PRINT: (Part.COLLECT, Part.COLUMNS, Part.LINES),
    KernelSet.SELECT: (Part.ANSWERS, Part.COLLECT, Part.FOLD),
}
KERNELS: dict[Part, dict[str, str]] = {  # the module of each
    Part.PAGES: {
        "index_chunks": "scan",
        "frame_table": "groups",
        "skip_table": "groups",
        "frame_node": "groups",
        "frame_bytes": "framing",
        "renumber": "framing",
        "pump": "pump",
        "pump_nodes": "pump",
        "find_nodes": "node_search",
    },
    Part.FILES: {"frame_classic": "classic_framing", "pump_classic": "classic_pump"},
    Part.CHANGES: {"change_packets": "changing", "leave_out": "leaving_out"},
    Part.CONVERT: {"convert_groups": "converting"},
    Part.CHECK: {"check_table": "checking"},
    Part.COLLECT: {
        "collect_table": "collecting",
        "collect_classic_groups": "classic_groups",
        "index_events": "collecting",
        "gtid_texts": "columns",
        "find_open": "rows",
    },
    Part.PLACE: {"place_groups": "placing"},
    Part.COLUMNS: {
        "header_columns": "columns",
        "copy_strings": "columns",
        "write_texts": "texts",
        "decode_rows": "rows",
    },
    Part.LINES: {"write_heads": "lines", "write_lines": "lines"},
    Part.ANSWERS: {"write_rows": "row_values", "locate_values": "row_values"},
    Part.FOLD: {"collect_changes": "row_changes"},
}


def parts_of(sets: Iterable[KernelSet | Part]) -> list[Part]:
    """What some sets consist of, each part once, in the order in which they are needed."""
    found: dict[Part, None] = {}
    for one in sets:
        found.update(dict.fromkeys((one,) if isinstance(one, Part) else PARTS[one]))
    return list(found)
