"""Results as Markdown: tables, and a text for the authors of a consumer."""

import re
import shlex
from collections.abc import Iterable, Sequence

from ibbmaster.errors import ConfigurationError
from .matrix import LOOKS, cells_by_place, counted, families, findings, is_best, plain, score, tally
from .results import Cell, ConsumerResult, Grade, Results, ScenarioResult

TEXT_SIZE_MAX = 60_000  # characters: the most of an issue on a code-hosting site
DETAILS_MAX = 6  # changes of one kind that a finding names
_PIPE = re.compile(r"(?<!\\)\|")
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&!$])")


def table(results: Results) -> str:
    """A document: consumers and their grades, a matrix for each family, and all silent losses."""
    parts = (["# Results of the scorecard", ""], _summary(results), _matrices(results), _silent_losses(results))
    return "\n".join(line for part in parts for line in part) + "\n"


def text_for_authors(results: Results, name: str) -> str:
    """Each finding, and how to see it again. Raises ConfigurationError: the results have no such consumer, or it was
    not run."""
    consumer = next((consumer for consumer in results.consumers if consumer.name == name), None)
    if consumer is None:
        known = ", ".join(consumer.name for consumer in results.consumers) or "none"
        raise ConfigurationError(f"{plain(name)!r}: the results have no such consumer; they have {known}")
    _, run_count = score(results, name)
    if not run_count:
        raise ConfigurationError(f"{name}: it was not run: {plain(consumer.not_run or 'no scenario was')}")
    found = findings(results, name)
    parts = [*_greeting(consumer, results, run_count, len(found)), *_overview(found)]
    described = [_finding(number, consumer, *pair) for number, pair in enumerate(found, 1)]
    commands = [_command_for_file(scenario) for scenario, _ in found]
    room = TEXT_SIZE_MAX - sum(map(_size, (parts, *described, *commands)))
    for lines, command, (scenario, _) in zip(described, commands, found, strict=True):
        file = _file(scenario)
        room -= _size(file)
        parts += [*lines, *(file if room > 0 else command)]
    return "\n".join(parts) + "\n"


def _size(lines: Iterable[str]) -> int:
    return sum(len(line) + 1 for line in lines)


# Tables


def _summary(results: Results) -> list[str]:
    machine = ", ".join(f"{name} {value}" for name, value in results.machine.items())
    made = f"{counted(len(results.scenarios), 'scenario')}, run {results.made} with ibbmaster {results.ibbmaster}"
    lines = [
        _inline(f"{made} ({machine})." if machine else f"{made}."),
        "",
        _row(["Consumer", *(f"{LOOKS[grade].symbol} {grade}" for grade in Grade), "right", "Run with"]),
        _row(["---", *("--:" for _ in Grade), "--:", "---"]),
    ]
    for consumer in results.consumers:
        counts, (best, runs) = tally(results, consumer.name), score(results, consumer.name)
        shown = [str(counts[grade] or "") for grade in Grade]
        lines.append(
            _row([_who(consumer), *shown, f"{best} of {runs}" if runs else "", _version(consumer, counts[None])])
        )
    return [*lines, "", *_legend()]


def _who(consumer: ConsumerResult) -> str:
    return f"{_inline(consumer.title)}<br>`{_code(consumer.name)}`"


def _version(consumer: ConsumerResult, not_run_count: int) -> str:
    if consumer.not_run:
        return f"not run: {_inline(consumer.not_run)}"
    left_out = f"; {counted(not_run_count, 'scenario')} not run" if not_run_count else ""
    return f"{_inline(consumer.version or consumer.package)} ({_inline(consumer.registry)}){left_out}"


def _legend() -> list[str]:
    words = {**{grade: LOOKS[grade].word for grade in Grade}, Grade.EXACT: LOOKS[Grade.EXACT].symbol}
    lines = [f"- `{words[grade]}` **{grade}**: {grade.meaning}" for grade in Grade]
    return [
        *lines,
        "- a word with `✓`: no consumer can do better in this scenario, which is as right as exact; `–`: not run",
        "",
    ]


def _word(grade: Grade) -> str:
    return f"**{LOOKS[grade].word}**" if grade is Grade.LOSES_SILENTLY else LOOKS[grade].word


def _matrices(results: Results) -> list[str]:
    cells = cells_by_place(results)
    lines = []
    for family, scenarios in families(results).items():
        lines += [
            f"### {_inline(family)}",
            "",
            _row(["Scenario", *(_inline(consumer.name) for consumer in results.consumers)]),
            _row(["---", *(":-:" for _ in results.consumers)]),
        ]
        for scenario in scenarios:
            grades = (cells[consumer.name, scenario.name].grade for consumer in results.consumers)
            lines.append(_row([_what(scenario), *(_mark(grade, scenario) for grade in grades)]))
        lines.append("")
    return lines


def _what(scenario: ScenarioResult) -> str:
    return f"`{_code(scenario.name)}`<br>{_inline(scenario.title)}"


def _mark(grade: Grade | None, scenario: ScenarioResult) -> str:
    if grade is None or grade is Grade.EXACT:
        return LOOKS[grade].symbol
    return f"{_word(grade)} ✓" if is_best(grade, scenario) else _word(grade)


def _silent_losses(results: Results) -> list[str]:
    cells = cells_by_place(results)
    lost = [
        (consumer, scenario, cells[consumer.name, scenario.name])
        for consumer in results.consumers
        for scenario in results.scenarios
        if cells[consumer.name, scenario.name].grade is Grade.LOSES_SILENTLY
        and scenario.best is not Grade.LOSES_SILENTLY
    ]
    if not lost:
        return ["### Silent losses", "", "None."]
    return [
        f"### Silent losses: {len(lost)}",
        "",
        _row(["Consumer", "Scenario", "What was lost", "With a real primary"]),
        _row(["---"] * 4),
        *(
            _row([_inline(consumer.title), f"`{_code(scenario.name)}`", _inline(cell.summary), _confirmed(cell)])
            for consumer, scenario, cell in lost
        ),
    ]


