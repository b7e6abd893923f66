"""The command line; a command's module is loaded when it is called."""

from foldline.cli.app import main

__all__ = ["main"]
