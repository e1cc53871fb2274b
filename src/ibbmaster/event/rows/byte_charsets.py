"""Character sets of single bytes that Python has no codec for, as codecs of their own.

Each is Latin-1 but for some bytes; a byte of which nothing is known is U+FFFE, which is no character. Of several bytes
that mean one letter the first is written. MariaDB 10.11 and 11.8 were asked for each byte, in both directions.
"""

from __future__ import annotations

import codecs

PREFIX = "ibbmaster_"  # of the codecs' names in Python
_LATIN1 = "".join(map(chr, range(256)))


_HOLE = "\ufffe"


def _with_all(*others: tuple[int, str]) -> str:
    """Latin-1 with other letters from some bytes on."""
    table = _LATIN1
    for start, letters in others:
        table = table[:start] + letters + table[start + len(letters) :]
    return table


#: By name, what each byte of a character set means.
TABLES = {
    "armscii8": _with_all(
        (0xA1, "❁§։)(»«—.՝,-՟…՜՛՞ԱաԲբԳգԴդԵեԶզԷէԸըԹթԺժԻիԼլԽխԾծԿկՀհՁձՂղՃճՄմՅյՆնՇշՈ" + "ոՉչՊպՋջՌռՍսՎվՏտՐրՑցՒւՓփՔքՕօՖֆ’'"),
    ),
    "dec8": _with_all(
        (0xA4, "\ufffe¥\ufffe§¤"),
        (0xAC, _HOLE * 4),
        (0xB4, "\ufffe"),
        (0xB8, "\ufffe"),
        (0xBE, "\ufffe"),
        (0xD0, "\ufffe"),
        (0xD7, "Œ"),
        (0xDD, "Ÿ\ufffe"),
        (0xF0, "\ufffe"),
        (0xF7, "œ"),
        (0xFD, "ÿ\ufffe\ufffe"),
    ),
    "geostd8": _with_all(
        (0x80, "€\ufffe‚\ufffe„…†‡\ufffe‰\ufffe‹" + _HOLE * 5 + "‘’“”•–—\ufffe\ufffe\ufffe›" + _HOLE * 4),
        (0xC0, "აბგდევზჱთიკლმნჲოპჟრსტჳუფქღყშჩცძწჭხჴჯჰჵ" + _HOLE * 23 + "№\ufffe\ufffe"),
    ),
    "keybcs2": _with_all(
        (
            0x80,
            "ČüéďäĎŤčěĚĹÍľĺÄÁÉžŽôöÓůÚýÖÜŠĽÝŘťáíóúňŇŮÔšřŕŔ¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐"
            + "└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\xa0",
        ),
    ),
    "swe7": _with_all(
        (0x40, "É"),
        (0x5B, "ÄÖÅÜ_é"),
        (0x7B, "äöåü" + _HOLE * 129),
    ),
}


def codec_name(charset: str) -> str:
    """What Python calls the codec of a character set that stands here."""
    return PREFIX + charset


def _find(name: str) -> codecs.CodecInfo | None:
    table = TABLES.get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
    if table is None:
        return None
    numbers = {ord(letter): byte for byte, letter in reversed(list(enumerate(table))) if letter != _HOLE}
    return codecs.CodecInfo(
        lambda text, errors="strict": codecs.charmap_encode(text, errors, numbers),
        lambda data, errors="strict": codecs.charmap_decode(data, errors, table),
        name=name,
    )


codecs.register(_find)
