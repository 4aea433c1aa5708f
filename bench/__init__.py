"""./yard bench: `python -m bench.run` from the root of the repository."""
