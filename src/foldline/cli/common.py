"""What the commands share: options, and reading session files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from foldline.cli.memory import TO_FOLD, check_room
from foldline.cli.output import progress, warn
from foldline.config import settings
from foldline.core.decide.policy import Policy
from foldline.core.measure.tokens import OFFLINE, Counter
from foldline.core.measure.window import Window
from foldline.errors import did_you_mean
from foldline.loading import Loaded, from_stream
from foldline.policies import load, policy
from foldline.transcripts import MessageRecord, Record, open_transcript


class OneOf(click.Choice[str]):
    """A choice of names that says which known one is close to a wrong one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the choice; raises BadParameter, with the closest one, for any other value."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(f"{error.message.rstrip('.')}{did_you_mean(str(value), self.choices)}.", param, ctx)


F = TypeVar("F", bound=Callable[..., Any])


def policy_options(command: F) -> F:
    """Add --policy and --policies."""
    command = click.option(
        "--policies",
        "policy_file",
        type=click.Path(path_type=Path),
        help="A TOML file with policies of your own.",
    )(command)
    return click.option(
        "--policy",
        "policy_name",
        metavar="NAME",
        help="A preset, or one of your own  [default: the settings', else foldline]",
    )(command)


def find_policy(name: str | None, policy_file: Path | None) -> Policy:
    """Return the policy of that name (default: the settings'); those of `policy_file` come first."""
    known = settings()
    own = load(policy_file) if policy_file else {}
    return known.checked(policy(name or known.policy, {**known.user_policies(), **own}))


def find_window(model: str | None, window: int | None, recorded: str | None = None) -> Window:
    """Return the limits to work with: the flags', the settings', or those of the model that a file names."""
    info = settings().model_info(model, window, recorded=recorded)
    warn([info.warning] if info.warning else [])
    return info.window


def shown_name(file: str) -> str:
    """Return the name of a session file as messages show it."""
    return "standard input" if file == "-" else file


def read_session(
    file: str, *, from_start: bool = False, counter: Counter = OFFLINE, room: int = TO_FOLD
) -> Loaded:
    """Read a session file of any known format into entries; warnings go to standard error.

    `room` is how many bytes of memory the work takes for a byte of the file.
    """
    with progress(f"reading {shown_name(file)}") as tick:
        loaded = load_session(file, from_start=from_start, counter=counter, room=room, tick=tick)
    warn(loaded.warnings)
    return loaded


def load_session(
    file: str,
    *,
    from_start: bool = False,
    counter: Counter = OFFLINE,
    room: int = TO_FOLD,
    tick: Callable[[int], None] = lambda _: None,
) -> Loaded:
    """Read a session file like `read_session`, but print nothing; `tick` gets the number of messages."""
    name = shown_name(file)
    with open_transcript(file) as stream:
        check_room(stream, name, room)
        return from_stream(
            stream,
            name,
            from_start=from_start,
            counter=counter,
            through=lambda records: counted(records, tick),
        )


def counted(records: Iterator[Record], tick: Callable[[int], None]) -> Iterator[Record]:
    """Pass records on, telling every 500 messages how many there were."""
    heard = 0
    for record in records:
        heard += isinstance(record, MessageRecord)
        if heard % 500 == 0:
            tick(heard)
        yield record
