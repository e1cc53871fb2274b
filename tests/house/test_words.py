"""Names are made of the words of protocol/glossary.md, and each means one thing; invariants name their tests."""

import ast
import functools
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
MACHINERY = ROOT / "tests" / "machinery"
GLOSSARY = ROOT / "protocol" / "glossary.md"
PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")  # of CamelCase: LSN, Log, Position

#: Words of public class names that mean what they mean anywhere, also outside of this field.
EVERYDAY = frozenset((ROOT / "tests/house/everyday_words.txt").read_text().split())


@functools.cache
def sources() -> list[Path]:
    machinery = {path for path in MACHINERY.glob("*.py") if not path.name.startswith("test_")}
    return sorted(machinery | set(SOURCE.rglob("*.py")) - set(SOURCE.glob("*/adapters/*/*.py")))


@functools.cache
def public_classes() -> dict[str, list[str]]:
    """Each name with the places where a class is called so."""
    found = defaultdict(list)
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return found


def terms() -> set[str]:
    """The terms of the glossary: what stands before each meaning, cut at commas and colons."""
    rows = [line.split("|")[1] for line in GLOSSARY.read_text().splitlines() if line.startswith("| ")][1:]
    return {part.strip() for row in rows for part in re.split(r"[,:]", row) if part.strip(" -")}


def words_of(text: str) -> set[str]:
    """The words of a term or a name, in lower case and without the s of many."""
    return {_singular(part.lower()) for part in PARTS.findall(text)}


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def test_no_public_class_name_means_two_things() -> None:
    assert {name: places for name, places in public_classes().items() if len(places) > 1} == {}


def test_each_word_of_a_class_name_is_a_term_or_an_everyday_word() -> None:
    known = set().union(*map(words_of, terms())) | {_singular(word) for word in EVERYDAY}

    assert {name: sorted(words_of(name) - known) for name in public_classes() if words_of(name) - known} == {}


def test_an_everyday_word_is_no_term() -> None:
    assert sorted({_singular(word) for word in EVERYDAY} & set().union(*map(words_of, terms()))) == []


def test_each_term_is_in_a_name_or_in_a_description_of_bytes() -> None:
    names = [path.stem for path in sources()]
    for path in sources():
        kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        names += [node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)]
    used = set().union(*map(words_of, names))
    texts = " ".join(
        path.read_text()
        for path in [*(ROOT / "protocol").rglob("*.md"), *(ROOT / "docs").glob("*.md")]
        if path != GLOSSARY
    ).lower()

    assert [term for term in sorted(terms()) if not words_of(term) <= used and term.lower() not in texts] == []


def test_each_invariant_names_tests_that_exist() -> None:
    tests = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        tests |= set(re.findall(r"def (test_\w+)\(", path.read_text()))
    missing = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                continue
            for bullet in _invariants(ast.get_docstring(node) or ""):
                named = re.findall(r"\btest_\w+", bullet)
                if not named or set(named) - tests:
                    missing.append(
                        f"{path.relative_to(ROOT)}: {bullet[:70]}: {sorted(set(named) - tests) or 'no test'}"
                    )

    assert missing == []


def _invariants(docstring: str) -> list[str]:
    """The bullets under the heading `Invariants:`, each in one line."""
    below = docstring.partition("Invariants:")[2]
    bullets = re.findall(r"^ *[-*] (.*(?:\n+ +(?![-*] ).*)*)", below, re.MULTILINE)
    return [" ".join(bullet.split()) for bullet in bullets]


#: What no reader of English expects in prose and names.
ODD_WORDS = re.compile(
    r"\b(?:[Ss]urroundings|[Mm]ishaps?|Skipping\(|_receive_with_care|pass(?:es|ed|ing)? over|pass_over"
    r"|g(?:ive|iven|ives|iving|ave) back|give_back|settled?|light(?:_| )statements?|(?:can|cannot|to) be had"
    r"|[Ss]o (?:many|much)|XaState\.GONE)\b"
)
#: The same, of which some are left; these numbers only get smaller.
LEFT = {
    r"\b(?:[Ss]omebody|[Ww]hoever|[Nn]obody|[Ee]verybody)\b": 21,
    r"\b(?:[Tt]ells?|[Tt]old|[Tt]elling)\b": 111,
    r"\b[Bb]ehind\b": 155,
}
#: Its own words are a journal's, in which consumers tell what they got.
TOLD_BY_CONSUMERS = (ROOT / "protocol/scorecard/results.md", SOURCE / "ibbmaster_scorecard")


def prose() -> str:
    paths = [*SOURCE.rglob("*.py"), *(ROOT / "protocol").rglob("*.md"), *(ROOT / "docs").glob("*.md")]
    paths.append(ROOT / "README.md")
    kept = [path for path in paths if not any(own == path or own in path.parents for own in TOLD_BY_CONSUMERS)]
    return "\n".join(path.read_text() for path in kept)


def test_prose_has_no_odd_words_or_fewer_and_fewer() -> None:
    """Who meets a ceiling says who does what, with the usual verb: "reports" for "tells", "after" for "behind"."""
    text = prose()
    found = {pattern: len(re.findall(pattern, text)) for pattern in LEFT}

    assert sorted(set(ODD_WORDS.findall(text))) == []
    assert {pattern: count for pattern, count in found.items() if count > LEFT[pattern]} == {}
