"""Tests the wheels of sdk/python: local ranks, and jobs."""
