"""The agreement of client and server, and the server's status. Values: protocol/wire/handshake.md."""

import enum


class Capability(enum.IntFlag):
    """Bits 32 and up are MariaDB's extended ones, sent in a field of their own. Source: MariaDB 12.3, mysql_com.h."""

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

_NOT_DONE = (
    *(Capability.MYSQL, Capability.COMPRESS, Capability.TLS, Capability.SESSION_TRACK, Capability.DEPRECATE_EOF),
    *(Capability.ZSTD_COMPRESS, Capability.VERIFY_CERTIFICATE, Capability.PROGRESS, Capability.MULTI_COMMAND),
    *(Capability.BULK_OPERATIONS, Capability.CACHE_METADATA, Capability.BULK_UNIT_RESULTS),
)
#: The offer of a MariaDB server, without what we lack; TLS comes with a certificate. Of the extended bits only the
#: metadata of columns, by which drivers distinguish UUID, INET6, JSON and POINT from texts.
SERVER_DEFAULT = Capability(sum(flag for flag in Capability if flag not in _NOT_DONE))


class StatusFlag(enum.IntFlag):
    """In OK and EOF packets. Source: MariaDB 12.3, mysql_com.h."""

    IN_TRANSACTION = 0x0001
    AUTOCOMMIT = 0x0002
    MORE_RESULTS = 0x0008
    NO_GOOD_INDEX_USED = 0x0010
    NO_INDEX_USED = 0x0020
    SESSION_STATE_CHANGED = 0x4000
