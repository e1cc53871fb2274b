"""Commands as a user calls them."""

import signal
from collections.abc import Callable, Iterator

import pytest

from ibbmaster.commands.cli.main import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def hears_interrupts() -> Iterator[None]:
    """Have a test and what it starts hear ^C: where a shell began the tests with `&`, they ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
