"""LIKE, in time that does not depend on how cunning the pattern is."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from ibbmaster.work import check_wanted


def matcher(pattern: str, *, escape: str = "\\") -> Callable[[str], bool]:
    """As `like`, to match many texts with one pattern."""
    parts = list(_parts(pattern.lower(), escape.lower()))
    head = "".join(letter for letter, _ in itertools.takewhile(lambda part: not part[1], parts))
    rest = parts[len(head) :]

    find = _matches if ("_", True) in rest else _matches_pieces

    def matches(text: str) -> bool:
        lower = text.lower()
        return lower.startswith(head) and find(rest, lower[len(head) :])

    return matches


def _matches_pieces(parts: list[tuple[str, bool]], text: str) -> bool:
    """Without `_`: each piece between two % may as well stand where it is found first, the last at the end."""
    pieces = [[]]  # type: list[list[str]]
    for letter, is_wild in parts:
        if is_wild:
            pieces.append([])
        else:
            pieces[-1].append(letter)
    first, *others = ("".join(piece) for piece in pieces)
    if not others:
        return text == first
    place = len(first)  # it is empty, but where there is no head
    if not text.startswith(first):
        return False
    for piece in others[:-1]:
        found = text.find(piece, place)
        if found < 0:
            return False
        place = found + len(piece)
    return len(text) - place >= len(others[-1]) and text.endswith(others[-1])


def _matches(parts: list[tuple[str, bool]], text: str) -> bool:
    states = {0}  # places in `parts` that match what was read so far: linear, whatever the pattern
    for letter in itertools.chain(text, (None,)):
        check_wanted()
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
