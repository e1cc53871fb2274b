"""Options of a command from the file of `--config` and from the environment. The table of options says which there are:
a key is a long flag without its dashes, or the name of an argument; sections are commands.
"""

import argparse
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ibbmaster.api.accounts import did_you_mean, expect_private, small_text
from ibbmaster.errors import ConfigurationError
from .options import configured_commands

OWN_KEYS = ("help", "config", "check-config")  # on the command line only
ACCOUNT_KEYS = ("user", "password", "password-file", "source-password-file")  # `credentials` knows their order
VARIABLE = "IBBMASTER_"
PASSWORD_IN_URL = re.compile(r"://[^/@]*:[^/@]*@")
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {  # by the name of the type of an option; others take a text
    "int": ((int,), "a number"),
    "float": ((int, float), "a number"),
    "size": ((int, str), 'a size, as 67108864 or "64M"'),
}


class _Replaceable(list[str]):
    """Values of an option in place of which the command line gives its own."""

    def __copy__(self) -> list[str]:
        return []


def configure(
    parser: argparse.ArgumentParser, command: str, given: Sequence[str], environment: Mapping[str, str] = os.environ
) -> None:
    """Make defaults of what file and environment say. Raises ConfigurationError: a line for each mistake."""
    options = {key: action for action in parser._actions for key in _keys(action)}
    path = _path_of(given)
    problems: list[str] = []
    file = {} if path is None else dict(_in_file(path, command, options, problems))
    parser.set_defaults(given=list(given), configured={key: file[key] for key in ACCOUNT_KEYS if key in file})
    variables = {key: environment[name] for key in options if (name := _variable(key)) in environment}
    for key, action in options.items():
        if key in ACCOUNT_KEYS or key not in file.keys() | variables.keys():
            continue
        if key in variables:
            try:
                file[key] = _read_variable(action, variables[key])
            except ConfigurationError as error:
                problems.append(f"{_variable(key)}: {error}")
                continue
        _set_default(action, file[key])
    if problems:
        raise ConfigurationError("\nibbmaster: ".join(problems))


def _keys(action: argparse.Action) -> list[str]:
    names = [flag.removeprefix("--") for flag in action.option_strings if flag.startswith("--")] or [action.dest]
    return [name for name in names if name not in OWN_KEYS]


def _variable(key: str) -> str:
    return VARIABLE + key.upper().replace("-", "_")


def _path_of(given: Sequence[str]) -> Path | None:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--config", type=Path)
    try:
        path: Path | None = parser.parse_known_args(given)[0].config
    except argparse.ArgumentError:
        return None  # the parser of the command says it
    return path


def _in_file(
    path: Path, command: str, options: Mapping[str, argparse.Action], problems: list[str]
) -> Iterator[tuple[str, Any]]:
    text = small_text(path)
    try:
        sections = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        problems.append(f"{path} is not TOML: {error}")
        return
    commands = configured_commands()
    for name, section in sections.items():
        if not isinstance(section, dict):
            problems.append(f"{path}{_line(text, '', name)}: {name!r} is in no section: put it below [{command}]")
        elif name not in commands:
            hint = did_you_mean(name, commands) or f", expected {', '.join(commands)}"
            problems.append(f"{path}{_line(text, name)}: there is no section [{name}]{hint}")
    own = sections.get(command)
    for key, value in own.items() if isinstance(own, dict) else ():
        where = f"{path}{_line(text, command, key)}"
        if key not in options:
            hint = did_you_mean(key, list(options)) or f": `ibbmaster {command} --help` lists all"
            problems.append(f"{where}: [{command}] has no key {key!r}{hint}")
            continue
        try:
            if key == "password" or PASSWORD_IN_URL.search(str(value)):
                expect_private(path)
            yield key, _value(options[key], value)
        except ConfigurationError as error:
            problems.append(f"{where}: {key}: {error}")


def _line(text: str, section: str, key: str = "") -> str:
    """Where a key, or a section, is written plainly."""
    current = ""
    for number, line in enumerate(text.splitlines(), 1):
        if found := re.match(r"\s*\[\s*([\w-]+)\s*\]", line):
            current = found[1]
            if not key and current == section:
                return f" line {number}"
        elif key and current == section and re.match(rf"""\s*["']?{re.escape(key)}["']?\s*=""", line):
            return f" line {number}"
    return ""


def _value(action: argparse.Action, value: object) -> Any:
    """Raises ConfigurationError: the option takes no such value."""
    if isinstance(action, argparse._StoreTrueAction):
        if not isinstance(value, bool):
            raise ConfigurationError(f"expected true or false, found {value!r}")
        return value
    if isinstance(action, argparse._AppendAction):
        values = value if isinstance(value, list) else [value]
        return _Replaceable(_single(action, one) for one in values)
    return _single(action, value)


def _single(action: argparse.Action, value: object) -> Any:
    kind = action.type
    types, expected = _TYPES.get(getattr(kind, "__name__", ""), ((str,), "a text in quotes"))
    if isinstance(value, bool) or not isinstance(value, types):
        raise ConfigurationError(f"expected {expected}, found {value!r}")
    try:
        made = kind(str(value)) if callable(kind) else value
    except argparse.ArgumentTypeError as error:
        raise ConfigurationError(str(error)) from None
    except ValueError:
        raise ConfigurationError(f"expected {expected}, found {value!r}") from None
    if action.choices is not None and made not in action.choices:
        choices = list(map(str, action.choices))
        raise ConfigurationError(f"{value!r} is none of {', '.join(choices)}{did_you_mean(str(value), choices)}")
    return made


def _read_variable(action: argparse.Action, text: str) -> Any:
    """As `_value`, of a text that may be TOML without its quotes."""
    if isinstance(action, argparse._AppendAction) or action.type in (int, float) or text in ("true", "false"):
        try:
            return _value(action, tomllib.loads(f"value = {text}")["value"])
        except tomllib.TOMLDecodeError:
            pass
    return _value(action, text)


def _set_default(action: argparse.Action, value: object) -> None:
    action.default, action.required = value, False
    if not action.option_strings:
        action.nargs = "?"
