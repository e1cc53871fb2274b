"""A shop whose tables change while it sells, written to a real server in two parts."""

import shutil
from collections.abc import Callable
from pathlib import Path

from ibbmaster.testkit.mariadb_server import RealPrimary
from lanes.sql import run, sql_beside

_SQL = sql_beside(__file__)
BEFORE = _SQL["before"]
TABLES = ("shop.orders", "shop.items", "shop.kinds", "shop.stock", "shop.copied")
AFTER = _SQL["after"]


def end(number: int, mark: str) -> str:
    """The statement whose row has a mark that a consumer may stop at."""
    return f"INSERT INTO shop.stock VALUES ('{number}', {number}), ('{mark}', 0)"


class Shop:
    """A real primary with a shop in it, and its binlog as `.ibb` files that grow behind it."""

    def __init__(self, real: RealPrimary, directory: Path, import_files: Callable[..., None]) -> None:
        self.real = real
        self.log = directory / "log"
        self._copies = directory / "classic"
        self._import = import_files
        self._copies.mkdir()

    def run(self, *statements: str) -> None:
        run(self.real, *statements, "FLUSH BINARY LOGS")

    def bring(self, count: int) -> None:
        names = [row[0] for row in self.real.sql("SHOW BINARY LOGS")][:count]
        files = [self._copies / name for name in names]
        for file in files:
            shutil.copy(self.real.data / file.name, file)
        self._import(files, self.log, "--max-file-size", "1M", *(["--append"] if self.log.exists() else []))
