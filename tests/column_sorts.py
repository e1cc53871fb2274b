"""Columns of every sort: how each is declared, and a value of it."""

from decimal import Decimal

SORTS = {
    "latin1": ("varchar(9) character set latin1", "Zö€\x81"),
    "utf32": ("char(9) character set utf32", "a \U0001f600"),
    "utf16le": ("text character set utf16le", "\U0001f600 "),
    "ucs2": ("varchar(9) character set ucs2", "Ж"),
    "utf8mb3": ("varchar(9) collate utf8mb3_bin", "Ж"),
    "gbk": ("varchar(9) character set gbk", "中文"),
    "cp1251": ("char(9) character set cp1251", "Ж"),
    "ascii": ("tinytext character set ascii", "x"),
    "bytes4": ("binary(4)", b"ab\0\0"),
    "binary": ("char(4) character set binary", b"ab\0\0"),
    "packed": ("varchar(900) compressed", "x" * 300),
    "packed_little": ("varchar(20) compressed", "short"),
    "packed_blob": ("mediumblob compressed", bytes(1000)),
    "packed_latin1": ("text compressed character set latin1", "é" * 200),
    "labels": ("enum('ä','b') character set latin1", "ä"),
    "more_labels": ("set('é','z') character set utf32", "é,z"),
    "place": ("point", bytes(4) + b"\1\1\0\0\0" + bytes(16)),
    "exact": ("decimal(65,30)", Decimal("-" + "9" * 35 + "." + "9" * 30)),
    "top": ("bigint unsigned", 2**64 - 1),
    "span": ("time(6)", "-838:59:59.999999"),
    "shortest": ("time(1)", "-00:00:00.1"),
    "no_day": ("date", "0000-00-00"),
    "no_month": ("datetime(2)", "2026-00-01 00:00:00.50"),
    "no_time": ("timestamp(3) null", "0000-00-00 00:00:00.000"),
    "last_time": ("timestamp null", "2038-01-19 03:14:07"),
    "no_year": ("year", 0),
    "bits": ("bit(64)", 2**64 - 1),
    "address": ("inet6", "2001:db8::1"),
    "uid": ("uuid", "6ccd780c-baba-1026-9564-5b8c656024db"),
    "doc": ("json", '{"a": 1}'),
}
NEWEST = {"vector": ("vector(2)", (1.0, -0.5)), "address4": ("inet4", "255.0.0.1")}
GENERATED = {"doubled": ("int as (id * 2) stored", 2), "next_id": ("int as (id + 1) virtual unique", 2)}
