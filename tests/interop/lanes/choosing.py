"""Something that does one of several things to a real server at random, again and again."""

import random
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import pymysql

from ibbmaster.testkit.mariadb_server import RealServer
from lanes.answers import RawClient


class Choosing:
    """Chooses by `_rng` what it does and which statement it runs; what it did last is in `statements`."""

    refusals: Collection[int] | None = None  # the errors that a statement may meet, of what does not fit; None: any

    def __init__(self, server: RealServer, rng: random.Random) -> None:
        self._connection, self._rng = server.connect(), rng
        self.statements: list[str] = []

    def close(self) -> None:
        self._connection.close()

    def last_statements(self) -> str:
        return "\n".join(self.statements[-60:])

    def run(self, steps: int, looks: int) -> None:
        """Take so many steps, after some of which, and the last, it looks at the tables; then it ends."""
        chosen = {*self._rng.sample(range(steps), min(steps, looks)), steps - 1}
        for number in range(steps):
            self.step()
            if number in chosen:
                self.look()
        self.close()

    def _asked(self, sql: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def _do_one_of(self, work: str, *arguments: Any) -> None:
        """Call one of some methods, each named with its weight."""
        pairs = [one.split("=") for one in work.split()]
        (chosen,) = self._rng.choices([name for name, _ in pairs], [int(weight) for _, weight in pairs])
        getattr(self, chosen)(*arguments)

    def _run(self, statement: str, values: Sequence[object] = ()) -> bool:
        """Whether a statement was carried out."""
        self.statements.append(statement)
        with self._connection.cursor() as cursor:
            try:
                cursor.execute(statement, tuple(values) or None)
            except pymysql.Error as error:
                if self.refusals is not None and error.args[0] not in self.refusals:
                    raise AssertionError(f"{statement}: {error}") from error
                self.statements.append(f"-- {error}")
                return False
        return True

    def _run_one_of(self, *statements: str) -> None:
        self._run(self._rng.choice(statements))


class Look(NamedTuple):
    """What a server answers to SELECTs at a position: the payloads of the rows, in no order."""

    gtid: str
    answers: dict[str, list[bytes]]


class Looking(Choosing):
    """One that asks the server now and then, too."""

    def __init__(self, server: RealServer, rng: random.Random) -> None:
        super().__init__(server, rng)
        self._client = RawClient.of_root(server)
        self.looks: list[Look] = []

    def close(self) -> None:
        super().close()
        self._client.close()

    def _look_at(self, asked: Iterable[str]) -> None:
        ((gtid,),) = self._asked("SELECT @@gtid_binlog_pos")
        self.looks.append(Look(str(gtid), {sql: sorted(self._client.text(sql).rows) for sql in asked}))
