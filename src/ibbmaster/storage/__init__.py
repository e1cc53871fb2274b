"""Bytes on disk, up to the page: no group of events and no SQL is known here.

- `codec`: numbers and checksums.
- `ibb`: the `.ibb` format: `page` checks and cuts a page, `chunk` its pieces, then a module for each type of record.
- `disk`: directories of files, here or in an object store; the only room that touches them.

May import: no other wing.
"""
