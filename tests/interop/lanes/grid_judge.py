"""Our answers to the grid of `select_grid`, and the table of what is answered that follows from them.

`python -m lanes.grid_judge` in tests/interop writes src/ibbmaster/rows/expr/judged.tsv anew.
"""

import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ibbmaster
from ibbmaster.primary.dialogue.sql import parse
from ibbmaster.primary.select.engine import QueryRun
from ibbmaster.primary.select.sources import KnownNames
from ibbmaster.primary.select.table_reader import RowRange
from ibbmaster.primary.server.tables import PrimaryTables
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.replication.wire.response import Err, ResultSet
from ibbmaster.rows.expr import judged
from ibbmaster.rows.expr.compiling import Compiler
from ibbmaster.rows.expr.scalars import SqlValue, as_truth
from ibbmaster.rows.expr.values import loading
from ibbmaster.sqltext.expression import GivenTable
from lanes.answers import VERSION, new_dialog, payloads_of, values_of
from lanes.select_grid import FOLDER, SESSION, VERSIONS, asked, load, scalars, told, told_rows

TABLE = Path(judged.__file__).parent / "judged.tsv"
Cell = tuple[str, str]  # an operation, and the families of values
REFUSED = "E1235"
HEAD = """\
# Operations over families of values that gave what servers give: facts of MariaDB 10.11 and 11.8, from their answers.
# In quotes stands what a statement has written, in brackets what is computed, else a column; `beside` is the left one.
"""
DIFFERENT = "|"  # between answers of servers that differ


class OurServer:
    """A session with a log, in this process. It keeps what it has read of each table."""

    def __init__(self, binlog: Path, profile_name: str = "classic-11.8") -> None:
        self._directory = tempfile.TemporaryDirectory()
        shutil.copy(binlog, self._directory.name)
        engine = ibbmaster.open(Path(self._directory.name)).engine
        self.tables = PrimaryTables(engine, has_kernels=False)
        self.dialog = new_dialog(self.tables, engine, SESSION, profile_name)
        self._rows: dict[str, tuple[KnownNames, list[tuple[Any, ...]], list[SqlValue]]] = {}

    def close(self) -> None:
        self._directory.cleanup()

    def ask(self, sql: str) -> Any:
        """Columns and rows; or the number of an error, and its text."""
        (answer,) = self.dialog.query(sql.encode())
        try:
            if isinstance(answer, Err):
                return f"E{answer.code}", answer.text
            if isinstance(answer, ResultSet):
                return answer.columns, list(answer.rows)
            return answer.columns, [values_of(one, len(answer.columns)) for one in payloads_of(answer.blocks)]  # type: ignore[union-attr]
        except RefusedError as refused:
            return f"E{refused.err.code}", refused.err.text

    def condition(self, sql: str) -> str:
        """Which rows a SELECT gives, from either room."""
        found, rows = self.ask(sql)
        return found if isinstance(found, str) else told_rows(rows)

    def scalar(self, sql: str) -> str:
        found, rows = self.ask(sql)
        if isinstance(found, str):
            return found
        fields = [SimpleNamespace(type_code=int(one.column_type), charsetnr=one.collation_id) for one in found]
        return told(fields, [tuple(row) for row in rows])

    def computed(self, sql: str) -> str:
        """Which rows meet the condition of a SELECT of ids, as the engine computes it, without SQLite around it."""
        block = parse(sql, version=VERSION)[0].query  # type: ignore[union-attr]
        try:
            scope, rows, slots = self._table(block.source.name)
            node = scope.resolved(block.where, "WHERE")
            compiler = Compiler(self._session)
            truth = as_truth(compiler.scalar(node))
            places = [slots.index(slot) for slot in compiler.slots]
            found = [row[0] for row in rows if truth.run([row[place] for place in places])]
        except RefusedError as refused:
            return f"E{refused.err.code}"
        return f"{sum(1 << number for number in found):x}"

    def _table(self, name: str) -> tuple[KnownNames, list[tuple[Any, ...]], list[SqlValue]]:
        if name not in self._rows:
            self._session, position = self.dialog._evaluator.query_session(), self.dialog._position
            query: Any = SimpleNamespace(
                snapshot=position.snapshot(), query=None, sql_mode=0, find=self.dialog._tables.find,
                session=self._session,
            )  # fmt: skip
            run = QueryRun(query, lambda *asked: self.tables._reader().rows_of(query.snapshot, *asked))
            _, source = run.source(GivenTable(name, "grid"), "a1")
            slots = [column.slot for column in source.columns]
            loaded: Any = run._table
            used = loaded.used(" ".join(slot.sql for slot in slots))
            found = run._rows_of(loaded.table, [column.id for column in loaded.of_places(used)], RowRange())
            loads = [loading(slot.type) for slot in slots]
            rows = [
                tuple(one if one is None or load is None else load(one) for one, load in zip(row, loads, strict=True))
                for row in loaded.rows(found, used, 0)
            ]
            self._rows[name] = KnownNames([source]), rows, slots
        return self._rows[name]


