"""The last release next to this one."""
