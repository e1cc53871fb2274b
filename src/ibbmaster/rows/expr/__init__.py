"""Values of SQL: their types, what is computed and compared of them, and as what a column stores them."""
