"""Something that does one of several things to a real server at random, again and again."""

import random
from typing import Any

from ibbmaster.testkit.mariadb_server import RealServer


class Choosing:
    """Chooses by `_rng` what it does and which statement it runs; what it did last is in `statements`."""

    _run: Any

    def __init__(self, server: RealServer, rng: random.Random) -> None:
        self._connection, self._rng = server.connect(), rng
        self.statements: list[str] = []

    def close(self) -> None:
        self._connection.close()

    def _asked(self, sql: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def _do_one_of(self, work: str, *arguments: Any) -> None:
        """Call one of some methods, each named with its weight."""
        pairs = [one.split("=") for one in work.split()]
        (chosen,) = self._rng.choices([name for name, _ in pairs], [int(weight) for _, weight in pairs])
        getattr(self, chosen)(*arguments)

    def _run_one_of(self, *statements: str) -> None:
        self._run(self._rng.choice(statements))
