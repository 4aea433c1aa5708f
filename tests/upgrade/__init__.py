"""Tests the last release together with this version."""
