"""The `.ibb` file format: pages, chunks, records, and one module per record type with a header.

Pure: bytes come in as arguments. To a page an event is opaque.
"""
