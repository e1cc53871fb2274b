"""Results as a picture for a README: a line or two for each consumer, a square for each scenario, by families. It has
its own ground, for light and dark pages; colours follow the reader's system. Squares of one grade are one path, which
keeps it small."""

from __future__ import annotations

import re
from collections import defaultdict
from html import escape

from .matrix import LOOKS, cells_by_place, counted, families, is_best, look_name, plain, score, tally
from .results import ConsumerResult, Grade, Results

SIZE_MAX = 60_000  # bytes
SQUARE = 14  # pixels at most
SQUARES_WIDTH = 840  # pixels of all squares at most: more take two lines, or are narrower
SYMBOL_WIDTH_MIN = 8  # pixels: narrower squares have no symbol
NAMES_WIDTH, MARGIN, GAP = 262, 20, 10
LETTER_WIDTH = 6.2  # pixels, about, of small text
LINE, HEAD_HEIGHT, FAMILY_HEIGHT = 38, 56, 62
NAME_LENGTH_MAX, VERSION_LENGTH_MAX, FAMILY_LENGTH_MAX = 30, 40, 16

#: Symbols as strokes in a square from -1 to 1, for fonts differ. Exact has none: what is right is quiet.
_STROKES: dict[Grade, tuple[tuple[tuple[float, float], ...], ...]] = {
    Grade.REPEATS_GROUPS: (((-0.5, 0), (0.5, 0)), ((0, -0.5), (0, 0.5))),
    Grade.REPEATS_PARTS: (((-0.4, 0.5), (0.4, -0.5)),),
    Grade.LOSES_LOUDLY: (((0, -0.6), (0, 0.15)), ((0, 0.5), (0, 0.6))),
    Grade.CRASHES: (((-0.45, -0.45), (0.45, 0.45)), ((-0.45, 0.45), (0.45, -0.45))),
    Grade.HANGS: (((-0.25, -0.5), (-0.25, 0.5)), ((0.25, -0.5), (0.25, 0.5))),
    Grade.METADATA_WRONG: (((-0.5, -0.45), (0.5, -0.45)), ((-0.5, 0), (0.5, 0)), ((-0.5, 0.45), (0.5, 0.45))),
    Grade.LOSES_SILENTLY: (((-0.55, 0), (0, -0.55), (0.55, 0), (0, 0.55), (-0.55, 0), (0, -0.55)),),
}


_LEADING_ZERO = re.compile(r"(?<!\d)0\.")


def render(results: Results) -> str:
    """The picture as SVG; equal results have equal texts. One that would be too large has no symbols."""
    picture = _picture(results, has_symbols=True)
    return picture if len(picture.encode()) <= SIZE_MAX else _picture(results, has_symbols=False)


