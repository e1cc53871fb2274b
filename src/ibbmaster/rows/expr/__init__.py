"""Values of SQL: their types, what is computed and compared of them; RefusedError: MariaDB's answer is unknown."""
