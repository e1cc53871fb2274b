"""A page of HTML as its elements and texts, and as a browser shows it."""

import contextlib
import os
import shutil
import signal
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium is on this machine: run `sh .ci/prepare tests`"
)
BROWSER_TIMEOUT_S = 300  # it only ends what hangs
VIRTUAL_MS = 5000  # of the page's own clock, which does not wait


class SeenPage(HTMLParser):
    VOID = frozenset({"meta", "input", "br"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> ends nothing"

    def handle_data(self, data: str) -> None:
        if "script" not in self._open and "style" not in self._open:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def root(self) -> dict[str, str | None]:
        return self.of("html")[0]


def browse(page: str, directory: Path, *options: str, at: str = "") -> str:
    path = directory / "page.html"
    path.write_text(page, encoding="utf-8")
    assert CHROMIUM
    command = [
        *(CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
        *(f"--user-data-dir={directory / 'profile'}", f"--virtual-time-budget={VIRTUAL_MS}", "--window-size=1400,900"),
        *("--disable-background-networking", "--proxy-server=127.0.0.1:1", "--disable-breakpad"),
        *options,
        path.as_uri() + at,
    ]
    browser = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )
    try:
        printed, _ = browser.communicate(timeout=BROWSER_TIMEOUT_S)
        assert browser.returncode == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(browser.pid, signal.SIGKILL)  # it is several processes
    return printed
