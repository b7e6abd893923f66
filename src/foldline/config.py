"""Settings without code: defaults < ~/.foldline/settings.toml < .foldline/settings.toml < FOLDLINE_* < flags.

store = "sqlite:///team.db"
policy = "pi"
window = 200_000

[policies.mine]
base = "foldline"
keep = 30_000

[models."openai:my-finetune"]
context = 64_000

[compaction]
enabled = true
keep = 20_000

A folder may be downloaded, so it must not decide what runs, what is allowed, who reads a session or where it
is stored: its file may set only the keys that `fetched.py` lists.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from foldline.catalogue import Catalogue, ModelInfo
from foldline.core.decide.policy import Policy
from foldline.core.log.codec import prepared
from foldline.core.measure.window import Window
from foldline.errors import InputError, PolicyError
from foldline.fetched import Table, merge_folder_settings
from foldline.policies import MOST, CompactionSettings, load, read_toml
from foldline.policies import policy as find_policy

log = logging.getLogger("foldline")

FILE = Path(".foldline") / "settings.toml"
FROM_ENVIRONMENT = ("store", "policy", "window", "model")
SWITCH_OFF: Final = "FOLDLINE_DISABLE_AUTOCOMPACT"
MAX_FOLDER_FILE: Final = 64 * 1024  # bytes; tomllib takes quadratic time for long keys
POLICY_TABLES: Final = ("models", "policies", "compaction")


class AgentSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The terminal agent: permission rules, extra folders, `steps` (replies per prompt), `max_tokens`."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    steps: Annotated[int, msgspec.Meta(ge=1)] = 500
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    tools: bool = True
    theme: str = ""


class HookSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Commands run before and after a compaction; `timeout` in seconds."""

    before_compaction: tuple[str, ...] = ()
    after_compaction: tuple[str, ...] = ()
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 30.0


class McpServer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An MCP server: a `command` with `args` and `env`, or a `url`; `timeout` in seconds, to start."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str = ""
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 30.0


Scope = Literal["read", "write", "admin", "metrics"]
EVERYTHING: Final[tuple[Scope, ...]] = ("read", "write", "admin")  # the scopes of a tenant


class TokenGrant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rights of a token, and their end: to `read`, `write` or delete (`admin`) the sessions of a tenant.

    `metrics` allows only the metrics of all tenants. `name` is the token's owner, for logs.
    """

    tenant: str = "default"
    scopes: tuple[Scope, ...] = EVERYTHING
    expires: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    name: str = ""


class Webhook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A URL to which session events are posted, signed with `secret`.

    `events` and `tenant` filter them; by default all events are posted.
    """

    url: str
    secret: str
    events: tuple[str, ...] = ()
    tenant: str = ""


class ServeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The service: its address, upstreams, tokens and limits.

    `tokens` maps a token, or its hash, to its tenant or grant; without tokens only this machine is served.
    `summaries` sets who writes them: `upstream` (the requested model, with the key of the request), `offline`
    (no model), or a provider's name. `max_body` is in bytes, `max_messages` per request, `rate` in requests
    per minute and tenant (0: no limit), `drain` the seconds that a stop waits for running requests, `workers`
    the number of processes, `at_once` the concurrent requests of one process. `summaries_at_once` and
    `summary_rate` (per minute; 0: no limit) limit the drafts per provider over all workers. `log` is `json`
    for a line per request and per message, `plain` for errors only. Sessions that did not grow for
    `keep_days` are deleted (0: never).
    """

    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 8_400
    store: str | None = None
    policy: str | None = None
    window: Annotated[int, msgspec.Meta(ge=1)] | None = None
    model: str | None = None
    openai_upstream: str = "https://api.openai.com/v1"
    anthropic_upstream: str = "https://api.anthropic.com/v1"
    google_upstream: str = "https://generativelanguage.googleapis.com/v1beta"
    summaries: str = "upstream"
    tokens: dict[str, str | TokenGrant] = {}
    max_body: Annotated[int, msgspec.Meta(ge=1)] = 64 * 1024 * 1024
    max_messages: Annotated[int, msgspec.Meta(ge=1)] = 10_000
    rate: Annotated[int, msgspec.Meta(ge=0)] = 0
    open_sessions: Annotated[int, msgspec.Meta(ge=1)] = 256
    drain: Annotated[float, msgspec.Meta(ge=0)] = 20.0
    workers: Annotated[int, msgspec.Meta(ge=1, le=256)] = 1
    at_once: Annotated[int, msgspec.Meta(ge=1)] = 512
    summaries_at_once: Annotated[int, msgspec.Meta(ge=1)] = 8
    summary_rate: Annotated[int, msgspec.Meta(ge=0)] = 0
    log: Literal["plain", "json"] = "plain"
    keep_days: Annotated[float, msgspec.Meta(ge=0)] = 0
    webhooks: tuple[Webhook, ...] = ()

    def url_of(self, model: str) -> str | None:
        """Return the upstream of a vendor's model, with `/v1`; None if its name contains the address."""
        urls = {"openai": self.openai_upstream, "anthropic": self.anthropic_upstream}
        vendor = model.partition(":")[0].removesuffix("-chat").removesuffix("-responses")
        return f"{urls[vendor].rstrip('/').removesuffix('/v1')}/v1" if vendor in urls else None


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All settings.

    `policies` are tables as in `docs/presets.md`, `models` the user's own limits and prices.
    """

    store: str | None = None
    policy: str = "foldline"
    window: Annotated[int, msgspec.Meta(ge=1)] | None = None
    model: str | None = None
    policies: dict[str, dict[str, Any]] = {}
    models: dict[str, dict[str, Any]] = {}
    compaction: CompactionSettings = CompactionSettings()
    agent: AgentSettings = AgentSettings()
    hooks: HookSettings = HookSettings()
    serve: ServeSettings = ServeSettings()
    mcp: dict[str, McpServer] = {}

    def check_tables(self) -> None:
        """Raise PolicyError for an invalid value in POLICY_TABLES."""
        self.catalogue()
        self.user_policies()
        self.compaction.over(Policy(name=""))

    def user_policies(self) -> dict[str, Policy]:
        """Return the policies that the settings files define."""
        return load({"policies": self.policies}) if self.policies else {}

    def find_policy(
        self, policy: str | Policy | None = None, user_policies: Mapping[str, Policy] | None = None
    ) -> Policy:
        """Return the policy of a name (None: the configured one) with the overrides of `[compaction]`.

        `user_policies` (None: those of the settings) override presets; a `Policy` is returned unchanged.
        Raises InputError if a model that writes its summaries has an unknown provider.
        """
        if not isinstance(policy, Policy):
            with _errors_in(self._source("policy") if policy is None else ""):
                user = self.user_policies() if user_policies is None else user_policies
                policy = find_policy(self.policy if policy is None else policy, user)
            policy = self.compaction.over(policy)
        writers = [policy.summary_model, *(rules.get("summary_model") for rules in policy.per_model.values())]
        for model in writers:
            if isinstance(model, str):
                self.catalogue().check(model)
        return policy

    def catalogue(self) -> Catalogue:
        """Return the catalogue, with the user's own models."""
        return Catalogue(overrides=self.models)

    def named_model(self, model: str | None) -> str | None:
        """Return the model, or by default the configured one; raises InputError for an unknown provider."""
        if name := model or self.model:
            with _errors_in("" if model else self._source("model")):
                self.catalogue().check(name)
        return name

    def _source(self, key: str) -> str:
        """Name the environment variable, or the key of the file, that sets a value."""
        variable = f"FOLDLINE_{key.upper()}"
        return variable if os.environ.get(variable) == getattr(self, key) else f"{key} in settings.toml"

    def model_info(
        self, model: str | None = None, window: int | Window | None = None, *, recorded: str | None = None
    ) -> ModelInfo:
        """Return limits and prices of a model (None: the configured one, else the one a file `recorded`).

        `window` overrides the configured window, and that one the model's. Raises InputError as `named_model`
        does.
        """
        return self.catalogue().look_up(self.named_model(model) or recorded, window or self.window)


