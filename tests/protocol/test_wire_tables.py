"""The tables of protocol/wire against the code, so that neither can drift."""

import re
from pathlib import Path

import pytest

from ibbmaster.primary.dialogue.prepared import STATEMENTS_MAX
from ibbmaster.replication.wire import connection, handshake, response
from ibbmaster.replication.wire.answer import encode_response
from ibbmaster.replication.wire.auth import ED25519, ED25519_SIGNATURE_SIZE
from ibbmaster.replication.wire.binary_row import encode_binary_value
from ibbmaster.replication.wire.capability import SERVER_DEFAULT, Capability, StatusFlag
from ibbmaster.replication.wire.command import (
    UNKNOWN_COMMAND,
    BinlogDump,
    Command,
    DumpFlag,
    RegisterReplica,
    decode_command,
)
from ibbmaster.replication.wire.packet import EVENT_STATUS, PACKET_HEADER_SIZE, PACKET_PAYLOAD_MAX, frame_packets
from ibbmaster.storage.codec import lenenc
from tests.machinery.client_wire import decode_column, decode_eof, encode_command, encode_login
from tests.protocol.documents import Row, read_tables

WIRE = Path(__file__).parents[2] / "protocol" / "wire"


def read_table(document: str, heading: str) -> list[Row]:
    return read_tables(f"protocol/wire/{document}", heading)[0]


def offsets(rows: list[Row]) -> dict[str, int]:
    """Field by name, as far as its offset is a number."""
    return {row["Field"]: int(row["Offset"]) for row in rows if row["Offset"].isdigit()}


@pytest.mark.parametrize("path", sorted(WIRE.glob("*.md")), ids=lambda path: path.name)
def test_every_table_has_rows_as_wide_as_its_head(path: Path) -> None:
    for heading in re.findall(r"^#+ (.*)$", path.read_text(), flags=re.MULTILINE):
        read_tables(f"protocol/wire/{path.name}", heading)


def test_a_packet_begins_with_its_length_and_number() -> None:
    rows = offsets(read_table("packet.md", "Packet"))
    frame, _ = frame_packets(b"payload", 9)
    assert rows == {"length": 0, "sequence": 3, "payload": PACKET_HEADER_SIZE}
    assert frame[rows["length"] : rows["sequence"]] == b"\x07\x00\x00"
    assert frame[rows["sequence"]] == 9
    assert frame[rows["payload"] :] == b"payload"
    assert f"{PACKET_PAYLOAD_MAX:,}" in (WIRE / "packet.md").read_text()


def test_length_encoded_integers_have_the_sizes_of_the_table() -> None:
    for row in read_table("packet.md", "Length-encoded integer"):
        first = int(row["First byte"].partition("–")[0], 16)
        if not row["Size"].isdigit() or first == lenenc.NULL:
            with pytest.raises(ValueError, match="starts no"):
                lenenc.decode_int(bytes([first]) + bytes(8), 0)
        else:
            _, end = lenenc.decode_int(bytes([first]) + bytes(8), 0)
            assert end == int(row["Size"])


def test_capabilities_have_the_bits_and_offers_of_the_table() -> None:
    rows = read_table("handshake.md", "Capabilities")
    assert {row["Name"]: 1 << int(row["Bit"]) for row in rows} == {flag.name: flag.value for flag in Capability}
    for row in rows:
        is_offered = bool(SERVER_DEFAULT & Capability[row["Name"]])
        assert row["Offered"] == ("with a certificate" if row["Name"] == "TLS" else "yes" if is_offered else "no")


def test_the_greeting_has_the_sizes_of_the_table() -> None:
    greeting = handshake.Greeting(
        server_version="12",
        connection_id=1,
        seed=b"s" * 20,
        collation_id=45,
        plugin_name="p",
        capabilities=SERVER_DEFAULT,
    )
    sizes = [row["Size"] for row in read_table("handshake.md", "Greeting")]
    numbers = [int(size.replace("v", "2").replace("p", "1").partition("+")[0]) for size in sizes]
    assert sum(numbers) + sum("+1" in size for size in sizes) == len(handshake.encode_greeting(greeting))


def test_the_greeting_has_its_fields_where_the_table_says() -> None:
    greeting = handshake.Greeting(
        server_version="12.3",
        connection_id=0x01020304,
        seed=b"ABCDEFGHIJKLMNOPQRST",
        capabilities=Capability(0x05_00030000 | 0x0200),
        collation_id=300,
        status=0x0002,
    )
    payload = handshake.encode_greeting(greeting)
    values = {
        "protocol version": b"\x0a",
        "server version": b"12.3\x00",
        "connection id": b"\x04\x03\x02\x01",
        "seed, first part": b"ABCDEFGH",
        "capabilities, bits 0–15": b"\x00\x02",
        "collation": b"\xff",
        "status": b"\x02\x00",
        "capabilities, bits 16–31": b"\x03\x00",
        "seed length": b"\x15",
        "capabilities, bits 32–63": b"\x05\x00\x00\x00",
        "seed, second part": b"IJKLMNOPQRST",
        "plugin": b"mysql_native_password\x00",
    }
    assert fields_in_order("handshake.md", "Greeting", values) == payload


