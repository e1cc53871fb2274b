"""What packs files, by the end of their names: each as the command of its format does."""

import bz2
import gzip
import importlib
import lzma
import sys

import brotli
import lz4.frame

zstd = importlib.import_module("backports.zstd" if sys.version_info < (3, 14) else "compression.zstd")
CHECKED = {zstd.CompressionParameter.checksum_flag: 1}
PACK = {
    ".xz": lzma.compress,
    ".gz": gzip.compress,
    ".zst": lambda data: zstd.compress(data, options=CHECKED),
    ".lz4": lambda data: lz4.frame.compress(data, content_checksum=True),
    ".bz2": lambda data: bz2.compress(data, 1),
    ".lzma": lambda data: lzma.compress(data, lzma.FORMAT_ALONE),
    ".br": lambda data: brotli.compress(data, quality=3),
}
