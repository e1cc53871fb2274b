"""Traditional files made into `.ibb` files, by their paths."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ibbmaster.logs.classic.binlog import ClassicReader
from ibbmaster.logs.classic.convert import ImportReport, import_groups
from ibbmaster.logs.classic.series import find_series
from ibbmaster.storage.disk.interface import Disk


def import_classic(paths: Iterable[Path], disk: Disk, **options: Any) -> ImportReport:
    return import_groups(ClassicReader(find_series(paths)), disk, **options)
