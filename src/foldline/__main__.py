"""`python -m foldline`."""

from foldline.cli.app import main

main()
