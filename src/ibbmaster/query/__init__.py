"""SELECT of any form over tables of a log: MariaDB's types, values and order over rows that SQLite joins and sorts."""