class _Everything:
    """A table in which everything is judged, which notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: set[tuple[str, str]] = set()

    def get(self, operation: str, _: object) -> Any:
        everything = self

        class Cell:
            def __contains__(self, families: object) -> bool:
                everything.asked.add((operation, str(families)))
                return True

        return Cell()


@contextmanager
def everything_judged() -> Iterator[_Everything]:
    kept, found = judged.judged, _Everything()
    judged.judged = lambda: found  # type: ignore[assignment]
    try:
        yield found
    finally:
        judged.judged = kept


def questions(answers: dict[str, list[str]]) -> Iterator[tuple[str, str, str]]:
    """Which way of `OurServer` is asked what, and the right answer; the older server's first if they differ."""
    for name, conditions in asked():
        if name[0] == "g":
            indexed = answers.get(f"x{name[1:]}", answers[name])
            for one, right, other in zip(conditions, answers[name], indexed, strict=True):
                yield "computed", one.sql, right if right == other else DIFFERENT
        if name[:2] in ("g_", "k_"):
            for one, right in zip(conditions, answers[name], strict=True):
                yield "condition", one.sql, right
    for one, right in zip(scalars(), answers["scalars"], strict=True):
        yield "scalar", one.sql, right


class OurServers:
    """One that speaks like each of the real servers, with the log of one of them."""

    def __init__(self, folder: Path = FOLDER) -> None:
        binlog = folder / "binlog.000001"
        self.older, self.newer = (OurServer(binlog, f"classic-{version}") for version in VERSIONS)

    def close(self) -> None:
        self.older.close()
        self.newer.close()

    def asked(self, way: str, sql: str, right: str) -> Iterator[tuple[str, str]]:
        """Our answer, and the right one; for each of the servers where these differ."""
        old, is_different, new = right.partition(DIFFERENT)
        yield getattr(self.newer, way)(sql), new or right
        if is_different and way == "scalar":
            yield self.older.scalar(sql), old


def judge(folder: Path = FOLDER) -> dict[str, set[str]]:
    """What may be answered: no answer for which all that it takes is left in the table is wrong.

    Of the operations of wrong answers the one goes that is wrong most often, until each of them lacks one.
    """
    servers = OurServers(folder)
    right: Counter[Cell] = Counter()
    wrong: list[tuple[str, set[Cell]]] = []
    with everything_judged() as table:
        for way, sql, expected in questions(load(folder)):
            table.asked = set()
            try:
                found = [*servers.asked(way, sql, expected)]
            except Exception as error:  # which what is left out of the table keeps from users
                found = [(repr(error), expected)]
            for mine, theirs in found:
                if mine == theirs:
                    right.update(table.asked)
                elif mine != REFUSED:
                    wrong.append((f"{way} {sql}: ours {mine}, real {theirs}", table.asked))
    servers.close()
    out: dict[Cell, list[str]] = {}
    judge.out = out  # type: ignore[attr-defined]
    unasked = [text for text, used in wrong if not used]
    wrong = [one for one in wrong if one[1]]
    while wrong:
        faults = Counter(cell for _, used in wrong for cell in used)
        worst = max(faults, key=lambda cell: (faults[cell] / (faults[cell] + right[cell]), cell))
        out[worst] = [text for text, used in wrong if worst in used]
        wrong = [one for one in wrong if worst not in one[1]]
    if unasked:
        raise ValueError("wrong, and the table is not asked:\n" + "\n".join(unasked))
    found: defaultdict[str, set[str]] = defaultdict(set)
    for operation, families in right.keys() - out.keys():
        found[operation].add(families)
    return found


def write(found: dict[str, set[str]], path: Path = TABLE) -> None:
    """Keep what may be answered as the table of facts that the package has."""
    lines: defaultdict[str, list[str]] = defaultdict(list)
    for operation, families in sorted(found.items()):
        for one in sorted(families):
            left, between, right = one.partition(" beside ")
            lines[f"{operation}\t{left}" if between else f"{operation}\t"].append(right or left)
    rows = "".join(f"{first}\t{', '.join(others)}\n" for first, others in lines.items())
    path.write_text(f"{HEAD}operation\tbeside\tfamilies\n{rows}")


if __name__ == "__main__":
    write(judge())
