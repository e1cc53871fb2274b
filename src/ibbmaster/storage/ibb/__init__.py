"""The `.ibb` file format: pages, chunks, records, a module for each type. Pure; to a page an event is opaque."""
