"""Which kernels there are, where each is, and which are compiled, kept and loaded together."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class KernelSet(StrEnum):
    """Kernels that are needed together."""

    SERVE = "serve"  # blocks of pages and of traditional files become packets
    IMPORT = "import"  # traditional files become pages
    EXPORT = "export"  # pages become traditional files
    VERIFY = "verify"  # pages and traditional files are checked
    READ = "read"  # events and rows become columns, for Spark
    PRINT = "print"  # rows become lines of text
    SELECT = "select"  # rows become answers


class KernelPart(StrEnum):
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


PARTS: dict[KernelSet, tuple[KernelPart, ...]] = {  # in the order in which they are needed
    KernelSet.SERVE: (KernelPart.PAGES, KernelPart.FILES, KernelPart.CHANGES),
    KernelSet.IMPORT: (KernelPart.CONVERT,),
    KernelSet.EXPORT: (KernelPart.COLLECT, KernelPart.PLACE),
    KernelSet.VERIFY: (KernelPart.CHECK,),
    KernelSet.READ: (KernelPart.COLLECT, KernelPart.COLUMNS),
    KernelSet.PRINT: (KernelPart.COLLECT, KernelPart.COLUMNS, KernelPart.LINES),
    KernelSet.SELECT: (KernelPart.ANSWERS, KernelPart.COLLECT, KernelPart.FOLD),
}
KERNELS: dict[KernelPart, dict[str, str]] = {  # the module of each
    KernelPart.PAGES: {
        "index_chunks": "ibbmaster.kernel.scan",
        "frame_table": "ibbmaster.kernel.groups",
        "skip_table": "ibbmaster.kernel.groups",
        "frame_node": "ibbmaster.kernel.groups",
        "frame_bytes": "ibbmaster.kernel.framing",
        "renumber": "ibbmaster.kernel.framing",
        "pump": "ibbmaster.kernel.pump",
        "pump_nodes": "ibbmaster.kernel.pump",
        "pump_way": "ibbmaster.kernel.pump",
        "find_nodes": "ibbmaster.kernel.node_search",
    },
    KernelPart.FILES: {
        "frame_classic": "ibbmaster.kernel.classic_framing",
        "pump_classic": "ibbmaster.kernel.classic_pump",
    },
    KernelPart.CHANGES: {"change_packets": "ibbmaster.kernel.changing", "leave_out": "ibbmaster.kernel.leaving_out"},
    KernelPart.CONVERT: {"convert_groups": "ibbmaster.kernel.converting", "seal_pages": "ibbmaster.kernel.converting"},
    KernelPart.CHECK: {
        "read_pages": "ibbmaster.kernel.reading",
        "check_table": "ibbmaster.kernel.checking",
        "split_node": "ibbmaster.kernel.checking",
        "check_classic_groups": "ibbmaster.kernel.classic_checking",
        "check_long_group": "ibbmaster.kernel.classic_checking",
    },
    KernelPart.COLLECT: {
        "collect_table": "ibbmaster.kernel.collecting",
        "collect_classic_groups": "ibbmaster.kernel.classic_groups",
        "index_events": "ibbmaster.kernel.collecting",
        "gtid_texts": "ibbmaster.kernel.columns",
        "find_open": "ibbmaster.kernel.rows",
    },
    KernelPart.PLACE: {"place_groups": "ibbmaster.kernel.placing"},
    KernelPart.COLUMNS: {
        "header_columns": "ibbmaster.kernel.columns",
        "copy_strings": "ibbmaster.kernel.columns",
        "write_texts": "ibbmaster.kernel.texts",
        "decode_rows": "ibbmaster.kernel.rows",
    },
    KernelPart.LINES: {"write_heads": "ibbmaster.kernel.lines", "write_lines": "ibbmaster.kernel.lines"},
    KernelPart.ANSWERS: {"write_rows": "ibbmaster.kernel.row_values", "locate_values": "ibbmaster.kernel.row_values"},
    KernelPart.FOLD: {"collect_changes": "ibbmaster.kernel.row_changes"},
}


def parts_of(sets: Iterable[KernelSet | KernelPart]) -> list[KernelPart]:
    """What some sets consist of, each part once, in the order in which they are needed."""
    found: dict[KernelPart, None] = {}
    for one in sets:
        found.update(dict.fromkeys((one,) if isinstance(one, KernelPart) else PARTS[one]))
    return list(found)
