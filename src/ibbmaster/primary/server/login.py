"""From the greeting to the OK of a login, or a refusal."""

import logging

import trio

from ibbmaster.replication.wire.connection import LoggedIn, LoginFailed, NeedTls
from ibbmaster.replication.wire.packet import frame_packets
from ibbmaster.replication.wire.response import Err, encode_err
from .client import ConnectedClient
from .options import ConnectionStep, Observer
from .registry import Registry

log = logging.getLogger(__name__)

LOGIN_TIMEOUT_S = 10.0  # MariaDB's connect_timeout, for the whole login
RESERVED_PART = 10  # every tenth connection is kept for other accounts
TOO_MANY_CONNECTIONS = Err(code=1040, sqlstate="08004", text="Too many connections")


async def refuse_connection(stream: trio.SocketStream, answer: Err = TOO_MANY_CONNECTIONS) -> None:
    """One client too many, or one from an address that no account allows: before it is greeted."""
    with trio.move_on_after(1):
        await stream.send_all(frame_packets(encode_err(answer), 0)[0])
    await trio.aclose_forcefully(stream)


async def refuse_host(stream: trio.SocketStream, host: str, registry: Registry) -> None:
    """A client at an address that no account allows."""
    registry.logins["not_allowed"] += 1
    registry.alike.log(log, (host, "not_allowed"), "a client at %s is refused: no account may come from there", host)
    text = f"Host '{host}' is not allowed to connect to this MariaDB server"
    await refuse_connection(stream, Err(code=1130, sqlstate="", text=text))


async def log_in(client: ConnectedClient) -> bool:
    """Greet a client; whether it may stay, and its OK is ready. Else it has its answer. Raises RemoteProtocolError: it
    breaks the protocol; trio.BrokenResourceError: it is gone, or its observer cuts it off."""
    observer = client.primary.options.observer
    if observer is not None:
        if await _is_replaced(client, observer, ConnectionStep.ACCEPTED):
            return False
        await observer.reached(ConnectionStep.GREETED, client.session, None)
    login: LoggedIn | LoginFailed | None = None
    with trio.move_on_after(LOGIN_TIMEOUT_S) as timer:
        login = await _claim(client)
    if timer.cancelled_caught:
        client.session.reason = f"it did not log in within {LOGIN_TIMEOUT_S:g} s"
        client.primary.registry.logins["too_late"] += 1
        log.info("%s did not log in within %g s", client, LOGIN_TIMEOUT_S)
        return False
    if login is None or not await _is_let_in(client, login):
        return False
    return observer is None or not await _is_replaced(client, observer, ConnectionStep.LOGGED_IN)


async def _is_replaced(client: ConnectedClient, observer: Observer, step: ConnectionStep) -> bool:
    """Send the packet that is ready; or what the observer says, which ends the connection."""
    responses = await observer.reached(step, client.session, None)
    if responses is None:
        await client.flush()
        return False
    await client.send_instead(*responses)
    return True


async def _claim(client: ConnectedClient) -> LoggedIn | LoginFailed | None:
    observer = client.primary.options.observer
    while True:
        await client.flush()
        match await client.next_event():
            case NeedTls():
                if observer is not None:
                    await observer.reached(ConnectionStep.TLS, client.session, None)
                await client.start_tls()
            case LoggedIn() | LoginFailed() as login:
                return login
            case _:
                return None


def _log(client: ConnectedClient, text: str, level_max: int = logging.WARNING) -> None:
    key = client.session.host, client.session.user, text
    client.primary.registry.alike.log(log, key, "%s: %s", client, text, level_max=level_max)


async def _is_let_in(client: ConnectedClient, login: LoggedIn | LoginFailed) -> bool:
    """Whether the client may stay; else it has its answer."""
    session, is_right = client.session, isinstance(login, LoggedIn)
    session.user, logins = login.user, client.primary.registry.logins
    delay_s = await client.primary.guard.answer_delay(session.host, login.user, is_right=is_right)
    if delay_s is None:
        logins["turned_away"] += 1
        session.reason = "too many logins of its account wait, where much from its address was wrong"
        _log(client, session.reason, logging.INFO)
        await client.send_instead(TOO_MANY_CONNECTIONS)
        return False
    if isinstance(login, LoginFailed):
        logins["wrong"] += 1
        session.reason = f"its login was refused: {login.reason}"
        _log(client, f"login refused: {login.reason}")
        await trio.sleep(delay_s)
        await client.flush()
        return False
    if (most := _most_connections(client, login.user)) is not None:
        logins["too_many"] += 1
        session.reason = "its account has too many connections"
        text = f"User '{login.user}' has exceeded the 'max_user_connections' resource (current value: {most})"
        _log(client, text, logging.INFO)
        await client.send_instead(Err(code=1226, sqlstate="42000", text=text))
        return False
    logins["ok"] += 1
    session.is_in = True
    client.begin(login)
    log.debug("%s logged in", client)
    return True


def _most_connections(client: ConnectedClient, user: str) -> int | None:
    """The limit of an account that has reached it: some places are kept for others."""
    options = client.primary.options
    if not options.other_accounts:
        return None
    most = max(options.connections_max - max(options.connections_max // RESERVED_PART, 1), 1)
    has = sum(session.is_in and session.user == user for session in client.primary.registry)
    return most if has >= most else None