prepared(Settings)


def settings(
    *,
    home: Path | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    without: Sequence[str] = (),
) -> Settings:
    """Read the settings; the tables of both files are merged, and the folder's override the user's.

    `home` and `folder` are the folders of both files, `without` names tables to skip. Raises InputError that
    names the file or the variable, and the allowed values.
    """
    own, near = _file(Path.home, home), _file(Path.cwd, folder)
    merged = _read(own, without)
    layers = [(own, merged)]
    if not _is_same(near, own):
        merged, refused = merge_folder_settings(merged, _read(near, without, MAX_FOLDER_FILE))
        layers.append((near, merged))
        for name in refused:
            advice = f"a folder may not set it; if you want it, set it in your own {own}"
            _warn_once(f"{near}: {name} is ignored: {advice}")
    variables = os.environ if environment is None else environment
    for key in FROM_ENVIRONMENT:
        variable = f"FOLDLINE_{key.upper()}"
        if value := variables.get(variable):
            _checked({key: value}, variable)
            merged[key] = value
    if variables.get(SWITCH_OFF, "").strip().lower() not in ("", "0", "false", "no", "off"):
        merged["compaction"] = {**merged.get("compaction", {}), "enabled": False}
    result = _checked(merged, "settings")
    try:
        result.check_tables()
    except PolicyError:
        for file, table in layers:
            with _errors_in(str(file)):
                _checked(table, "settings").check_tables()
        raise
    return result


def basic_settings() -> Settings:
    """Read the settings for work that does not need POLICY_TABLES: mistakes in these are only logged."""
    try:
        return settings()
    except InputError as error:
        basic = settings(without=POLICY_TABLES)
        _warn_once(f"ignoring a mistake in the settings: {error}")
        return basic


def own_tokens() -> dict[str, str | TokenGrant]:
    """Return the tokens of the user's own settings file; raises InputError if it cannot be read."""
    return _checked(_read(_file(Path.home)), "settings").serve.tokens


def own_stamp() -> tuple[int, ...]:
    """Return a value that changes when the user's own settings file is written or replaced."""
    try:
        stat = _file(Path.home).stat()
    except OSError:
        return ()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _file(default: Callable[[], Path], folder: Path | None = None) -> Path:
    """Return the settings file of a folder; a path to no file if there is no default folder."""
    try:
        return (folder or default()) / FILE
    except (OSError, RuntimeError):
        return Path(os.devnull) / FILE


@contextmanager
def _errors_in(where: str) -> Generator[None]:
    """Begin the text of an InputError with the file or the variable at fault."""
    try:
        yield
    except InputError as error:
        if not where:
            raise
        raise type(error)(f"{where}: {error}") from error


def _is_same(file: Path, other: Path) -> bool:
    try:
        return file.samefile(other)
    except OSError:
        return file == other


@cache
def _warn_once(text: str) -> None:
    log.warning("%s", text)


def _read(file: Path, without: Sequence[str] = (), most: int = MOST) -> Table:
    try:
        table = read_toml(file, most)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    table = {key: value for key, value in table.items() if key not in without}
    _checked(table, str(file))
    return table


def _checked(table: Table, where: str) -> Settings:
    try:
        return msgspec.convert(table, Settings, strict=False)
    except msgspec.ValidationError as error:
        allowed = ", ".join(Settings.__struct_fields__)
        raise InputError(f"{where}: {error}. Settings are {allowed}.") from error