def _picture(results: Results, *, has_symbols: bool) -> str:
    places, width, right = _columns(results)
    height = HEAD_HEIGHT + FAMILY_HEIGHT + LINE * len(results.consumers) + 62
    top = HEAD_HEIGHT + FAMILY_HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right} {height}" width="{right}" height="{height}"'
        f' role="img" font-family="system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif">',
        f"<title>{_title(results)}</title>",
        f"<style>{_style(width)}</style>",
        f'<rect class="page" x=".5" y=".5" width="{right - 1}" height="{height - 1}" rx="8"/>',
        f'<text class="title" x="{MARGIN}" y="34">Scorecard of binlog consumers</text>',
        f'<text class="small" x="{right - MARGIN}" y="34" text-anchor="end">{_facts(results)}</text>',
        *_family_names(results, places, top),
    ]
    for number, consumer in enumerate(results.consumers):
        parts += _names(consumer, top + LINE * number)
    parts += _squares(results, places, width, top, has_symbols and width >= SYMBOL_WIDTH_MIN)
    parts += _legend(height - 24)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _columns(results: Results) -> tuple[dict[str, tuple[int, int]], int, int]:
    """Left and line of each scenario's square, widths of squares and picture."""
    of_family = families(results)
    room = SQUARES_WIDTH - GAP * max(0, len(of_family) - 1)

    def step_of(line_count: int) -> int:
        columns = sum(-(-len(scenarios) // line_count) for scenarios in of_family.values())
        return max(2, min(SQUARE + 2, room // max(1, columns)))

    line_count = 1 if step_of(1) >= SYMBOL_WIDTH_MIN + 2 else 2
    step, left, places = step_of(line_count), MARGIN + NAMES_WIDTH, {}
    for scenarios in of_family.values():
        for number, scenario in enumerate(scenarios):
            column, line = divmod(number, line_count)
            places[scenario.name] = (left + step * column, line)
        left += step * -(-len(scenarios) // line_count) + GAP
    return places, step - 2 if step > 6 else step, max(left - GAP + MARGIN, 1020)


def _style(width: int) -> str:
    """A square is a stroke as long as it is wide."""

    def colours(*, dark: bool) -> str:
        page, line, text, quiet = ("#12151a", "#2d343e", "#e3e8ee", "#97a2b0") if dark else _LIGHT
        looks = ((look_name(grade), LOOKS[grade]) for grade in (*Grade, None))
        return f".page{{fill:{page};stroke:{line}}}.title,.name{{fill:{text}}}.small,.family{{fill:{quiet}}}" + "".join(
            f".{name}{{stroke:{look.dark_ground if dark else look.ground}}}"
            f".{name}-ink{{stroke:{look.dark_ink if dark else look.ink}}}"
            for name, look in looks
        )

    return (
        "path{fill:none}.title{font-size:18px;font-weight:650}.name{font-size:14px;font-weight:600}"
        f".small,.family{{font-size:12px}}.square{{stroke-width:{SQUARE}px}}"
        f".ink{{stroke-width:{1.6 if width >= SYMBOL_WIDTH_MIN else 1}px;stroke-linecap:round}}"
        f"{colours(dark=False)}@media (prefers-color-scheme:dark){{{colours(dark=True)}}}"
    )


_LIGHT = ("#ffffff", "#dfe3e8", "#1c232b", "#5b6470")


def _title(results: Results) -> str:
    sentences = []
    for consumer in results.consumers:
        best, runs = score(results, consumer.name)
        silent = tally(results, consumer.name)[Grade.LOSES_SILENTLY]
        said = f"{best} of {runs} as good as can be, {silent} silent losses" if runs else "not run"
        sentences.append(f"{_short(consumer.title, NAME_LENGTH_MAX)}: {said}.")
    return "Scorecard of binlog consumers. " + " ".join(sentences)


def _facts(results: Results) -> str:
    return _short(
        f"{counted(len(results.scenarios), 'scenario')} · ibbmaster {results.ibbmaster} · {results.made[:10]}", 80
    )


def _short(text: str, length_max: int) -> str:
    shown = plain(text)
    return escape(shown if len(shown) <= length_max else shown[: length_max - 1] + "…")


def _family_names(results: Results, places: dict[str, tuple[int, int]], top: int) -> list[str]:
    return [
        f'<text class="family" transform="translate({places[scenarios[0].name][0] + 5} {top - 8}) rotate(-32)">'
        f"{_short(family, FAMILY_LENGTH_MAX)}</text>"
        for family, scenarios in families(results).items()
    ]


def _names(consumer: ConsumerResult, top: int) -> list[str]:
    below = f"not run: {consumer.not_run}" if consumer.not_run else consumer.version or consumer.package
    return [
        f'<text class="name" x="{MARGIN}" y="{top + 14}">{_short(consumer.title, NAME_LENGTH_MAX)}</text>',
        f'<text class="small" x="{MARGIN}" y="{top + 27}">{_short(below, VERSION_LENGTH_MAX)}</text>',
    ]


def _squares(
    results: Results, places: dict[str, tuple[int, int]], width: int, top: int, has_symbols: bool
) -> list[str]:
    cells = cells_by_place(results)
    strokes: dict[str, list[str]] = defaultdict(list)
    line_count = max((line for _, line in places.values()), default=0) + 1
    in_order = sorted(results.scenarios, key=lambda scenario: places[scenario.name][::-1])
    for number, consumer in enumerate(results.consumers):
        run: tuple[str, int, int, int] = ("", 0, 0, 0)  # look, where it begins and ends, how far down
        for scenario in in_order:
            grade = cells[consumer.name, scenario.name].grade
            is_right = is_best(grade, scenario)
            look, (left, line) = look_name(Grade.EXACT if is_right else grade), places[scenario.name]
            middle = top + LINE * number + (16 if line_count == 1 else 8 + (SQUARE + 2) * line)
            if (look, left, middle) != (run[0], run[2], run[3]):
                _add_run(strokes, run)
                run = (look, left, left, middle)
            run = (look, run[1], left + width, middle)
            if grade in _STROKES and not is_right and has_symbols:
                strokes[look + "-ink"].append(_symbol(grade, left + width / 2, middle, width / 2))
        _add_run(strokes, run)
    names = [look_name(grade) for grade in (*Grade, None)]
    return [
        f'<path class="{kind} {name}" d="{"".join(strokes[name])}"/>'
        for kind, suffix in (("square", ""), ("ink", "-ink"))
        for name in (look + suffix for look in names)
        if strokes[name]
    ]


def _add_run(strokes: dict[str, list[str]], run: tuple[str, int, int, int]) -> None:
    look, left, right, middle = run
    if look:
        strokes[look].append(f"M{left} {middle}H{right}")


def _symbol(grade: Grade, x: float, y: float, half: float) -> str:
    path, (at_x, at_y) = f"M{x:g} {y:g}", (0.0, 0.0)
    for points in _STROKES[grade]:
        for number, (point_x, point_y) in enumerate(points):
            to_x, to_y = round(point_x * half, 1), round(point_y * half, 1)
            path += f"{'l' if number else 'm'}{to_x - at_x:.3g} {to_y - at_y:.3g}"
            at_x, at_y = to_x, to_y
    return _LEADING_ZERO.sub(".", path.replace(" -", "-"))


def _legend(y: int) -> list[str]:
    parts, x = [], MARGIN
    for grade in (*Grade, None):
        parts.append(f'<path class="square {look_name(grade)}" d="M{x} {y}h{SQUARE}"/>')
        if grade in _STROKES:
            symbol = _symbol(grade, x + SQUARE / 2, y, SQUARE / 2)
            parts.append(f'<path class="ink {look_name(grade)}-ink" d="{symbol}"/>')
        words = "as good as can be" if grade is Grade.EXACT else grade or "not run"
        parts.append(f'<text class="small" x="{x + SQUARE + 6}" y="{y + 4}">{words}</text>')
        x += round(SQUARE + LETTER_WIDTH * len(words) + 20)
    return parts
