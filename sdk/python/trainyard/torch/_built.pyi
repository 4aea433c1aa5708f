"""Written by sdk/python/CMakeLists.txt."""

torch_version: str
