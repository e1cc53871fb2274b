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


def _of(**modules: str) -> dict[str, str]:
    """The module of each kernel, of the kernels of each module."""
    return {kernel: f"ibbmaster.kernel.{module}" for module, kernels in modules.items() for kernel in kernels.split()}


KERNELS: dict[KernelPart, dict[str, str]] = {  # the module of each
    KernelPart.PAGES: _of(
        scan="index_chunks",
        groups="frame_table skip_table frame_node",
        framing="frame_bytes renumber",
        pump="pump pump_nodes pump_way",
        node_search="find_nodes",
    ),
    KernelPart.FILES: _of(classic_framing="frame_classic", pump="pump_classic"),
    KernelPart.CHANGES: _of(changing="change_packets leave_out"),
    KernelPart.CONVERT: _of(converting="convert_groups seal_pages"),
    KernelPart.CHECK: _of(
        checking="read_pages check_table split_node", classic_groups="check_classic_groups check_long_group"
    ),
    KernelPart.COLLECT: _of(
        collecting="collect_table index_events",
        classic_groups="collect_classic_groups",
        columns="gtid_texts",
        rows="find_open",
    ),
    KernelPart.PLACE: _of(placing="place_groups"),
    KernelPart.COLUMNS: _of(columns="header_columns copy_strings", digits="write_texts", rows="decode_rows"),
    KernelPart.LINES: _of(lines="write_heads write_lines"),
    KernelPart.ANSWERS: _of(row_values="write_rows locate_values"),
    KernelPart.FOLD: _of(row_changes="collect_changes"),
}


def parts_of(sets: Iterable[KernelSet | KernelPart]) -> list[KernelPart]:
    """What some sets consist of, each part once, in the order in which they are needed."""
    found: dict[KernelPart, None] = {}
    for one in sets:
        found.update(dict.fromkeys((one,) if isinstance(one, KernelPart) else PARTS[one]))
    return list(found)
