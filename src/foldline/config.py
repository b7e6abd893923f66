"""Settings without code: defaults < ~/.foldline/settings.toml < .foldline/settings.toml < FOLDLINE_* < flags.

store = "sqlite:///team.db"
policy = "pi"
window = 200_000

[policies.mine]
base = "foldline"
keep = 30_000

[models."openai:my-finetune"]
context = 64_000
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from foldline.catalogue import Catalogue, ModelInfo
from foldline.core.decide.policy import Policy
from foldline.core.measure.window import Window
from foldline.errors import InputError
from foldline.policies import load
from foldline.policies import policy as find_policy

FILE = Path(".foldline") / "settings.toml"
FROM_ENVIRONMENT = ("store", "policy", "window", "model")


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

    def user_policies(self) -> dict[str, Policy]:
        """Return the policies of the settings files."""
        return load({"policies": self.policies}) if self.policies else {}

    def find_policy(self, given: str | Policy | None = None) -> Policy:
        """Return a policy, or the one of that name (None: the one set); those of the settings go first."""
        if isinstance(given, Policy):
            return given
        return find_policy(self.policy if given is None else given, self.user_policies())

    def catalogue(self) -> Catalogue:
        """Return the catalogue with the user's own models."""
        return Catalogue(overrides=self.models)

    def model_info(
        self, model: str | None = None, window: int | Window | None = None, *, recorded: str | None = None
    ) -> ModelInfo:
        """Return what is known of a model (None: the one that is set, else the one that a file `recorded`).

        `window` stands above the window that is set, and that one above the model's.
        """
        return self.catalogue().look_up(model or self.model or recorded, window or self.window)


def settings(
    *, home: Path | None = None, here: Path | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    """Read the settings; tables of both files are merged, the nearer file wins.

    Raises InputError naming the file or the variable and what is allowed.
    """
    merged: dict[str, Any] = {}
    for folder in (home or Path.home(), here or Path.cwd()):
        for key, value in _read(folder / FILE).items():
            merged[key] = {**merged.get(key, {}), **value} if isinstance(value, dict) else value
    variables = os.environ if environment is None else environment
    for key in FROM_ENVIRONMENT:
        variable = f"FOLDLINE_{key.upper()}"
        if value := variables.get(variable):
            _checked({key: value}, variable)
            merged[key] = value
    return _checked(merged, "settings")


def _read(file: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: {error}") from error
    _checked(found, str(file))
    return found


def _checked(found: dict[str, Any], where: str) -> Settings:
    try:
        return msgspec.convert(found, Settings, strict=False)
    except msgspec.ValidationError as error:
        allowed = ", ".join(Settings.__struct_fields__)
        raise InputError(f"{where}: {error}. Settings are {allowed}.") from error
