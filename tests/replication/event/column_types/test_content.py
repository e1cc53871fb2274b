"""UUID, INET4 and INET6 as text, beside Python's own modules and what MariaDB 10.11 and 11.8 show."""

import ipaddress
import random
import uuid

import pytest

from ibbmaster.replication.event.column_types.content import inet4_text, inet6_text, uuid_bytes, uuid_text
from tests.case_table import data_beside

CASES = data_beside(__file__)


def stored(text: str) -> bytes:
    """As the server stores versions 1 to 5: the segments from the last to the first."""
    return b"".join(bytes.fromhex(part) for part in reversed(text.split("-")))


@pytest.mark.parametrize("version", [1, 3, 4, 5])
def test_a_uuid_that_is_stored_by_time_reads_in_the_usual_order(version):
    made = {
        1: uuid.uuid1,
        3: lambda: uuid.uuid3(uuid.NAMESPACE_DNS, str(random.random())),
        4: uuid.uuid4,
        5: lambda: uuid.uuid5(uuid.NAMESPACE_DNS, str(random.random())),
    }[version]
    for _ in range(50):
        text = str(made())
        assert uuid_text(stored(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
        "00000000-0000-0000-0000-000000000000",
        "6ba7b810-9dad-61d1-80b4-00c04fd430c8",
    ],
)
def test_later_versions_and_no_version_are_stored_as_they_read(text):
    assert uuid_text(bytes.fromhex(text.replace("-", ""))) == text


def test_an_ipv4_address_reads_as_python_reads_it():
    for _ in range(100):
        data = random.randbytes(4)
        assert inet4_text(data) == str(ipaddress.IPv4Address(data))


# INET6_NTOA(UNHEX(…)) of MariaDB 10.11
@pytest.mark.parametrize(("data", "text"), CASES)
def test_an_ipv6_address_reads_as_mariadb_writes_it(data, text):
    assert inet6_text(bytes.fromhex(data)) == text


def test_any_ipv6_text_is_the_address_for_python_too():
    for _ in range(300):
        data = b"".join(random.choice([b"\0\0", b"\0\1", b"\xff\xff", random.randbytes(2)]) for _ in range(8))
        assert ipaddress.IPv6Address(inet6_text(data)).packed == data


@pytest.mark.parametrize(("read", "size"), [(uuid_text, 16), (inet4_text, 4), (inet6_text, 16)])
def test_another_number_of_bytes_is_refused(read, size):
    for wrong in {*range(size + 2)} - {size}:
        with pytest.raises(ValueError, match=f"of {wrong} bytes"):
            read(bytes(wrong))


def test_a_uuid_is_written_as_real_servers_write_it():
    """INSERT of these into 10.11 and 11.8 logs bytes in the order of the text, whatever the version."""
    for text in ("6ccd780c-baba-1026-9564-5b8c656024db", "ffffffff-ffff-4fff-bfff-ffffffffff01"):
        assert uuid_bytes(text).hex() == text.replace("-", "")
        assert uuid_text(uuid_bytes(text)) == text
