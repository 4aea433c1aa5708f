"""The last release beside this one."""
