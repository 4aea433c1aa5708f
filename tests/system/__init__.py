"""Tests with real processes, namespaces and kill -9."""
