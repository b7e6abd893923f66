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

A folder that was fetched must not decide what runs, what is allowed, who reads a session or where it is kept:
its file may set what `fetched.py` lists, and nothing else.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Mapping
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
from foldline.fetched import Table, with_fetched
from foldline.policies import MOST, changed, load, read_toml
from foldline.policies import policy as find_policy

log = logging.getLogger("foldline")

FILE = Path(".foldline") / "settings.toml"
FROM_ENVIRONMENT = ("store", "policy", "window", "model")
SWITCH_OFF: Final = "FOLDLINE_DISABLE_AUTOCOMPACT"
MOST_OF_A_FOLDER: Final = (
    64 * 1024
)  # bytes of a file that may have been fetched: reading long keys is quadratic
IN_POLICIES: Final = {
    "enabled": "enabled",
    "reserve": "reserve",
    "keep": "keep",
    "pruning": "enable_pruning",
    "prune_minimum": "prune_minimum",
    "prune_protect": "prune_protect",
    "reserved_output": "hard",
    "model": "summary_model",
    "instructions": "summary_instructions",
    "certify": "certify",
}
"""The keys of `[compaction]`, and the fields of a policy that they set."""


class CompactionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What holds over any policy; amounts as in `docs/presets.md`, `reserved_output` in tokens."""

    enabled: bool | None = None
    reserve: Any = None
    keep: Any = None
    pruning: bool | None = None
    prune_minimum: Any = None
    prune_protect: Any = None
    reserved_output: Annotated[int, msgspec.Meta(ge=1)] | None = None
    model: str | None = None
    instructions: str | None = None
    certify: Annotated[int, msgspec.Meta(ge=0)] | None = None

    def over(self, policy: Policy) -> Policy:
        """Return a policy with what is set here."""
        set_here = {name: getattr(self, name) for name in IN_POLICIES if getattr(self, name) is not None}
        if "reserved_output" in set_here:
            set_here["reserved_output"] = f"-{set_here['reserved_output']}"
        fields = {IN_POLICIES[name]: value for name, value in set_here.items()}
        return changed(policy, fields, where="[compaction]") if fields else policy


class AgentSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The terminal agent: what it may do, where, and how much: replies to a prompt, tokens of a reply."""

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
    """An MCP server: a `command` with `args` and `env`, or a `url`; `timeout` in seconds, to come up."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str = ""
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 30.0


Scope = Literal["read", "write", "admin", "metrics"]
EVERYTHING: Final[tuple[Scope, ...]] = ("read", "write", "admin")  # that a tenant may do


class TokenGrant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a token allows: the sessions of a tenant to `read`, to `write`, to delete (`admin`); until when.

    `metrics` allows the figures of all tenants, and nothing else. `name` is who has it, for logs.
    """

    tenant: str = "default"
    scopes: tuple[Scope, ...] = EVERYTHING
    expires: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    name: str = ""


