"""Prints the schema and the rows of tables as Spark reads them over JDBC, sorted: URL, user, password, tables."""

import sys

from pyspark.sql import SparkSession


def main(url: str, user: str, password: str, *tables: str) -> None:
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    options = {"url": url, "user": user, "password": password, "driver": "org.mariadb.jdbc.Driver"}
    for table in tables:
        frame = session.read.format("jdbc").options(**options, dbtable=table).load()
        print(table, frame.schema)
        for row in sorted(map(str, frame.collect())):
            print(table, row)
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
