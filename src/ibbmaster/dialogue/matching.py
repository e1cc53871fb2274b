"""LIKE, in time that does not depend on how cunning the pattern is."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator


def like(pattern: str, text: str, *, escape: str = "\\") -> bool:
    """LIKE without regard to case: % any letters, _ one letter, `escape` takes the next as it is."""
    return matcher(pattern, escape=escape)(text)


def matcher(pattern: str, *, escape: str = "\\") -> Callable[[str], bool]:
    """As `like`, to match many texts with one pattern."""
    parts = list(_parts(pattern.lower(), escape.lower()))
    head = "".join(letter for letter, _ in itertools.takewhile(lambda part: not part[1], parts))
    rest = parts[len(head) :]

    def matches(text: str) -> bool:
        lower = text.lower()
        return lower.startswith(head) and _matches(rest, lower[len(head) :])

    return matches


def _matches(parts: list[tuple[str, bool]], text: str) -> bool:
    states = {0}  # places in `parts` that match what was read so far: linear, whatever the pattern
    for letter in itertools.chain(text, (None,)):
        pending, reached = list(states), set()
        while pending:
            place = pending.pop()
            if place in reached:
                continue
            reached.add(place)
            if place < len(parts) and parts[place] == ("%", True):
                pending.append(place + 1)
        if letter is None:
            return len(parts) in reached
        states = set()
        for place in reached:
            if place == len(parts):
                continue
            sign, is_wild = parts[place]
            if sign == "%" and is_wild:
                states.add(place)
            elif (sign == "_" and is_wild) or sign == letter:
                states.add(place + 1)
    return False


def _parts(pattern: str, escape: str) -> Iterator[tuple[str, bool]]:
    """Letters, and whether each is a wildcard; several % are one."""
    letters = iter(pattern)
    was_any = False
    for letter in letters:
        if letter == escape:
            was_any = False
            yield next(letters, letter), False
            continue
        if letter == "%" and was_any:
            continue
        was_any = letter == "%"
        yield letter, letter in "%_"