def _confirmed(cell: Cell) -> str:
    if cell.confirmed is None:
        return "not tried" if cell.not_confirmed is None else f"not tried: {_inline(cell.not_confirmed)}"
    server, summary = _inline(cell.confirmed.server), _inline(cell.confirmed.summary)
    verdict = "the same" if cell.confirmed.grade is cell.grade else f"**{cell.confirmed.grade}**"
    return f"{verdict}, {server}: {summary}"


def _row(cells: Iterable[str]) -> str:
    escaped = [_PIPE.sub(r"\|", cell) for cell in cells]
    return f"| {' | '.join(escaped)} |"


def _inline(text: str) -> str:
    """Nothing in the line is Markdown or HTML."""
    return _SPECIAL.sub(r"\\\1", plain(text)).replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\&", "&amp;")


def _code(text: str) -> str:
    """A text from outside between two backquotes."""
    return plain(text).replace("`", "'")


# The text for authors


def _greeting(consumer: ConsumerResult, results: Results, run_count: int, found_count: int) -> list[str]:
    title = _inline(consumer.title)
    right = run_count - found_count
    lines = [
        f"# {title} and a binlog stream that does not go as it should",
        "",
        f"Hello! {title} was run through {counted(run_count, 'scenario')} of a MariaDB primary that fails on cue:"
        " connections that end at a certain event, servers that restart, damaged events, unusual but valid shapes of a"
        " stream."
        f" In {right} of them everything came out at the best possible grade."
        + (
            f" Here are the other {found_count}, the gravest first, each with a way to see it again."
            " Some may be known, or as intended; then please take them as a note for the documentation."
            if found_count
            else " Nothing is left to report: thank you for the careful work."
        ),
        "",
        f"- Run: {_inline(consumer.version or consumer.package)}, installed as {_inline(consumer.package)}"
        f" from {_inline(consumer.registry)}; used by the adapter `{_code(consumer.name)}` of the scorecard, with the"
        " library's own reconnect",
        f"- Primary: ibbmaster {_inline(results.ibbmaster)}, {_inline(results.made)}; where a real MariaDB server"
        " was run through the same, the finding says so",
    ]
    if found_count:
        lines += [
            "- To see any of them again: `pip install ibbmaster`, and the command that stands there;"
            " with `ibbmaster serve --scenario FILE` the primary alone waits for a consumer"
        ]
    return [*lines, ""]


def _overview(found: Sequence[tuple[ScenarioResult, Cell]]) -> list[str]:
    lines = [
        _row([str(number), f"`{_code(scenario.name)}`", str(cell.grade), _inline(cell.summary)])
        for number, (scenario, cell) in enumerate(found, 1)
    ]
    return (
        [_row(["", "Scenario", "Came out", "What happened"]), _row(["--:", "---", "---", "---"]), *lines, ""]
        if lines
        else []
    )


def _finding(number: int, consumer: ConsumerResult, scenario: ScenarioResult, cell: Cell) -> list[str]:
    grade = cell.grade or Grade.EXACT
    faults = "; ".join(f"`{_code(fault)}`" for fault in scenario.faults)
    return [
        f"## {number}. {_inline(scenario.name)}: {grade}",
        "",
        _inline(scenario.about),
        "",
        f"- **Done:** {_inline(scenario.title.rstrip('.'))}; the primary speaks as {_inline(scenario.profile)}"
        + (f" (faults: {faults})" if faults else " (no fault)"),
        f"- **Expected:** {scenario.best}. {scenario.best.meaning}",
        f"- **Happened:** {grade}. {_inline(cell.summary)}",
        *_details("missing", cell.missing),
        *_details("came again", cell.repeated),
        *_details("wrong", cell.wrong),
        *_details("told wrong of tables", cell.metadata),
        *_course(cell),
        f"- **Told to the user:** {'; '.join(f'“{_inline(line)}”' for line in cell.told) or 'nothing'}",
        f"- **With a real primary:** {_confirmed(cell)}",
        "",
        *_fenced(
            "sh", shlex.join(["ibbmaster", "scorecard", plain(consumer.name), "--scenario", plain(scenario.name)])
        ),
        "",
    ]


def _file(scenario: ScenarioResult) -> list[str]:
    return [
        "<details><summary>The scenario as a file for <code>ibbmaster serve --scenario FILE</code></summary>",
        "",
        *_fenced("toml", scenario.toml.rstrip("\n")),
        "",
        "</details>",
        "",
    ]


def _command_for_file(scenario: ScenarioResult) -> list[str]:
    shown = shlex.join(["ibbmaster", "scorecard", "--show", plain(scenario.name)])
    return [f"`{_code(shown)}` prints the scenario as a file for `ibbmaster serve --scenario FILE`.", ""]


def _details(what: str, lines: Sequence[str]) -> list[str]:
    shown = [f"  - {what}: `{_code(line)}`" for line in lines[:DETAILS_MAX]]
    rest = len(lines) - len(shown)
    return [*shown, f"  - {what}: {rest} more"] if rest else shown


def _course(cell: Cell) -> list[str]:
    lines = [
        f"  - asked again from `{_code(resume.position) or 'the beginning'}`, {resume.after_s:.2f} s after the fault"
        for resume in cell.resumes
    ]
    if cell.restarts:
        lines.append(f"  - ended and was started again with its last position: {cell.restarts} ×")
    return lines


def _fenced(language: str, text: str) -> list[str]:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *text.splitlines(), fence]