class Webhook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An address to which events of sessions are posted, signed with `secret`.

    `events` and `tenant` choose among them; without, all are posted.
    """

    url: str
    secret: str
    events: tuple[str, ...] = ()
    tenant: str = ""


class ServeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The service: where it listens, where it sends requests, who may ask, and how much.

    `tokens` maps a token, or its hash, to its tenant or to what it allows; without any, only this machine may
    ask. `summaries` says who writes them: `upstream` (the model that is asked, with the key of the request),
    `offline` (code alone), or a provider's name. `max_body` in bytes, `max_messages` in a request, `rate` in
    requests a minute and tenant (0: no limit), `drain` the seconds that a stop waits for what is under way,
    `workers` the processes, `at_once` how many requests one of them takes at the same time.
    `summaries_at_once` and `summary_rate` (a minute; 0: no limit) bound the drafts of each provider, over all
    workers. `log` is `json` for a line about each request and all that is told, `plain` for what goes wrong.
    Sessions to which nothing was added or imported for `keep_days` are deleted (0: kept).
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
        """Return where a vendor's own model is, with `/v1`; None for one that its name places."""
        urls = {"openai": self.openai_upstream, "anthropic": self.anthropic_upstream}
        kind = model.partition(":")[0].removesuffix("-chat").removesuffix("-responses")
        return f"{urls[kind].rstrip('/').removesuffix('/v1')}/v1" if kind in urls else None


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What can be set.

    `policies` are tables as `docs/presets.md` describes them, `models` the user's own limits and prices.
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

    def try_tables(self) -> None:
        """Raise PolicyError for a model, a policy or an amount of `[compaction]` that is not understood."""
        self.catalogue()
        self.user_policies()
        self.compaction.over(Policy(name=""))

    def user_policies(self) -> dict[str, Policy]:
        """Return the policies of the settings files."""
        return load({"policies": self.policies}) if self.policies else {}

    def find_policy(
        self, given: str | Policy | None = None, own: Mapping[str, Policy] | None = None
    ) -> Policy:
        """Return a policy, or the one of that name (None: the one set) with what `[compaction]` sets over it.

        Policies of the user's `own` (None: those of the settings) go first; a `Policy` is taken as it is.
        Raises InputError where one that is to write summaries has a misspelt provider.
        """
        if isinstance(given, Policy):
            return self.checked(given)
        with _told(self._where("policy") if given is None else ""):
            found = find_policy(
                self.policy if given is None else given, self.user_policies() if own is None else own
            )
        return self.checked(self.compaction.over(found))

    def checked(self, policy: Policy) -> Policy:
        """Return a policy; InputError where a model that writes its summaries has a misspelt provider."""
        named = [policy.summary_model, *(one.get("summary_model") for one in policy.per_model.values())]
        for model in named:
            if isinstance(model, str):
                self.catalogue().check(model)
        return policy

    def catalogue(self) -> Catalogue:
        """Return the catalogue with the user's own models."""
        return Catalogue(overrides=self.models)

    def named_model(self, model: str | None) -> str | None:
        """Return a model that was named, else the one that is set; InputError for a misspelt provider."""
        if named := model or self.model:
            with _told("" if model else self._where("model")):
                self.catalogue().check(named)
        return named

    def _where(self, key: str) -> str:
        """Return where a key's value comes from."""
        variable = f"FOLDLINE_{key.upper()}"
        return variable if os.environ.get(variable) == getattr(self, key) else f"{key} in settings.toml"

    def model_info(
        self, model: str | None = None, window: int | Window | None = None, *, recorded: str | None = None
    ) -> ModelInfo:
        """Return what is known of a model (None: the one that is set, else the one that a file `recorded`).

        `window` stands above the window that is set, and that one above the model's. Raises InputError as
        `named_model` does.
        """
        return self.catalogue().look_up(self.named_model(model) or recorded, window or self.window)


prepared(Settings)


def settings(
    *, home: Path | None = None, here: Path | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    """Read the settings; tables of both files are merged, the nearer file wins.

    Raises InputError naming the file or the variable and what is allowed.
    """
    own, near = _file(Path.home, home), _file(Path.cwd, here)
    merged = _read(own)
    layers = [(own, merged)]
    if not _same(near, own):
        merged, refused = with_fetched(merged, _read(near, MOST_OF_A_FOLDER))
        layers.append((near, merged))
        for name in refused:
            _warn_of(near, name, own)
    variables = os.environ if environment is None else environment
    for key in FROM_ENVIRONMENT:
        variable = f"FOLDLINE_{key.upper()}"
        if value := variables.get(variable):
            _checked({key: value}, variable)
            merged[key] = value
    if variables.get(SWITCH_OFF, "").strip().lower() not in ("", "0", "false", "no", "off"):
        merged["compaction"] = {**merged.get("compaction", {}), "enabled": False}
    known = _checked(merged, "settings")
    try:
        known.try_tables()
    except PolicyError:
        for file, table in layers:
            with _told(str(file)):
                _checked(table, "settings").try_tables()
        raise
    return known


def own_tokens() -> dict[str, str | TokenGrant]:
    """Return the tokens of the user's own settings file; raises InputError where it cannot be read."""
    return _checked(_read(_file(Path.home)), "settings").serve.tokens


def own_stamp() -> tuple[int, ...]:
    """Return what differs where the user's own settings file is another, or was written or moved."""
    try:
        found = _file(Path.home).stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _file(find: Callable[[], Path], given: Path | None = None) -> Path:
    """Return the settings file of a folder that is given or found; where there is no home or folder, none."""
    try:
        return (given or find()) / FILE
    except (OSError, RuntimeError):
        return Path(os.devnull) / FILE


@contextmanager
def _told(where: str) -> Generator[None]:
    """Name the file or the variable that an error is about, where there is one."""
    try:
        yield
    except InputError as error:
        if not where:
            raise
        raise type(error)(f"{where}: {error}") from error


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return one == other


@cache
def _warn_of(file: Path, name: str, own: Path) -> None:
    log.warning(
        "%s: %s is left out: a folder may not set it; if you want it, set it in your own %s", file, name, own
    )


def _read(file: Path, most: int = MOST) -> Table:
    try:
        found = read_toml(file, most)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    _checked(found, str(file))
    return found


def _checked(found: dict[str, Any], where: str) -> Settings:
    try:
        return msgspec.convert(found, Settings, strict=False)
    except msgspec.ValidationError as error:
        allowed = ", ".join(Settings.__struct_fields__)
        raise InputError(f"{where}: {error}. Settings are {allowed}.") from error
