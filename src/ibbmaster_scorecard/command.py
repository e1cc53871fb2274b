"""`ibbmaster scorecard`: real consumers of binlogs, put through faults."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib
import logging
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ibbmaster.commands.cli.arguments import expect_writable
from ibbmaster.errors import ConfigurationError

if TYPE_CHECKING:
    from .adapter import Adapter
    from .cards import Card
    from .results import Cell, ConsumerResult, Results

Known = TypeVar("Known")

EXIT_INTERRUPTED = 130
SAVE_S = 30.0  # between two saves
JOBS_MAX = 64
SILENCE_S_MAX = 3600


def run(args: argparse.Namespace) -> int:
    from .adapter import read_adapters
    from .cards import read_cards
    from .results import read_results

    logging.getLogger("ibbmaster").addHandler(logging.NullHandler())  # results have what it says
    cards = {card.name: card for card in read_cards()}
    if args.show is not None:
        print(_named("scenario", [args.show], cards)[0].toml(), end="")
        return 0
    adapters = read_adapters(*args.adapters)
    if args.list:
        _print_list(adapters.values(), cards.values())
        return 0
    _check(args)
    if args.source is not None:
        return _finish(args, read_results(args.source), adapters)
    matrix = _Matrix(
        args,
        _named("consumer", args.consumers, adapters) or list(adapters.values()),
        _chosen_cards(args, cards),
        None if args.merge is None else read_results(args.merge),
    )
    if args.build:
        matrix.build()
        return 0
    try:
        matrix.run()
    except KeyboardInterrupt:
        print(f"interrupted: {len(matrix.cells)} of {matrix.size} runs are kept", file=sys.stderr)
        _write(args, matrix.results())
        return EXIT_INTERRUPTED
    return _finish(args, matrix.results(), adapters)


def _finish(args: argparse.Namespace, results: Results, adapters: Mapping[str, Adapter]) -> int:
    _write(args, _confirmed(args, results, adapters) if args.confirm else results)
    return 0


def _check(args: argparse.Namespace) -> None:
    """See before a long run that its results can be written."""
    if not 1 <= args.jobs <= JOBS_MAX:
        raise ConfigurationError(f"--jobs {args.jobs}: expected 1 to {JOBS_MAX}")
    if args.silence is not None and not 0 < args.silence <= SILENCE_S_MAX:
        raise ConfigurationError(f"--silence {args.silence:g}: expected seconds up to {SILENCE_S_MAX}")
    for path in (args.json, args.html, args.markdown, args.picture):
        if path not in (None, "-") and (not Path(path).parent.is_dir() or Path(path).is_dir()):
            raise ConfigurationError(f"{path}: expected a file in a directory that is there")
        if path not in (None, "-"):
            expect_writable(Path(path).parent)


def _named(what: str, names: Sequence[str], known: Mapping[str, Known]) -> list[Known]:
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise ConfigurationError(f"there is no {what} {name!r}: {hint}`ibbmaster scorecard --list` shows them all")
    return [known[name] for name in dict.fromkeys(names)]


def _chosen_cards(args: argparse.Namespace, cards: dict[str, Card]) -> list[Card]:
    _named("family", args.family, {card.family: card for card in cards.values()})
    named = _named("scenario", args.scenario, cards)
    if not args.family and not named:
        return list(cards.values())
    return [card for card in cards.values() if card.family in args.family or card in named]


def _print_list(adapters: Iterable[Adapter], cards: Iterable[Card]) -> None:
    print("consumers:")
    for adapter in adapters:
        print(f"  {adapter.name:32}  {adapter.package} ({adapter.registry})")
    family = ""
    for card in cards:
        if card.family != family:
            family = card.family
            print(f"{family}:")
        print(f"  {card.name:32}  {card.title}")


class _Matrix:
    def __init__(
        self, args: argparse.Namespace, adapters: Sequence[Adapter], cards: Sequence[Card], older: Results | None
    ) -> None:
        from .runner import described

        self.args = args
        self.adapters = adapters
        self.cards = cards
        self.older = older
        self.size = len(adapters) * len(cards)
        self.consumers: dict[str, ConsumerResult] = {adapter.name: described(adapter) for adapter in adapters}
        self.cells: list[Cell] = []

    def run(self) -> None:
        from ibbmaster.commands.cli.progress import progress
        from .runner import run_matrix

        able = self._built()
        saved = time.monotonic()
        with (
            progress("run", label="running", total=len(able) * len(self.cards)) as bar,
            contextlib.closing(run_matrix(able, self.cards, self.args.silence, jobs=self.args.jobs)) as found,
        ):
            for cell, version in found:
                self.cells.append(cell)
                consumer = self.consumers[cell.consumer]
                self.consumers[cell.consumer] = replace(consumer, version=consumer.version or version)
                bar.add(1)
                if time.monotonic() > saved + SAVE_S:
                    _save(self.args, self.results())
                    saved = time.monotonic()

    def build(self) -> None:
        self._built()
        for name, consumer in self.consumers.items():
            print(f"{name}: {'ready' if consumer.not_run is None else f'unavailable ({consumer.not_run})'}")

    def results(self) -> Results:
        from .results import new_results
        from .runner import described_scenario

        found = new_results(self.consumers.values(), map(described_scenario, self.cards), self.cells)
        return found if self.older is None else found.merged(self.older)

    def _built(self) -> list[Adapter]:
        from ibbmaster.commands.cli.progress import progress
        from .adapter import build

        able = []
        with progress("consumer", label="building", total=len(self.adapters)) as bar:
            for adapter in self.adapters:
                try:
                    build(adapter)
                    able.append(adapter)
                except ConfigurationError as error:
                    self.consumers[adapter.name] = replace(self.consumers[adapter.name], not_run=str(error))
                bar.add(1)
        return able


def _confirmed(args: argparse.Namespace, results: Results, adapters: Mapping[str, Adapter]) -> Results:
    """With what became of each silent loss beside a real primary."""
    from ibbmaster.commands.cli.progress import progress
    from .cards import read_cards
    from .results import Grade

    confirm = _module("confirming").confirm
    cards = {card.name: card for card in read_cards()}
    silent = [
        cell
        for cell in results.cells
        if cell.consumer in adapters
        and cell.scenario in cards
        and cell.grade is Grade.LOSES_SILENTLY
        and cell.grade is not cards[cell.scenario].best
        and cell.confirmed is None
    ]
    found = {(cell.consumer, cell.scenario): cell for cell in results.cells}

    def once_more(cell: Cell) -> Cell:
        confirmed, reason = confirm(adapters[cell.consumer], cards[cell.scenario])
        return replace(cell, confirmed=confirmed, not_confirmed=reason or None)

    with (
        progress("run", label="confirming", total=len(silent)) as bar,
        ThreadPoolExecutor(args.jobs, thread_name_prefix="ibbmaster-confirm") as pool,
    ):
        for cell in pool.map(once_more, silent):
            found[cell.consumer, cell.scenario] = cell
            bar.add(1)
    return replace(results, cells=tuple(found.values()))


def _save(args: argparse.Namespace, results: Results) -> None:
    if args.json in (None, "-"):
        return
    text = (results.brief() if args.brief else results).to_json()
    path = Path(args.json)
    if path.exists() and not path.is_file():  # a pipe, a device: it must not be replaced
        _write_text(path, text)
        return
    begun = path.with_name(f".{path.name}.new")
    _write_text(begun, text)
    begun.replace(path)


def _write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None


def _write(args: argparse.Namespace, results: Results) -> None:
    _save(args, results)
    for path, module in ((args.html, "page"), (args.markdown, "report"), (args.picture, "picture")):
        if path is not None:
            found = _module(module)
            _write_text(path, found.table(results) if module == "report" else found.render(results))
    if args.report is not None:
        _named("consumer", [args.report], {consumer.name: consumer for consumer in results.consumers})
        print(_module("report").text_for_authors(results, args.report), end="")
    elif args.json == "-":
        print((results.brief() if args.brief else results).to_json(), end="")
    else:
        for line in _table(results):
            print(line)


def _module(name: str) -> Any:
    return importlib.import_module(f"ibbmaster_scorecard.{name}")


def _table(results: Results) -> Iterator[str]:
    best = {scenario.name: scenario.best for scenario in results.scenarios}
    for consumer in results.consumers:
        cells = [cell for cell in results.cells if cell.consumer == consumer.name]
        said = f": {consumer.version}" if consumer.version else ""
        yield f"{consumer.title}{said if consumer.not_run is None else f': not run: {consumer.not_run}'}"
        for cell in cells:
            grade = "not run" if cell.grade is None else cell.grade.value
            text = cell.not_run if cell.grade is None else cell.summary
            mark = "!" if cell.grade is not None and cell.grade.rank > best[cell.scenario].rank else " "
            yield f"  {cell.scenario:32} {mark} {grade:20}  {text}"
        as_good = sum(cell.grade is not None and cell.grade.rank <= best[cell.scenario].rank for cell in cells)
        if cells:
            yield f"  {as_good} of {len(cells)} at the best possible grade"