def fields_in_order(document: str, heading: str, values: dict[str, bytes]) -> bytes:
    """The fields of a table put together; those without a name are zeros."""
    return b"".join(
        values[row["Field"]] if row["Field"] else bytes(int(row["Size"])) for row in read_table(document, heading)
    )


def test_a_login_has_its_fields_where_the_table_says() -> None:
    low = Capability.CONNECT_WITH_DB | Capability.PROTOCOL_41 | Capability.SECURE_CONNECTION
    low |= Capability.PLUGIN_AUTH | Capability.CONNECT_ATTRIBUTES | Capability.LENENC_AUTH_DATA
    values = {
        "capabilities, bits 0–31": low.to_bytes(4, "little"),
        "largest payload": b"\x00\x00\x00\x40",
        "collation": b"\x2d",
        "capabilities, bits 32–63": b"\x1d\x00\x00\x00",
        "user": b"repl\x00",
        "answer": b"\x03abc",
        "database": b"test\x00",
        "plugin": b"mysql_native_password\x00",
        "attributes": b"\x04\x01k\x01v",
    }
    payload = fields_in_order("handshake.md", "Login", values)
    login = handshake.LoginRequest(
        capabilities=low | Capability(0x1D << 32),
        payload_size_max=0x40000000,
        collation_id=45,
        user="repl",
        auth_data=b"abc",
        database="test",
        plugin_name="mysql_native_password",
        attributes=(("k", "v"),),
    )
    assert handshake.decode_login(payload) == login
    assert encode_login(login) == payload
    assert offsets(read_table("handshake.md", "Login"))["user"] == handshake.TLS_REQUEST_SIZE


def test_an_auth_switch_has_its_fields_where_the_table_says() -> None:
    values = {"mark": b"\xfe", "plugin": b"p\x00", "data": b"question"}
    payload = fields_in_order("handshake.md", "Auth switch", values)
    assert handshake.encode_auth_switch("p", b"question") == payload


def test_a_refused_client_is_told_what_the_table_says() -> None:
    rows = {int(row["Code"]): row for row in read_table("handshake.md", "What a server says to a client it refuses")}
    for name in ("BAD_HANDSHAKE", "PACKET_TOO_LARGE", "PACKETS_OUT_OF_ORDER", "OLD_CLIENT"):
        error = getattr(connection, name)
        assert (rows[error.code]["SQLSTATE"], rows[error.code]["Text"]) == (error.sqlstate, error.text)


def test_plugins_ask_and_answer_with_the_sizes_of_the_table() -> None:
    native, ed25519 = read_table("authentication.md", "Authentication")
    assert native["Plugin"] == f"`{handshake.NATIVE_PASSWORD}`"
    assert f"{handshake.SEED_SIZE + 1} bytes" in native["Question"]
    assert ed25519["Plugin"] == f"`{ED25519}`"
    assert "32 bytes" in ed25519["Question"]
    assert f"{ED25519_SIGNATURE_SIZE} bytes" in ed25519["Answer"]


def test_status_bits_are_those_of_the_table() -> None:
    rows = read_table("response.md", "Status")
    assert {row["Name"]: int(row["Bits (hex)"], 16) for row in rows} == {flag.name: flag.value for flag in StatusFlag}


def test_column_types_are_those_of_the_table() -> None:
    rows = read_tables("protocol/wire/response.md", "Column definition")[1]
    assert {row["Name"]: int(row["Type"]) for row in rows} == {kind.name: kind.value for kind in response.FieldType}


def test_ok_err_and_eof_have_their_fields_where_the_tables_say() -> None:
    ok = {
        "mark": b"\x00",
        "affected rows": b"\xfc\x00\x01",
        "insert id": b"\x05",
        "status": b"\x02\x00",
        "warnings": b"\x03\x00",
        "message": b"\x02hi",
    }
    err = {"mark": b"\xff", "code": b"\x15\x04", "`#`": b"#", "SQLSTATE": b"28000", "text": b"no"}
    eof = {"mark": b"\xfe", "warnings": b"\x03\x00", "status": b"\x02\x00"}
    assert response.decode_ok(fields_in_order("response.md", "OK", ok)) == response.Ok(
        affected_rows=256, insert_id=5, status=2, warning_count=3, message=b"hi"
    )
    assert response.decode_err(fields_in_order("response.md", "ERR", err)) == response.Err(
        code=1045, sqlstate="28000", text="no"
    )
    assert decode_eof(fields_in_order("response.md", "EOF", eof)) == response.Eof(status=2, warning_count=3)


