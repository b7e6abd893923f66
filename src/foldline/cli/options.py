"""Options that several commands take; importing this loads nothing else."""

from __future__ import annotations

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
store_option = click.option(
    "--store",
    "store_url",
    metavar="URL",
    help="Where sessions live: sqlite:///FILE, postgresql://...  "
    "[default: the settings', else ~/.foldline/foldline.db]",
)
file_argument = click.argument("file", type=click.Path(path_type=str))
