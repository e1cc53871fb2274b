"""A MariaDB replication primary without a MariaDB server.

`ibbmaster.gtid` has the names everything is found by, `ibbmaster.store` reads and writes
directories of `.ibb` files, `ibbmaster.server` serves them to replicas. Importing this
package loads neither trio nor PySpark.
"""

__version__ = "0.1.0"
