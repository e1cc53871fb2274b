"""Following a primary by the front door: which sources there are, and what is refused."""

import functools

import pytest
import trio

import ibbmaster
from ibbmaster.api.following import SourceOptions, primaries_of, server_id_of
from ibbmaster.errors import ConfigurationError, GtidOrderError, SourceError


def shown(source, **options):
    found = primaries_of(source, SourceOptions(**options), 9)
    return [(one.user, one.password, one.host, one.port) for one in found]


@pytest.mark.parametrize(
    ("source", "primaries"),
    [
        ("mysql://db1", [("repl", "", "db1", 3306)]),
        ("mysql://root@db1:3307/", [("root", "", "db1", 3307)]),
        ("mysql://root@%2Frun%2Fmysqld%2Fs", [("root", "", "/run/mysqld/s", 3306)]),
        ("mysql://me:a%20b%40c@[::1]:3307,db2", [("me", "a b@c", "::1", 3307), ("me", "a b@c", "db2", 3306)]),
    ],
)
def test_a_source_names_account_and_hosts(source, primaries):
    assert shown(source) == primaries


def test_the_password_of_the_source_comes_before_another():
    assert shown("mysql://u@h", password="file") == [("u", "file", "h", 3306)]
    assert shown("mysql://u:url@h", password="file") == [("u", "url", "h", 3306)]
    named = primaries_of("mysql://u:url@h:1,[::1]/", SourceOptions(), 9)
    assert ",".join(map(str, named)) == "h:1,[::1]:3306"


@pytest.mark.parametrize(
    "source",
    [
        "",
        "db1",
        "mysql://",
        "mysql://u@",
        "mysql://h:0",
        "mysql://h:70000",
        "mysql://h,",
        "mysql://h/db",
        "mysql://a:b:c",
    ],
)
def test_a_source_of_another_shape_is_refused_with_what_is_expected(source, tmp_path):
    with pytest.raises(ConfigurationError, match="expected mysql://USER@HOST"):
        ibbmaster.follow(source, tmp_path / "log")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"ca": "/nothing"}, "is for TLS that is verified"),
        ({"ca": "/nothing", "tls": "verify"}, "/nothing: no such file"),
        ({"server_id": 0}, "server id 0: expected 1 to"),
        ({"server_id": 2**32}, "server id 4294967296: expected 1 to"),
        ({"buffer_bytes": "x"}, "'x'"),
    ],
)
def test_options_that_cannot_be_used_are_named_before_anything_is_asked(options, problem, tmp_path):
    with pytest.raises(ConfigurationError, match=problem):
        ibbmaster.follow("mysql://127.0.0.1:1", tmp_path / "log", **options)


def test_each_directory_has_its_own_server_id(tmp_path):
    assert server_id_of(tmp_path) == server_id_of(tmp_path)
    assert server_id_of(tmp_path) != server_id_of(tmp_path / "other")
    assert 2**31 <= server_id_of(tmp_path) < 2**32


def test_who_cannot_be_reached_leaves_no_directory(tmp_path):
    with pytest.raises(SourceError, match=r"127\.0\.0\.1:1: Can't connect"):
        ibbmaster.follow("mysql://127.0.0.1:1", tmp_path / "log", tls="off")
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_password_is_the_primary_s_answer(tmp_path):
    with (
        ibbmaster.create(tmp_path / "primary") as log,
        ibbmaster.serve(log, password="x", tls="off") as served,
        pytest.raises(SourceError, match="Access denied for user 'repl'"),
    ):
        ibbmaster.follow(f"mysql://repl:y@{served.host}:{served.port}", tmp_path / "log", tls="off")


def waiting(followed):
    """At the end of the log: wait for more."""
    return lambda: followed.log.store.wait_for_growth(60.0)


