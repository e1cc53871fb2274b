"""Makes `spark.read.format("ibb")` known: PySpark looks for `DefaultSource` in top-level modules named `pyspark_…`."""

from ibbmaster.spark.source import IbbDataSource as DefaultSource

__all__ = ["DefaultSource"]
