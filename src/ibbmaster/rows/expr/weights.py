"""Keys of texts: bytes that compare as a server compares the texts by a collation: WEIGHT_STRING() of MariaDB 10.11 and
11.8 for each letter of the basic plane that compares by itself; texts with others have no key."""

import functools
import lzma
import re
from collections.abc import Callable
from importlib import resources

from ibbmaster.replication.event.rows.charset import encode_text
from ibbmaster.replication.wire.refusal import not_supported
from .kinds import EXACT_NAMES

UNKNOWN = 0xFF  # as the size of weights
SPACE = 0x20
_NAMES = re.compile(r"(?:utf8mb[34]_)?(general|unicode|uca1400)_(?:(nopad)_)?(?:ai_)?ci")
_BYTE_TABLES = {
    "latin1_swedish_ci": (
        "cp1252",
        bytes(range(0x61)) + bytes(range(0x41, 0x5B)) + bytes(range(0x7B, 0xC0))
        + b"AAAA\x5c\x5b\x5cCEEEEIIII\x44NOOOO\x5d\xd7\xd8UUUYY\xde\xdf"
        + b"AAAA\x5c\x5b\x5cCEEEEIIII\x44NOOOO\x5d\xf7\xd8UUUYY\xde\xff",
    ),
    "ascii_general_ci": ("ascii", bytes(range(0x61)) + bytes(range(0x41, 0x5B)) + bytes(range(0x7B, 0x80))),
}  # fmt: skip

Key = Callable[[str], bytes]


class _Weights(dict[int, str]):
    """`follow` gives the weights of letters that are not in the table."""

    def __init__(self, known: dict[int, str], follow: Callable[[int], str]) -> None:
        super().__init__(known)
        self._follow = follow

    def __missing__(self, letter: int) -> str:
        found = self[letter] = self._follow(letter)
        return found


@functools.cache
def key_of(collation: str) -> Key:
    """Makes keys of texts."""
    if collation.endswith("_bin"):
        return _binary_key(collation)
    if collation == EXACT_NAMES:
        folded = key_of("utf8mb3_general_ci")
        return lambda text: folded(text) + b"\0" + text.encode("utf-8", "surrogateescape")
    table, is_padded = _table_of(collation)
    return _padded(table, is_padded=is_padded)


@functools.cache
def letters_of(collation: str) -> Callable[[str], list[str]]:
    """As `key_of`, letter by letter, for LIKE."""
    if collation.endswith("_bin") or collation == "binary":
        return list
    table, _ = _table_of("utf8mb3_general_ci" if collation == EXACT_NAMES else collation)
    return lambda text: [table[ord(letter)] for letter in text]


def _table_of(collation: str) -> tuple[_Weights, bool]:
    if collation in _BYTE_TABLES:
        return _bytes_table(collation), True
    match = _NAMES.fullmatch(collation)
    if match is None:
        raise not_supported(f"comparing or ordering texts of {collation}, whose weights are not known here")
    return _load(match[1]), match[2] is None


def _binary_key(collation: str) -> Key:
    charset = collation.split("_")[0]
    if charset not in ("utf8mb4", "utf8mb3", "ascii", "latin1"):
        raise not_supported(f"comparing or ordering texts of {collation}")
    follow = (lambda letter: encode_text(chr(letter), charset).decode("latin-1")) if charset == "latin1" else chr
    return _padded(_Weights({}, follow), is_padded="nopad" not in collation)


def _bytes_table(collation: str) -> _Weights:
    codec, weights = _BYTE_TABLES[collation]
    known = {}
    for byte, weight in enumerate(weights):
        try:
            letter = bytes((byte,)).decode(codec)
        except UnicodeDecodeError:
            letter = chr(byte)
        known[ord(letter)] = chr(weight)
    return _Weights(known, lambda letter: _refuse(letter, collation))


@functools.cache
def _load(name: str) -> _Weights:
    data = lzma.decompress(resources.files(__package__).joinpath(f"weights_{name}.xz").read_bytes())
    known: dict[int, str] = {}
    offset = 0
    unknown = set()
    while offset < len(data):
        letter, size = int.from_bytes(data[offset : offset + 2], "big"), data[offset + 2]
        offset += 3
        if size == UNKNOWN:
            unknown.add(letter)
            continue
        known[letter] = data[offset : offset + size].decode("utf-16-be", "surrogatepass")
        offset += size
    if name == "general":
        follow = lambda letter: chr(letter) if letter <= 0xFFFF else "\ufffd"  # noqa: E731 - one of two ways
    else:
        follow = lambda letter: _refuse(letter, name) if letter in unknown else _implicit(letter, name)  # noqa: E731
    return _Weights(known, follow)


def _implicit(letter: int, name: str) -> str:
    if letter > 0xFFFD:
        if name == "unicode":
            return "\ufffd"
        return _refuse(letter, name)
    base = 0xFB40 if 0x4E00 <= letter <= 0x9FA5 else 0xFB80 if 0x3400 <= letter <= 0x4DB5 else 0xFBC0
    return chr(base + (letter >> 15)) + chr(letter & 0x7FFF | 0x8000)


def _refuse(letter: int, collation: str) -> str:
    raise not_supported(f"comparing or ordering U+{letter:04X} by {collation}, whose weights are not known here")


def _padded(table: _Weights, *, is_padded: bool) -> Key:
    """A padded text ends in the middle of three weights around that of a space, and each space before it is one of the
    others, by the letter behind the spaces."""
    if not is_padded:
        return lambda text: text.translate(table).encode("utf-32-be", "surrogatepass")
    space = ord(table[SPACE])
    less, end, more = chr(space), chr(space + 1), chr(space + 2)
    runs = re.compile(re.escape(end) + "+(.)", re.DOTALL)

    def mark(weights: str) -> str:
        return "".join(
            chr(space + 1) if ord(one) == space else one if ord(one) < space else chr(ord(one) + 2) for one in weights
        )

    marked = _Weights({}, lambda letter: mark(table[letter]))

    def key(text: str) -> bytes:
        weights = text.translate(marked).rstrip(end)
        if end in weights:
            weights = runs.sub(lambda run: (less if run[1] < end else more) * (len(run[0]) - 1) + run[1], weights)
        return (weights + end).encode("utf-32-be", "surrogatepass")

    return key