@pytest.mark.parametrize("tls", ["off", "auto"])
def test_the_log_is_there_while_it_follows_and_can_be_served(tmp_path, tls):
    with ibbmaster.create(tmp_path / "primary") as primary:
        primary.append("0-1-1", "CREATE DATABASE shop")
        with (
            ibbmaster.serve(primary, password="x", tls=tls if tls == "off" else "required") as served,
            ibbmaster.follow(served.dsn, tmp_path / "log", tls=tls) as followed,
            ibbmaster.serve(followed.log, password="y", tls="off") as relay,
            ibbmaster.follow(relay.dsn, tmp_path / "second", tls="off") as second,
        ):
            gtids = (str(group.gtid) for group in second.log.groups(at_end=waiting(second)))
            assert next(gtids) == "0-1-1"
            primary.append("0-1-2", "CREATE DATABASE other")
            assert next(gtids) == "0-1-2"
            assert str(followed.log.state) == "0-1-2"
            assert not followed.wait(0)
    assert followed.status.state == "ended"


def test_verification_refuses_a_certificate_of_nobody_known(tmp_path):
    with (
        ibbmaster.create(tmp_path / "primary") as log,
        ibbmaster.serve(log, password="x", tls="required") as served,
        pytest.raises(SourceError, match=r"(?i)certificate"),
    ):
        ibbmaster.follow(served.dsn, tmp_path / "log", tls="verify")


async def test_as_a_task_it_follows_until_it_is_cancelled_and_its_log_is_closed_and_whole(tmp_path):
    with ibbmaster.create(tmp_path / "primary") as primary:
        primary.append("0-1-1", "CREATE DATABASE shop")
        with ibbmaster.serve(primary, password="x", tls="off") as served:
            async with trio.open_nursery() as nursery:
                follow = functools.partial(ibbmaster.follow_trio, served.dsn, tmp_path / "log", tls="off")
                followed = await nursery.start(follow)
                gtids = (str(group.gtid) for group in followed.log.groups(at_end=waiting(followed)))
                assert await trio.to_thread.run_sync(next, gtids) == "0-1-1"
                primary.append("0-1-2", "CREATE DATABASE other")
                assert await trio.to_thread.run_sync(next, gtids) == "0-1-2"
                nursery.cancel_scope.cancel()
    assert followed.status.state == "ended"
    with ibbmaster.open(tmp_path / "log", writable=True) as log:  # nobody else has it
        assert [str(group.gtid) for group in log] == ["0-1-1", "0-1-2"]
        assert list(log.verify()) == []


async def test_as_a_task_it_ends_with_what_is_logged_now_or_with_its_error(tmp_path):
    with ibbmaster.create(tmp_path / "primary") as primary:
        primary.append("0-1-1", "CREATE DATABASE shop")
        with ibbmaster.serve(primary, password="x", tls="off") as served:
            await ibbmaster.follow_trio(served.dsn, tmp_path / "log", tls="off", until_end=True)
            with ibbmaster.open(tmp_path / "log") as log:
                assert str(log.state) == "0-1-1"
            with pytest.raises(SourceError, match="Access denied"):
                await ibbmaster.follow_trio(f"mysql://repl:y@{served.host}:{served.port}", tmp_path / "log", tls="off")
    with ibbmaster.open(tmp_path / "log", writable=True) as log:
        assert str(log.state) == "0-1-1"


def test_numbers_of_two_servers_may_cross_and_those_of_one_server_not_go_back(tmp_path):
    """A log of a primary without gtid_strict_mode."""
    logged = ["0-1-1", "0-1-7", "0-2-3", "0-1-8", "0-2-4"]
    problem = "the primary sends 0-1-5, and this log has 0-1-8 already: a server that goes back in its numbers"
    with (
        ibbmaster.create(tmp_path / "primary", gtid_strict=False) as primary,
        ibbmaster.serve(primary, password="x", tls="off") as served,
    ):
        for gtid in logged:  # the position is at each of them once
            primary.append(gtid, "CREATE DATABASE shop")
            with ibbmaster.follow(served.dsn, tmp_path / "log", tls="off", until_end=True) as followed:
                followed.wait()
        primary.append("0-1-5", "CREATE DATABASE back")
        with pytest.raises(GtidOrderError, match=problem), ibbmaster.follow(served.dsn, tmp_path / "log") as followed:
            followed.wait()
    with ibbmaster.open(tmp_path / "log") as log:
        assert [str(group.gtid) for group in log] == logged
        assert str(log.position) == "0-2-4"
        for number, gtid in enumerate(logged):
            assert [str(group.gtid) for group in log.groups(after=gtid)] == logged[number + 1 :]
