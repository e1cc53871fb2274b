"""The tables of protocol/wire against the code, so that neither can drift."""

import re
from pathlib import Path

import pytest

from ibbmaster.primary.dialogue.prepared import STATEMENTS_MAX
from ibbmaster.replication.wire import connection, handshake, response
from ibbmaster.replication.wire.answer import encode_response
from ibbmaster.replication.wire.auth import ED25519, ED25519_SIGNATURE_SIZE
from ibbmaster.replication.wire.binary_row import encode_binary_value
from ibbmaster.replication.wire.capability import SERVER_DEFAULT, Capability
from ibbmaster.replication.wire.command import UNKNOWN_COMMAND, BinlogDump, Command, RegisterReplica, decode_command
from ibbmaster.replication.wire.packet import EVENT_STATUS, PACKET_HEADER_SIZE, PACKET_PAYLOAD_MAX, frame_packets
from ibbmaster.storage.codec import lenenc
from tests.case_table import data_beside
from tests.machinery.client_wire import decode_column, decode_eof, encode_command, encode_login
from tests.protocol.documents import Row, read_tables

WIRE = Path(__file__).parents[2] / "protocol" / "wire"
#: By the heading of a table, the bytes of its fields as letters of latin1.
FIELDS = data_beside(__file__)


def read_table(document: str, heading: str) -> list[Row]:
    return read_tables(f"protocol/wire/{document}", heading)[0]


def offsets(rows: list[Row]) -> dict[str, int]:
    return {row["Field"]: int(row["Offset"]) for row in rows if row["Offset"].isdigit()}


def test_every_table_has_rows_as_wide_as_its_head() -> None:
    for path in WIRE.glob("*.md"):
        for heading in re.findall(r"^#+ (.*)$", path.read_text(), flags=re.MULTILINE):
            read_tables(f"protocol/wire/{path.name}", heading)


def test_a_packet_begins_with_its_length_and_number() -> None:
    frame, _ = frame_packets(b"payload", 9)
    assert fields_in_order("packet.md", "Packet") == frame
    assert offsets(read_table("packet.md", "Packet"))["payload"] == PACKET_HEADER_SIZE
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


def test_capabilities_are_offered_as_the_table_says() -> None:
    for row in read_table("handshake.md", "Capabilities"):
        is_offered = bool(SERVER_DEFAULT & Capability[row["Name"]])
        assert row["Offered"] == ("with a certificate" if row["Name"] == "TLS" else "yes" if is_offered else "no")


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
    assert fields_in_order("handshake.md", "Greeting") == payload
    for row in read_table("handshake.md", "Greeting"):  # v and p: of the version and the plugin
        size = row["Size"].replace("v", "4").replace("p", "21").partition("+")
        assert len(FIELDS["Greeting"].get(row["Field"], "")) in (0, int(size[0]) + int(size[2] or 0)), row


def fields_in_order(document: str, heading: str, given: dict[str, bytes] | None = None) -> bytes:
    """The fields of a table put together; those without a name are zeros."""
    values = {name: text.encode("latin-1") for name, text in FIELDS[heading].items()} | (given or {})
    return b"".join(
        values[row["Field"]] if row["Field"] else bytes(int(row["Size"])) for row in read_table(document, heading)
    )


def test_a_login_has_its_fields_where_the_table_says() -> None:
    low = Capability.CONNECT_WITH_DB | Capability.PROTOCOL_41 | Capability.SECURE_CONNECTION
    low |= Capability.PLUGIN_AUTH | Capability.CONNECT_ATTRIBUTES | Capability.LENENC_AUTH_DATA
    payload = fields_in_order("handshake.md", "Login", {"capabilities, bits 0–31": low.to_bytes(4, "little")})
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
    payload = fields_in_order("handshake.md", "Auth switch")
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


def test_ok_err_and_eof_have_their_fields_where_the_tables_say() -> None:
    assert response.decode_ok(fields_in_order("response.md", "OK")) == response.Ok(
        affected_rows=256, insert_id=5, status=2, warning_count=3, message=b"hi"
    )
    assert response.decode_err(fields_in_order("response.md", "ERR")) == response.Err(
        code=1045, sqlstate="28000", text="no"
    )
    assert decode_eof(fields_in_order("response.md", "EOF")) == response.Eof(status=2, warning_count=3)


@pytest.mark.parametrize("is_extended", [False, True], ids=["plain", "extended"])
def test_a_column_definition_has_its_fields_where_the_table_says(is_extended: bool) -> None:
    metadata = b"\x01m" if is_extended else b""
    payload = fields_in_order("response.md", "Column definition", {"metadata": metadata})
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


def test_an_unknown_command_is_refused_as_the_text_says() -> None:
    assert f"error {UNKNOWN_COMMAND.code}" in (WIRE / "commands.md").read_text()


def test_a_dump_command_has_its_fields_where_the_table_says() -> None:
    payload = encode_command(BinlogDump(position=0x01020304, flags=2, server_id=5, file_name="binlog.000001"))
    assert fields_in_order("commands.md", "COM_BINLOG_DUMP") == payload


def test_a_registration_has_its_fields_where_the_table_says() -> None:
    assert decode_command(fields_in_order("commands.md", "COM_REGISTER_SLAVE")) == RegisterReplica(
        server_id=2, host="h", user="us", password="p", port=3306, rank=7, primary_id=8
    )


def test_an_event_on_the_wire_begins_with_the_status_of_the_table() -> None:
    rows = read_table("binlog-dump.md", "One event on the wire")
    for mark in (EVENT_STATUS.hex(), f"{response.EOF_MARK:02x}", f"{response.ERR_MARK:02x}"):
        assert f"`{mark}`" in rows[0]["Meaning"]


def test_the_answer_to_prepare_has_its_fields_where_the_table_says() -> None:
    column = response.ColumnDefinition(name="a", column_type=3, length=11)
    prepared = response.PreparedOk(statement_id=0x01020304, parameters=(column,) * 5, columns=(column,) * 6)
    assert fields_in_order("prepared.md", "Answer to STATEMENT_PREPARE") == next(encode_response(prepared))


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
