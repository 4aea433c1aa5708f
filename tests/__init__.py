"""Tests in Python: a package, so that each helper has one name, from the root of the repository."""
