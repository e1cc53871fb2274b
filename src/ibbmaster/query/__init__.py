"""SELECT beyond plain forms: MariaDB's types, values and order over rows that SQLite sorts; it computes expressions."""
