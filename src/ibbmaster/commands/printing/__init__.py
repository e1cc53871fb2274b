"""A log as text, for people and for programs: a change a line, statements, or what a server takes."""
