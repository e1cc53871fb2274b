"""Character sets and collations as SHOW CHARACTER SET and SHOW COLLATION list them: facts of MariaDB 10.11 and 11.8.

Collected from both servers' answers.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ibbmaster.event.rows.charset import UCA_1400, UCA_1400_CHARSETS, UCA_1400_STEP

#: Name, description, bytes of the longest character, end of the default collation's name up to 11.4, and the
#: collations: end of the name = number / sort length where that is not 1. With + those that are newer than 10.11.
_TABLE: tuple[tuple[str, str, int, str, str], ...] = (
    ("big5", "Big5 Traditional Chinese", 2, "chinese_ci", "chinese_ci=1 bin=84 chinese_nopad_ci=1025 nopad_bin=1108"),
    ("dec8", "DEC West European", 1, "swedish_ci", "swedish_ci=3 bin=69 swedish_nopad_ci=1027 nopad_bin=1093"),
    ("cp850", "DOS West European", 1, "general_ci", "general_ci=4 bin=80 general_nopad_ci=1028 nopad_bin=1104"),
    ("hp8", "HP West European", 1, "english_ci", "english_ci=6 bin=72 english_nopad_ci=1030 nopad_bin=1096"),
    ("koi8r", "KOI8-R Relcom Russian", 1, "general_ci", "general_ci=7 bin=74 general_nopad_ci=1031 nopad_bin=1098"),
    (
        "latin1",
        "cp1252 West European",
        1,
        "swedish_ci",
        "german1_ci=5 swedish_ci=8 danish_ci=15 german2_ci=31/2 bin=47 general_ci=48 general_cs=49 "
        "spanish_ci=94 swedish_nopad_ci=1032 nopad_bin=1071",
    ),
    (
        "latin2",
        "ISO 8859-2 Central European",
        1,
        "general_ci",
        "czech_cs=2/4 general_ci=9 hungarian_ci=21 croatian_ci=27 bin=77 general_nopad_ci=1033 nopad_bin=1101",
    ),
    ("swe7", "7bit Swedish", 1, "swedish_ci", "swedish_ci=10 bin=82 swedish_nopad_ci=1034 nopad_bin=1106"),
    ("ascii", "US ASCII", 1, "general_ci", "general_ci=11 bin=65 general_nopad_ci=1035 nopad_bin=1089"),
    ("ujis", "EUC-JP Japanese", 3, "japanese_ci", "japanese_ci=12 bin=91 japanese_nopad_ci=1036 nopad_bin=1115"),
    ("sjis", "Shift-JIS Japanese", 2, "japanese_ci", "japanese_ci=13 bin=88 japanese_nopad_ci=1037 nopad_bin=1112"),
    ("hebrew", "ISO 8859-8 Hebrew", 1, "general_ci", "general_ci=16 bin=71 general_nopad_ci=1040 nopad_bin=1095"),
    ("tis620", "TIS620 Thai", 1, "thai_ci", "thai_ci=18/4 bin=89 thai_nopad_ci=1042/4 nopad_bin=1113"),
    ("euckr", "EUC-KR Korean", 2, "korean_ci", "korean_ci=19 bin=85 korean_nopad_ci=1043 nopad_bin=1109"),
    ("koi8u", "KOI8-U Ukrainian", 1, "general_ci", "general_ci=22 bin=75 general_nopad_ci=1046 nopad_bin=1099"),
    (
        "gb2312",
        "GB2312 Simplified Chinese",
        2,
        "chinese_ci",
        "chinese_ci=24 bin=86 chinese_nopad_ci=1048 nopad_bin=1110",
    ),
    ("greek", "ISO 8859-7 Greek", 1, "general_ci", "general_ci=25 bin=70 general_nopad_ci=1049 nopad_bin=1094"),
    (
        "cp1250",
        "Windows Central European",
        1,
        "general_ci",
        "general_ci=26 czech_cs=34/2 croatian_ci=44 bin=66 polish_ci=99 general_nopad_ci=1050 nopad_bin=1090",
    ),
    ("gbk", "GBK Simplified Chinese", 2, "chinese_ci", "chinese_ci=28 bin=87 chinese_nopad_ci=1052 nopad_bin=1111"),
    ("latin5", "ISO 8859-9 Turkish", 1, "turkish_ci", "turkish_ci=30 bin=78 turkish_nopad_ci=1054 nopad_bin=1102"),
    ("armscii8", "ARMSCII-8 Armenian", 1, "general_ci", "general_ci=32 bin=64 general_nopad_ci=1056 nopad_bin=1088"),
    (
        "utf8mb3",
        "UTF-8 Unicode",
        3,
        "general_ci",
        "general_ci=33 bin=83 unicode_ci=192/8 icelandic_ci=193/8 latvian_ci=194/8 romanian_ci=195/8 "
        "slovenian_ci=196/8 polish_ci=197/8 estonian_ci=198/8 spanish_ci=199/8 swedish_ci=200/8 "
        "turkish_ci=201/8 czech_ci=202/8 danish_ci=203/8 lithuanian_ci=204/8 slovak_ci=205/8 "
        "spanish2_ci=206/8 roman_ci=207/8 persian_ci=208/8 esperanto_ci=209/8 hungarian_ci=210/8 "
        "sinhala_ci=211/8 german2_ci=212/8 croatian_mysql561_ci=213/8 unicode_520_ci=214/8 "
        "vietnamese_ci=215/8 general_mysql500_ci=223 croatian_ci=576/8 myanmar_ci=577/8 thai_520_w2=578/4 "
        "+general1400_as_ci=579 general_nopad_ci=1057 nopad_bin=1107 unicode_nopad_ci=1216/8 "
        "unicode_520_nopad_ci=1238/8",
    ),
    (
        "ucs2",
        "UCS-2 Unicode",
        2,
        "general_ci",
        "general_ci=35 bin=90 unicode_ci=128/8 icelandic_ci=129/8 latvian_ci=130/8 romanian_ci=131/8 "
        "slovenian_ci=132/8 polish_ci=133/8 estonian_ci=134/8 spanish_ci=135/8 swedish_ci=136/8 "
        "turkish_ci=137/8 czech_ci=138/8 danish_ci=139/8 lithuanian_ci=140/8 slovak_ci=141/8 "
        "spanish2_ci=142/8 roman_ci=143/8 persian_ci=144/8 esperanto_ci=145/8 hungarian_ci=146/8 "
        "sinhala_ci=147/8 german2_ci=148/8 croatian_mysql561_ci=149/8 unicode_520_ci=150/8 "
        "vietnamese_ci=151/8 general_mysql500_ci=159 croatian_ci=640/8 myanmar_ci=641/8 thai_520_w2=642/4 "
        "general_nopad_ci=1059 nopad_bin=1114 unicode_nopad_ci=1152/8 unicode_520_nopad_ci=1174/8",
    ),
    ("cp866", "DOS Russian", 1, "general_ci", "general_ci=36 bin=68 general_nopad_ci=1060 nopad_bin=1092"),
    (
        "keybcs2",
        "DOS Kamenicky Czech-Slovak",
        1,
        "general_ci",
        "general_ci=37 bin=73 general_nopad_ci=1061 nopad_bin=1097",
    ),
    ("macce", "Mac Central European", 1, "general_ci", "general_ci=38 bin=43 general_nopad_ci=1062 nopad_bin=1067"),
    ("macroman", "Mac West European", 1, "general_ci", "general_ci=39 bin=53 general_nopad_ci=1063 nopad_bin=1077"),
    ("cp852", "DOS Central European", 1, "general_ci", "general_ci=40 bin=81 general_nopad_ci=1064 nopad_bin=1105"),
    (
        "latin7",
        "ISO 8859-13 Baltic",
        1,
        "general_ci",
        "estonian_cs=20 general_ci=41 general_cs=42 bin=79 general_nopad_ci=1065 nopad_bin=1103",
    ),
    (
        "utf8mb4",
        "UTF-8 Unicode",
        4,
        "general_ci",
        "general_ci=45 bin=46 unicode_ci=224/8 icelandic_ci=225/8 latvian_ci=226/8 romanian_ci=227/8 "
        "slovenian_ci=228/8 polish_ci=229/8 estonian_ci=230/8 spanish_ci=231/8 swedish_ci=232/8 "
        "turkish_ci=233/8 czech_ci=234/8 danish_ci=235/8 lithuanian_ci=236/8 slovak_ci=237/8 "
        "spanish2_ci=238/8 roman_ci=239/8 persian_ci=240/8 esperanto_ci=241/8 hungarian_ci=242/8 "
        "sinhala_ci=243/8 german2_ci=244/8 croatian_mysql561_ci=245/8 unicode_520_ci=246/8 "
        "vietnamese_ci=247/8 +0900_ai_ci=255/8 +de_pb_0900_ai_ci=256/8 +is_0900_ai_ci=257/8 "
        "+lv_0900_ai_ci=258/8 +ro_0900_ai_ci=259/8 +sl_0900_ai_ci=260/8 +pl_0900_ai_ci=261/8 "
        "+et_0900_ai_ci=262/8 +es_0900_ai_ci=263/8 +sv_0900_ai_ci=264/8 +tr_0900_ai_ci=265/8 "
        "+cs_0900_ai_ci=266/8 +da_0900_ai_ci=267/8 +lt_0900_ai_ci=268/8 +sk_0900_ai_ci=269/8 "
        "+es_trad_0900_ai_ci=270/8 +la_0900_ai_ci=271/8 +eo_0900_ai_ci=273/8 +hu_0900_ai_ci=274/8 "
        "+hr_0900_ai_ci=275/8 +vi_0900_ai_ci=277/8 +0900_as_cs=278/8 +de_pb_0900_as_cs=279/8 "
        "+is_0900_as_cs=280/8 +lv_0900_as_cs=281/8 +ro_0900_as_cs=282/8 +sl_0900_as_cs=283/8 "
        "+pl_0900_as_cs=284/8 +et_0900_as_cs=285/8 +es_0900_as_cs=286/8 +sv_0900_as_cs=287/8 "
        "+tr_0900_as_cs=288/8 +cs_0900_as_cs=289/8 +da_0900_as_cs=290/8 +lt_0900_as_cs=291/8 "
        "+sk_0900_as_cs=292/8 +es_trad_0900_as_cs=293/8 +la_0900_as_cs=294/8 +eo_0900_as_cs=296/8 "
        "+hu_0900_as_cs=297/8 +hr_0900_as_cs=298/8 +vi_0900_as_cs=300/8 +0900_as_ci=305/8 +0900_bin=309 "
        "croatian_ci=608/8 myanmar_ci=609/8 thai_520_w2=610/4 +general1400_as_ci=611 general_nopad_ci=1069 "
        "nopad_bin=1070 unicode_nopad_ci=1248/8 unicode_520_nopad_ci=1270/8",
    ),
    (
        "cp1251",
        "Windows Cyrillic",
        1,
        "general_ci",
        "bulgarian_ci=14 ukrainian_ci=23 bin=50 general_ci=51 general_cs=52 nopad_bin=1074 general_nopad_ci=1075",
    ),
    (
        "utf16",
        "UTF-16 Unicode",
        4,
        "general_ci",
        "general_ci=54 bin=55 unicode_ci=101/8 icelandic_ci=102/8 latvian_ci=103/8 romanian_ci=104/8 "
        "slovenian_ci=105/8 polish_ci=106/8 estonian_ci=107/8 spanish_ci=108/8 swedish_ci=109/8 "
        "turkish_ci=110/8 czech_ci=111/8 danish_ci=112/8 lithuanian_ci=113/8 slovak_ci=114/8 "
        "spanish2_ci=115/8 roman_ci=116/8 persian_ci=117/8 esperanto_ci=118/8 hungarian_ci=119/8 "
        "sinhala_ci=120/8 german2_ci=121/8 croatian_mysql561_ci=122/8 unicode_520_ci=123/8 "
        "vietnamese_ci=124/8 croatian_ci=672/8 myanmar_ci=673/8 thai_520_w2=674/4 general_nopad_ci=1078 "
        "nopad_bin=1079 unicode_nopad_ci=1125/8 unicode_520_nopad_ci=1147/8",
    ),
    ("utf16le", "UTF-16LE Unicode", 4, "general_ci", "general_ci=56 bin=62 general_nopad_ci=1080 nopad_bin=1086"),
    ("cp1256", "Windows Arabic", 1, "general_ci", "general_ci=57 bin=67 general_nopad_ci=1081 nopad_bin=1091"),
    (
        "cp1257",
        "Windows Baltic",
        1,
        "general_ci",
        "lithuanian_ci=29 bin=58 general_ci=59 nopad_bin=1082 general_nopad_ci=1083",
    ),
    (
        "utf32",
        "UTF-32 Unicode",
        4,
        "general_ci",
        "general_ci=60 bin=61 unicode_ci=160/8 icelandic_ci=161/8 latvian_ci=162/8 romanian_ci=163/8 "
        "slovenian_ci=164/8 polish_ci=165/8 estonian_ci=166/8 spanish_ci=167/8 swedish_ci=168/8 "
        "turkish_ci=169/8 czech_ci=170/8 danish_ci=171/8 lithuanian_ci=172/8 slovak_ci=173/8 "
        "spanish2_ci=174/8 roman_ci=175/8 persian_ci=176/8 esperanto_ci=177/8 hungarian_ci=178/8 "
        "sinhala_ci=179/8 german2_ci=180/8 croatian_mysql561_ci=181/8 unicode_520_ci=182/8 "
        "vietnamese_ci=183/8 croatian_ci=736/8 myanmar_ci=737/8 thai_520_w2=738/4 general_nopad_ci=1084 "
        "nopad_bin=1085 unicode_nopad_ci=1184/8 unicode_520_nopad_ci=1206/8",
    ),
    ("binary", "Binary pseudo charset", 1, "", "=63"),
    ("geostd8", "GEOSTD8 Georgian", 1, "general_ci", "general_ci=92 bin=93 general_nopad_ci=1116 nopad_bin=1117"),
    (
        "cp932",
        "SJIS for Windows Japanese",
        2,
        "japanese_ci",
        "japanese_ci=95 bin=96 japanese_nopad_ci=1119 nopad_bin=1120",
    ),
    (
        "eucjpms",
        "UJIS for Windows Japanese",
        3,
        "japanese_ci",
        "japanese_ci=97 bin=98 japanese_nopad_ci=1121 nopad_bin=1122",
    ),
)
#: Collations named without a character set, for any of the Unicode ones.
_UCA_1400_LANGUAGES = (
    "icelandic latvian romanian slovenian polish estonian spanish swedish turkish czech danish lithuanian "
    "slovak spanish2 roman persian esperanto hungarian sinhala german2 vietnamese croatian "
)


#: What clients get instead of a UCA 14.0 collation, whose numbers they do not know: that of UCA 4.0.
_UCA_1400_SENT = {"utf8mb3": 192, "utf8mb4": 224, "ucs2": 128, "utf16": 101, "utf32": 160}
UNUSED_ENDS = range(21 * 8, 23 * 8)  # two languages between german2 and vietnamese that have numbers and no name


@dataclass(frozen=True, slots=True)
class Collation:
    """One line of SHOW COLLATION; those for any Unicode character set have neither one nor a number."""

    name: str
    charset: str | None
    number: int | None
    sort_length: int
    is_newer: bool = False  # than 10.11


@dataclass(frozen=True, slots=True)
class CharacterSet:
    """One line of SHOW CHARACTER SET."""

    name: str
    description: str
    size_max: int  # bytes of its longest character
    old_default: str

    def default_collation(self, *, is_uca: bool) -> str:
        """The collation it means without COLLATE; `is_uca`: since 11.5, where the Unicode ones have another one."""
        return f"{self.name}_uca1400_ai_ci" if is_uca and self.name in UCA_1400_CHARSETS else self.old_default


@functools.cache
def character_sets() -> dict[str, CharacterSet]:
    """All of them by name, in the order they are listed."""
    return {
        name: CharacterSet(name, description, size_max, f"{name}_{default}".removesuffix("_"))
        for name, description, size_max, default, _ in _TABLE
    }


@functools.cache
def collations() -> dict[str, Collation]:
    """All of them by name, in the order they are listed."""
    found = []
    for charset, *_, entries in _TABLE:
        found += [_collation(charset, entry) for entry in entries.split()]
        if charset == "utf8mb4":  # where servers list those for any Unicode character set
            found += _for_any_unicode()
    return {collation.name: collation for collation in found}


def find_charset(name: str) -> str | None:
    """The name of a character set in lower case as MariaDB has it today, None if there is no such one."""
    known = {"utf8": "utf8mb3"}.get(name.lower(), name.lower())
    return known if known in character_sets() else None


def find_collation(name: str, charset: str | None = None) -> str | None:
    """The full name of a collation, None if there is no such one; for any Unicode character set: that of `charset`."""
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
    """The character set of a full name that `find_collation` gave."""
    collation = collations().get(name)
    return (collation.charset if collation is not None else None) or name.partition("_")[0]


def collation_name(number: int) -> str | None:
    """The name of a collation, None if the number is unknown here."""
    if number < UCA_1400:
        return _names().get(number)
    index, end = divmod(number - UCA_1400, UCA_1400_STEP)
    if end >= UNUSED_ENDS.start:
        end = -1 if end in UNUSED_ENDS else end - len(UNUSED_ENDS)
    ends = _for_any_unicode()
    is_known = index < len(UCA_1400_CHARSETS) and 0 <= end < len(ends)
    return f"{UCA_1400_CHARSETS[index]}_{ends[end].name}" if is_known else None


def collation_number(name: str) -> int | None:
    """The number of a collation by its full name, None if that is unknown here: the inverse of `collation_name`."""
    found = collations().get(name)
    if found is not None:
        return found.number
    charset, _, end_name = name.partition("_")
    ends = [one.name for one in _for_any_unicode()]
    if charset not in UCA_1400_CHARSETS or end_name not in ends:
        return None
    end = ends.index(end_name)
    end += len(UNUSED_ENDS) if end >= UNUSED_ENDS.start else 0
    return UCA_1400 + UCA_1400_CHARSETS.index(charset) * UCA_1400_STEP + end


def sent_collation_number(name: str) -> int | None:
    """The number that definitions of columns have for a collation; None if that is unknown here.

    Source: MariaDB 11.8, ctype-uca1400.h, and what a server of 11.8 sends.
    """
    number = collation_number(name)
    return _UCA_1400_SENT.get(charset_of_collation(name)) if number is None or number >= UCA_1400 else number


@functools.cache
def _names() -> dict[int, str]:
    return {one.number: one.name for one in collations().values() if one.number is not None}


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
