"""Binlogs as Arrow record batches: what Spark and `Log.to_arrow` read. Needs neither Spark nor Java."""
