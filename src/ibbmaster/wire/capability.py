"""What client and server agree to, and the server's status. Values: protocol/wire/handshake.md."""

from __future__ import annotations

import enum


class Capability(enum.IntFlag):
    """One bit each; bits 32 and up are MariaDB's extended ones, sent in a field of their own.

    Source: MariaDB 12.3, mysql_com.h.
    """

    MYSQL = 1 << 0  # set by MySQL; a MariaDB server clears it to say: read the extended bits
    FOUND_ROWS = 1 << 1
    LONG_FLAG = 1 << 2
    CONNECT_WITH_DB = 1 << 3  # the login names a database
    NO_SCHEMA = 1 << 4
    COMPRESS = 1 << 5
    ODBC = 1 << 6
    LOCAL_FILES = 1 << 7
    IGNORE_SPACE = 1 << 8
    PROTOCOL_41 = 1 << 9  # the login has the layout described here
    INTERACTIVE = 1 << 10
    TLS = 1 << 11
    IGNORE_SIGPIPE = 1 << 12
    TRANSACTIONS = 1 << 13
    RESERVED = 1 << 14
    SECURE_CONNECTION = 1 << 15  # answers to the seed have a length byte
    MULTI_STATEMENTS = 1 << 16
    MULTI_RESULTS = 1 << 17
    PS_MULTI_RESULTS = 1 << 18
    PLUGIN_AUTH = 1 << 19  # the login names an authentication plugin
    CONNECT_ATTRIBUTES = 1 << 20
    LENENC_AUTH_DATA = 1 << 21  # the answer to the seed is a length-encoded string
    EXPIRED_PASSWORDS = 1 << 22
    SESSION_TRACK = 1 << 23
    DEPRECATE_EOF = 1 << 24  # result sets without the EOF in the middle
    ZSTD_COMPRESS = 1 << 26
    VERIFY_CERTIFICATE = 1 << 30
    REMEMBER_OPTIONS = 1 << 31
    PROGRESS = 1 << 32
    MULTI_COMMAND = 1 << 33
    BULK_OPERATIONS = 1 << 34
    EXTENDED_METADATA = 1 << 35  # one more string in each column definition
    CACHE_METADATA = 1 << 36  # one more byte in the head of a result set
    BULK_UNIT_RESULTS = 1 << 37


EXTENDED_SHIFT = 32
LOW_MASK = 0xFFFFFFFF

# What a MariaDB server offers, less what is not done here: compression, TLS (offered when there is a certificate),
# session tracking, result sets without EOF, and of what is extended all but the metadata of columns.
SERVER_DEFAULT = (
    Capability.FOUND_ROWS
    | Capability.LONG_FLAG
    | Capability.CONNECT_WITH_DB
    | Capability.NO_SCHEMA
    | Capability.ODBC
    | Capability.LOCAL_FILES
    | Capability.IGNORE_SPACE
    | Capability.PROTOCOL_41
    | Capability.INTERACTIVE
    | Capability.IGNORE_SIGPIPE
    | Capability.TRANSACTIONS
    | Capability.RESERVED
    | Capability.SECURE_CONNECTION
    | Capability.MULTI_STATEMENTS
    | Capability.MULTI_RESULTS
    | Capability.PS_MULTI_RESULTS
    | Capability.PLUGIN_AUTH
    | Capability.CONNECT_ATTRIBUTES
    | Capability.LENENC_AUTH_DATA
    | Capability.EXPIRED_PASSWORDS
    | Capability.REMEMBER_OPTIONS
    | Capability.EXTENDED_METADATA
)
#: What a client is offered: with more said of columns, drivers distinguish UUID, INET6, JSON and POINT from texts.
SERVER_OFFERED = SERVER_DEFAULT | Capability.EXTENDED_METADATA


class StatusFlag(enum.IntFlag):
    """The server status in OK and EOF packets. Source: MariaDB 12.3, mysql_com.h."""

    IN_TRANSACTION = 0x0001
    AUTOCOMMIT = 0x0002
    MORE_RESULTS = 0x0008
    NO_GOOD_INDEX_USED = 0x0010
    NO_INDEX_USED = 0x0020
    SESSION_STATE_CHANGED = 0x4000
