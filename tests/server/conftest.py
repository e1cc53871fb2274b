"""A primary in this process, over real sockets, and clients for it."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pymysql
import pytest
import trio

from ibbmaster.dump.profile import PROFILES, Profile
from ibbmaster.server.certificate import make_certificate
from ibbmaster.server.options import PrimaryOptions
from ibbmaster.server.primary import Primary
from ibbmaster.store.convert import import_classic
from ibbmaster.store.directory import BinlogDirectory
from ibbmaster.store.disk import RealDisk
from ibbmaster.wire.auth import make_account

CLASSIC = Path(__file__).parents[2] / "fixtures" / "classic" / "10.11"
USER, PASSWORD = "repl", "replpw"

Serving = Callable[..., AbstractAsyncContextManager[tuple[Primary, int]]]


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of .ibb files: many domains, servers and gaps, out of a real server's binlogs."""
    directory = tmp_path_factory.mktemp("archive")
    import_classic(sorted((CLASSIC / "domains").glob("binlog.0*")), RealDisk(directory), max_file_bytes=1 << 20)
    return directory


@pytest.fixture
def serving() -> Serving:
    """Serve a directory for the length of a block: gives the primary and its port."""

    @contextlib.asynccontextmanager
    async def serve(
        directory: Path, *, profile: str | Profile = "engine", auth: str = "native", tls: bool = False, **options: Any
    ) -> AsyncIterator[tuple[Primary, int]]:
        defaults = PrimaryOptions(
            host="127.0.0.1",
            port=0,
            account=make_account(USER, PASSWORD, plugin=auth),
            certificate=make_certificate() if tls else None,
            profile=PROFILES[profile] if isinstance(profile, str) else profile,
        )
        primary = Primary(BinlogDirectory(RealDisk(directory)), dataclasses.replace(defaults, **options))
        async with trio.open_nursery() as nursery:
            port = await nursery.start(primary.serve)
            yield primary, port
            primary.stop()

    return serve


@pytest.fixture
def ask() -> Callable[..., Any]:
    """Run statements over one PyMySQL connection, in a thread; gives the rows of the last."""

    async def ask(port: int, *statements: str, **settings: Any) -> Any:
        def work() -> Any:
            connection = pymysql.connect(
                host="127.0.0.1", port=port, **{"user": USER, "password": PASSWORD, "ssl_disabled": True, **settings}
            )
            with connection, connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                return cursor.fetchall()

        return await trio.to_thread.run_sync(work, abandon_on_cancel=True)

    return ask
