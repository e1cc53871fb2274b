"""The client protocol: packets, login, commands and answers; bytes in, values out, no socket."""
