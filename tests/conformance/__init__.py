"""Tests a live server through unmodified AWS clients."""
