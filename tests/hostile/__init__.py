"""Tables of attacks on a server and its machine, and what runs them: see table.py."""
