"""Values of SQL: their types, what is computed and compared of them, and as what a column stores them. RefusedError
says that MariaDB's type or value is not known here."""
