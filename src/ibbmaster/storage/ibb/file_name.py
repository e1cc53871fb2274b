"""Names of binlog files: `binlog-000000.ibb` and up. Rules: protocol/ibb/file-header.md."""

import re

FILE_NO_MAX = 2**64 - 2  # the largest 64-bit number means "none"
_NAME = re.compile(r"binlog-([0-9]{6}|[1-9][0-9]{6,19})\.ibb", re.ASCII)


def format_file_name(file_no: int) -> str:
    """At least six digits."""
    return f"binlog-{file_no:06d}.ibb"


def parse_file_name(name: str) -> int | None:
    """None if `format_file_name` makes no such name. MariaDB lists names with other numbers of digits, but opens only
    these. Source: MariaDB 12.3, innodb_binlog.cc, is_binlog_name()."""
    match = _NAME.fullmatch(name)
    if match is None or (file_no := int(match[1])) > FILE_NO_MAX:
        return None
    return file_no
