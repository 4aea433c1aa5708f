"""Has tables of attacks on a server and its machine, and the code that runs them: see table.py."""