@pytest.mark.parametrize("is_extended", [False, True], ids=["plain", "extended"])
def test_a_column_definition_has_its_fields_where_the_table_says(is_extended: bool) -> None:
    values = {
        "catalog": b"\x03def",
        "schema": b"\x01s",
        "table": b"\x01t",
        "original table": b"\x02ot",
        "name": b"\x01n",
        "original name": b"\x02on",
        "metadata": b"\x01m" if is_extended else b"",
        "fixed size": b"\x0c",
        "collation": b"\x2d\x00",
        "length": b"\x40\x00\x00\x00",
        "type": b"\xfd",
        "flags": b"\x81\x00",
        "decimals": b"\x27",
    }
    payload = fields_in_order("response.md", "Column definition", values)
    column = response.ColumnDefinition(
        name="n",
        column_type=response.FieldType.VAR_STRING,
        length=64,
        collation_id=45,
        flags=0x81,
        decimals=response.DECIMALS_NOT_FIXED,
        original_name="on",
        schema="s",
        table="t",
        original_table="ot",
        extended_metadata=b"m" if is_extended else b"",
    )
    capabilities = Capability.EXTENDED_METADATA if is_extended else Capability(0)
    assert decode_column(payload, capabilities) == column
    assert response.encode_column(column, capabilities) == payload


def test_commands_have_the_bytes_of_the_table() -> None:
    rows = read_table("commands.md", "Commands")
    assert {row["Name"]: int(row["Byte (hex)"], 16) for row in rows} == {code.name: code.value for code in Command}
    assert f"error {UNKNOWN_COMMAND.code}" in (WIRE / "commands.md").read_text()


def test_a_dump_command_has_its_fields_where_the_table_says() -> None:
    layout, flags = read_tables("protocol/wire/commands.md", "COM_BINLOG_DUMP")
    payload = encode_command(BinlogDump(position=0x01020304, flags=2, server_id=5, file_name="binlog.000001"))
    rows = offsets(layout)
    assert payload[rows["command"]] == Command.BINLOG_DUMP
    assert payload[rows["position"] : rows["flags"]] == b"\x04\x03\x02\x01"
    assert payload[rows["flags"] : rows["server id"]] == b"\x02\x00"
    assert payload[rows["server id"] : rows["file name"]] == b"\x05\x00\x00\x00"
    assert payload[rows["file name"] :] == b"binlog.000001"
    assert {row["Name"]: int(row["Flag (hex)"], 16) for row in flags} == {flag.name: flag.value for flag in DumpFlag}


def test_a_registration_has_its_fields_where_the_table_says() -> None:
    values = {
        "command": b"\x15",
        "server id": b"\x02\x00\x00\x00",
        "host": b"\x01h",
        "user": b"\x02us",
        "password": b"\x01p",
        "port": b"\xea\x0c",
        "rank": b"\x07\x00\x00\x00",
        "primary id": b"\x08\x00\x00\x00",
    }
    assert decode_command(fields_in_order("commands.md", "COM_REGISTER_SLAVE", values)) == RegisterReplica(
        server_id=2, host="h", user="us", password="p", port=3306, rank=7, primary_id=8
    )


def test_an_event_on_the_wire_begins_with_the_status_of_the_table() -> None:
    rows = read_table("binlog-dump.md", "One event on the wire")
    for mark in (EVENT_STATUS.hex(), f"{response.EOF_MARK:02x}", f"{response.ERR_MARK:02x}"):
        assert f"`{mark}`" in rows[0]["Meaning"]


def test_the_answer_to_prepare_has_its_fields_where_the_table_says() -> None:
    rows = offsets(read_table("prepared.md", "Answer to STATEMENT_PREPARE"))
    column = response.ColumnDefinition(name="a", column_type=3, length=11)
    prepared = response.PreparedOk(statement_id=0x01020304, parameters=(column,) * 5, columns=(column,) * 6)
    payload = next(encode_response(prepared))
    assert payload[rows["mark"] : rows["statement id"]] == b"\0"
    assert payload[rows["statement id"] : rows["columns"]] == b"\x04\x03\x02\x01"
    assert payload[rows["columns"] : rows["parameters"]] == b"\x06\0"
    assert payload[rows["parameters"] : rows["filler"]] == b"\x05\0"
    assert payload[rows["warnings"] :] == b"\0\0"


def test_commands_of_prepared_statements_are_those_of_the_table() -> None:
    named = {name for row in read_table("prepared.md", "Prepared statements") for name in row["Command"].split(", ")}
    assert named == {code.name for code in Command if code.name.startswith("STATEMENT_")}
    assert f"at most {STATEMENTS_MAX}" in " ".join((WIRE / "prepared.md").read_text().split())


def test_values_of_integer_types_have_the_sizes_of_the_table() -> None:
    rows = read_tables("protocol/wire/prepared.md", "Binary row")[1]
    (row,) = (row for row in rows if row["Type"].startswith("TINY"))
    sizes = [int(size) for size in re.findall(r"\d+", row["Value"].split("bytes")[0])]
    for names, size in zip(row["Type"].split(";"), sizes, strict=True):
        for name in names.split(","):
            assert len(encode_binary_value(response.FieldType[name.strip()], b"1")) == size
