"""Recorded conversations of real servers and clients, as values for tests."""

import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ibbmaster.replication.wire.handshake import Greeting, LoginRequest, TlsRequest, decode_greeting, decode_login
from tests.damage import flipped

WIRE = Path(__file__).parents[3] / "fixtures" / "wire"
SERVER, CLIENT = "S>C", "C>S"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPacket:
    """One packet; of long payloads only the first 256 bytes were kept."""

    direction: str
    sequence: int
    size: int
    payload: bytes
    meaning: str

    @property
    def is_whole(self) -> bool:
        return len(self.payload) == self.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    command: RecordedPacket
    answer: list[RecordedPacket] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    name: str
    packets: list[RecordedPacket]

    def __str__(self) -> str:
        return self.name

    @property
    def greeting(self) -> Greeting:
        return decode_greeting(self.packets[0].payload)

    @property
    def login_packet(self) -> RecordedPacket | None:
        """The login with the user name, unless TLS hid it or it was too long to be kept."""
        for packet in self.packets[1:3]:
            if packet.direction == CLIENT and packet.is_whole:
                login = decode_login(packet.payload)
                if not isinstance(login, TlsRequest):
                    return packet
        return None

    @property
    def login(self) -> LoginRequest:
        assert self.login_packet is not None
        login = decode_login(self.login_packet.payload)
        assert isinstance(login, LoginRequest)
        return login

    @property
    def exchanges(self) -> list[Exchange]:
        exchanges: list[Exchange] = []
        for packet in self.packets[1:]:
            if packet.direction == CLIENT and packet.sequence == 0:
                exchanges.append(Exchange(command=packet))
            elif exchanges and packet.direction == SERVER:
                exchanges[-1].answer.append(packet)
        return exchanges


def read_conversations() -> Iterator[Conversation]:
    for path in sorted(WIRE.glob("*.jsonl")):
        connections: dict[int, list[RecordedPacket]] = {}
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            if "hex" in entry:
                packet = RecordedPacket(
                    direction=entry["dir"],
                    sequence=entry["seq"],
                    size=entry["len"],
                    payload=bytes.fromhex(entry["hex"]),
                    meaning=entry["meaning"],
                )
                connections.setdefault(entry["conn"], []).append(packet)
        for number, packets in connections.items():
            yield Conversation(name=f"{path.stem} {number}", packets=packets)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes a `conversation` (with a readable login: `readable_conversation`) once for each."""
    for name in {"conversation", "readable_conversation"} & set(metafunc.fixturenames):
        conversations = [
            conversation
            for conversation in read_conversations()
            if name == "conversation" or conversation.login_packet is not None
        ]
        metafunc.parametrize(name, conversations, ids=str)


@pytest.fixture
def find_packet() -> Callable[[str, str], RecordedPacket]:
    def find(file_name: str, meaning: str) -> RecordedPacket:
        packets = (
            packet
            for conversation in read_conversations()
            if conversation.name.rpartition(" ")[0] == file_name
            for packet in conversation.packets
        )
        return next(packet for packet in packets if packet.meaning.startswith(meaning))

    return find


@pytest.fixture
def damaged() -> Callable[[bytes], Iterator[bytes]]:
    def damage(data: bytes) -> Iterator[bytes]:
        yield from (data[:size] for size in range(len(data)))
        yield from flipped(data)

    return damage


@pytest.fixture
def rng() -> random.Random:
    """Random numbers; a failing test shows the seed, and WIRE_TEST_SEED=<seed> brings the failure back."""
    seed = int(os.environ.get("WIRE_TEST_SEED") or random.randrange(2**32))
    print(f"WIRE_TEST_SEED={seed}")
    return random.Random(seed)
