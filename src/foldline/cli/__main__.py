"""`python -m foldline.cli`."""

from foldline.cli.app import main

main()
