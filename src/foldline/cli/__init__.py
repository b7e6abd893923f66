"""The command line: one file per command, loaded when it is called."""

from foldline.cli.app import main

__all__ = ["main"]
