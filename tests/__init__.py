"""The tests in Python. They are a package, so that each helper has one name, from the root of the
repository."""
