"""Tables of whole archives, in Arrow: as they were, or kept as Delta and Iceberg tables."""
