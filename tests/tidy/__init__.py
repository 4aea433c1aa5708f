"""The sources as text."""
