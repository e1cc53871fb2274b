"""Parts for tests of this package and of programs that use it; nothing here runs in production."""
