"""Character sets and collations as SHOW lists them: facts of MariaDB 10.11 and 11.8."""

import functools
from dataclasses import dataclass

from ibbmaster.replication.event.rows.charset import CHARACTER_SETS, UCA_1400, UCA_1400_CHARSETS, UCA_1400_STEP

# Named without a character set, for any of the Unicode ones.
_UCA_1400_LANGUAGES = (
    "icelandic latvian romanian slovenian polish estonian spanish swedish turkish czech danish lithuanian "
    "slovak spanish2 roman persian esperanto hungarian sinhala german2 vietnamese croatian "
)
# UCA 4.0 collations for clients, which do not know the numbers of UCA 14.0.
_UCA_1400_SENT = {"utf8mb3": 192, "utf8mb4": 224, "ucs2": 128, "utf16": 101, "utf32": 160}
UNUSED_ENDS = range(21 * 8, 23 * 8)  # numbers of two nameless languages between german2 and vietnamese


@dataclass(frozen=True, slots=True)
class Collation:
    """Those for any Unicode character set have neither charset nor number."""

    name: str
    charset: str | None
    number: int | None
    sort_length: int
    is_newer: bool = False  # than 10.11


@dataclass(frozen=True, slots=True)
class CharacterSet:
    name: str
    description: str
    size_max: int  # bytes of its longest character
    old_default: str

    def default_collation(self, *, is_uca: bool) -> str:
        """`is_uca`: since 11.5, where the Unicode ones have another one."""
        return f"{self.name}_uca1400_ai_ci" if is_uca and self.name in UCA_1400_CHARSETS else self.old_default


@functools.cache
def character_sets() -> dict[str, CharacterSet]:
    return {
        name: CharacterSet(name, description, int(size_max), f"{name}_{default}".removesuffix("_"))
        for name, description, size_max, _, default, _ in CHARACTER_SETS
    }


@functools.cache
def collations() -> dict[str, Collation]:
    found = []
    for charset, *_, entries in CHARACTER_SETS:
        found += [_collation(charset, entry) for entry in entries.split()]
        if charset == "utf8mb4":
            found += _for_any_unicode()
    return {collation.name: collation for collation in found}


def find_charset(name: str) -> str | None:
    """The current name, in lower case; None if unknown."""
    known = {"utf8": "utf8mb3"}.get(name.lower(), name.lower())
    return known if known in character_sets() else None


def find_collation(name: str, charset: str | None = None) -> str | None:
    """The full name, None if unknown; one for any Unicode character set is of `charset`."""
    known = name.lower()
    if known.startswith("utf8_"):
        known = f"utf8mb3_{known.removeprefix('utf8_')}"
    collation = collations().get(known)
    if collation is not None and collation.charset is None:
        return f"{charset}_{known}" if charset in UCA_1400_CHARSETS else None
    if collation is None:
        prefix, _, end = known.partition("_")
        is_unicode = prefix in UCA_1400_CHARSETS and end in collations()
        return known if is_unicode and collations()[end].charset is None else None
    return known


def charset_of_collation(name: str) -> str:
    collation = collations().get(name)
    return (collation.charset if collation is not None else None) or name.partition("_")[0]


def collation_name(number: int) -> str | None:
    return _names().get(number)


def collation_number(name: str) -> int | None:
    return _numbers().get(name)


def sent_collation_number(name: str) -> int | None:
    """As column definitions have it, if known. Source: MariaDB 11.8, ctype-uca1400.h, and answers of 11.8."""
    number = collation_number(name)
    return _UCA_1400_SENT.get(charset_of_collation(name)) if number is None or number >= UCA_1400 else number


@functools.cache
def _names() -> dict[int, str]:
    found = {one.number: one.name for one in collations().values() if one.number is not None}
    for index, charset in enumerate(UCA_1400_CHARSETS):
        for end, one in enumerate(_for_any_unicode()):
            end += len(UNUSED_ENDS) if end >= UNUSED_ENDS.start else 0
            found[UCA_1400 + index * UCA_1400_STEP + end] = f"{charset}_{one.name}"
    return found


@functools.cache
def _numbers() -> dict[str, int]:
    return {name: number for number, name in _names().items()}


def _collation(charset: str, entry: str) -> Collation:
    end, _, numbers = entry.removeprefix("+").partition("=")
    number, _, sort_length = numbers.partition("/")
    name = f"{charset}_{end}".removesuffix("_")
    return Collation(name, charset, int(number), int(sort_length or 1), is_newer=entry.startswith("+"))


@functools.cache
def _for_any_unicode() -> list[Collation]:
    return [
        Collation(f"uca1400{language}{pad}_{strength}", None, None, 8)
        for language in ("", *(f"_{language}" for language in _UCA_1400_LANGUAGES.split()))
        for pad in ("", "_nopad")
        for strength in ("ai_ci", "ai_cs", "as_ci", "as_cs")
    ]
