"""Runs the commands with which tests build networks of their own."""

import subprocess


def ip(*arguments: str, check: bool = True) -> None:
    subprocess.run(["ip", *arguments], check=check, capture_output=True)
