"""Policies that users write: tables in a TOML file, each a base policy with some fields changed."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args, get_origin, get_type_hints

import msgspec

from foldline import files
from foldline.core.decide.policy import Keep, Policy
from foldline.core.decide.presets import PRESETS, preset
from foldline.core.measure.window import Amount
from foldline.errors import PolicyError, did_you_mean

Table = Mapping[str, Any]

MOST = 1_000_000  # bytes of a file of settings or policies
MOST_BASES = 50  # in a chain
DEFAULT = "foldline"  # the base of a table without `base`
AMOUNT_FORMS = (
    'tokens (30000), a share ("85%", "85% of usable") or a table such as {tokens = 30000, fraction = 0.2}'
)

_HINTS = get_type_hints(Policy)
_SETTABLE = tuple(name for name in Policy.__struct_fields__ if name != "name")
_AMOUNTS = frozenset(name for name in _SETTABLE if Amount in (_HINTS[name], *get_args(_HINTS[name])))
_NUMBER = re.compile(r"-?\d[\d_,]*")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%(?:\s+of\s+(context|usable|reserve))?")


def policy(name_or_path: str, user: Mapping[str, Policy] | None = None) -> Policy:
    """Return the policy with a name, or the only policy of a TOML file.

    `FILE.toml:NAME` is one of several policies in a file. `user` are policies loaded earlier; they override
    presets of the same name. Raises PolicyError with the available names.
    """
    known = {**PRESETS, **(user or {})}
    if not isinstance(name_or_path, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise PolicyError(f"policy = {name_or_path!r}: give a Policy, a name or a .toml file")
    if name_or_path in known:
        return known[name_or_path]
    file, _, name = name_or_path.partition(".toml:")
    if name:
        return policy(name, {**(user or {}), **load(Path(file + ".toml"))})
    if name_or_path.endswith(".toml"):
        policies = load(Path(name_or_path))
        if len(policies) == 1:
            return next(iter(policies.values()))
        raise PolicyError(f"{name_or_path} has several policies; add one of :{', :'.join(policies)}")
    hint = did_you_mean(name_or_path, known)
    raise PolicyError(f"no policy {name_or_path!r}{hint}; there are {', '.join(known)}, or give a .toml file")


def load(source: str | Path | Table) -> dict[str, Policy]:
    """Return the policies in the `[policies.NAME]` tables of a TOML file or of parsed settings.

    A table has a `base` (a preset, or another table of the same source; default `foldline`) and any field
    of `Policy`. Raises PolicyError that names the file, the table, the key and the allowed values.
    """
    if isinstance(source, Mapping):
        return _Tables("", source.get("policies", {})).policies()
    try:
        data = read_toml(Path(source))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise PolicyError(f"{source}: no such file") from error
    if not data.get("policies"):
        raise PolicyError(f"{source}: no [policies.NAME] table")
    return _Tables(f"{source}: ", data["policies"]).policies()


def read_toml(path: Path, most: int = MOST) -> dict[str, Any]:
    """Parse a TOML file of at most `most` bytes; raises PolicyError, or FileNotFoundError."""
    try:
        return tomllib.loads(files.content(path, most).decode("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"{path}: cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:  # not TOML, too many digits or too deep
        raise PolicyError(f"{path}: not TOML: {error}") from error


class _Tables:
    """The tables of one source, converted to policies; the base of a table may be another table."""

    def __init__(self, where: str, tables: Any) -> None:
        if not isinstance(tables, Mapping):
            raise PolicyError(f"{where}policies must be tables, [policies.NAME]")
        self._where = where
        self._tables = cast("Mapping[str, Any]", tables)
        self._policies: dict[str, Policy] = {}

    def policies(self) -> dict[str, Policy]:
        return {name: self._policy(name, ()) for name in self._tables}

    def _policy(self, name: str, derived: tuple[str, ...]) -> Policy:
        if name in self._policies:
            return self._policies[name]
        where = f"{self._where}[policies.{name}]"
        table = self._tables[name]
        if not isinstance(table, Mapping):
            raise PolicyError(f"{where} must be a table")
        fields = dict(cast("Mapping[str, Any]", table))
        base = self._base(fields.pop("base", DEFAULT), where, (*derived, name))
        fields = {"summary": f"{base.name}, changed", **fields, "name": name}
        self._policies[name] = changed(base, fields, where=where)
        return self._policies[name]

    def _base(self, base: Any, where: str, derived: tuple[str, ...]) -> Policy:
        if base in derived[:-1] or (base == derived[-1] and base not in PRESETS):
            raise PolicyError(
                f"{where} base = {base!r}: a policy cannot be based on itself, directly or through others"
            )
        if len(derived) > MOST_BASES:
            raise PolicyError(
                f"{where} base = {base!r}: a chain of bases may have at most {MOST_BASES} policies"
            )
        if isinstance(base, str) and base in self._tables and base != derived[-1]:
            return self._policy(base, derived)
        if not isinstance(base, str) or base not in PRESETS:
            names = ", ".join((*PRESETS, *(name for name in self._tables if name != derived[-1])))
            raise PolicyError(f"{where} base = {base!r}: must be one of {names}")
        return preset(base)


def changed(base: Policy, fields: Table, *, where: str = "policy") -> Policy:
    """Return a policy with changed fields, given in the short forms that a TOML table may use.

    Raises PolicyError that begins with `where` and names the key and the allowed values.
    """
    built = {key: _value(key, value, where) for key, value in _reserves(fields).items()}
    return msgspec.convert({**msgspec.to_builtins(base), **built}, Policy)


class CompactionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The settings in `[compaction]`, which override every policy; `reserved_output` is in tokens.

    Each field is called like the field of `Policy` that it sets; `name` is its key in the file.
    """

    enabled: bool | None = None
    reserve: Any = None
    keep: Any = None
    enable_pruning: bool | None = msgspec.field(default=None, name="pruning")
    prune_minimum: Any = None
    prune_protect: Any = None
    hard: Annotated[int, msgspec.Meta(ge=1)] | None = msgspec.field(default=None, name="reserved_output")
    summary_model: str | None = msgspec.field(default=None, name="model")
    summary_instructions: str | None = msgspec.field(default=None, name="instructions")
    certify: Annotated[int, msgspec.Meta(ge=0)] | None = None

    def over(self, policy: Policy) -> Policy:
        """Return the policy with these overrides, also over its `limits` and what it sets `per_model`."""
        given = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        if "hard" in given:
            given |= {"hard": f"-{given['hard']}", "limits": {}}
        fields = _reserves(given)
        per_model = {
            model: {name: value for name, value in changes.items() if name not in fields}
            for model, changes in policy.per_model.items()
        }
        policy = msgspec.structs.replace(policy, per_model=per_model)
        return changed(policy, fields, where="[compaction]") if fields else policy


def _reserves(fields: Table) -> dict[str, Any]:
    """Use a hard trigger of the form "-30000" (the room to leave) as the reserve too, unless that is set."""
    hard = str(fields.get("hard")).strip()
    if hard.startswith("-") and _NUMBER.fullmatch(hard):
        return {"reserve": abs(_integer(hard)), **fields}
    return dict(fields)


def _value(key: str, value: Any, where: str) -> Any:
    """Return a field's value in builtins; raises PolicyError for an unknown key or an invalid value."""
    name = f"{where} {key}"
    if key not in (*_SETTABLE, "name"):
        close = difflib.get_close_matches(key, _SETTABLE, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise PolicyError(f"{name}: no such field; {hint}The fields are {', '.join(_SETTABLE)}")
    if key == "keep":
        return _keep(value, name)
    if key in _AMOUNTS:
        return _amount(key, value, name)
    if key == "per_model":
        return _per_model(value, name)
    _check_choice(_HINTS[key], value, name)
    try:
        msgspec.convert(value, _HINTS[key])
    except msgspec.ValidationError as error:
        raise PolicyError(f"{name} = {value!r}: {error}") from error
    numbers = value.values() if key == "limits" else [value]
    if any(isinstance(number, int) and number < 0 for number in numbers):
        raise PolicyError(f"{name} = {value!r}: must not be negative")
    return value


def _check_choice(hint: Any, value: Any, name: str) -> None:
    """Raise PolicyError for a value that is not among a field's choices; the error names them."""
    options = get_args(hint) if get_origin(hint) is Literal else ()
    item_hint = get_args(hint)[0] if get_origin(hint) is tuple else None
    if item_hint is not None and get_origin(item_hint) is Literal:
        if not isinstance(value, list | tuple):
            raise PolicyError(f"{name} = {value!r}: must be a list of {', '.join(get_args(item_hint))}")
        for item in cast("Sequence[Any]", value):
            _check_choice(item_hint, item, name)
    if options and value not in options:
        raise PolicyError(f"{name} = {value!r}: must be one of {', '.join(map(str, options))}")


def _keep(value: Any, name: str) -> Any:
    """Return a `Keep` in builtins: from an amount, or a table of `amount`, `messages`, `message_fraction`."""
    if not isinstance(value, Mapping) or not set(cast("Table", value)) & set(Keep.__struct_fields__):
        return {"amount": _amount("keep", value, name)} if value is not None and value != {} else {}
    table = dict(cast("Table", value))
    if "amount" in table:
        table["amount"] = _amount("keep", table["amount"], f"{name}.amount")
    return _checked(table, Keep, name, f"{AMOUNT_FORMS}, or a table of {', '.join(Keep.__struct_fields__)}")


def _amount(key: str, value: Any, name: str) -> Any:
    """Return an `Amount` in builtins: from tokens, a share, the room to leave ("-30000"), or a table.

    Raises PolicyError for an amount that makes no sense for the field.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        table: dict[str, Any] = {"tokens": value} if value >= 0 else {"less": -value}
    elif isinstance(value, str):
        table = _amount_text(value.strip(), name)
    elif isinstance(value, Mapping):
        table = dict(cast("Table", value))
    else:
        raise PolicyError(f"{name} = {value!r}: must be {AMOUNT_FORMS}")
    amount = msgspec.convert(_checked(table, Amount, name, AMOUNT_FORMS), Amount)
    if not 0 <= (amount.fraction or 0) <= 1 or (amount.tokens or 0) < 0 or (amount.less or 0) < 0:
        raise PolicyError(
            f"{name} = {value!r}: tokens must not be negative, a fraction is from 0 to 1 (100%)"
        )
    if "less" in table and key not in ("soft", "hard"):
        raise PolicyError(f"{name}: only soft and hard can be given as the room to leave")
    if table.get("of") == "usable" and key == "reserve":
        raise PolicyError(
            f"{name}: a reserve is a share of the context, since usable is what remains without it"
        )
    if table.get("of") == "reserve" and key != "summary_tokens":
        raise PolicyError(f"{name}: only summary_tokens can be a share of the reserve")
    return table


def _amount_text(text: str, name: str) -> dict[str, Any]:
    share = _SHARE.fullmatch(text)
    if share:
        return {"fraction": float(share[1]) / 100, "of": share[2] or "context"}
    if _NUMBER.fullmatch(text):
        return {"less": abs(_integer(text))} if text.startswith("-") else {"tokens": _integer(text)}
    if text == "output":
        return {"output": True}
    raise PolicyError(f"{name} = {text!r}: must be {AMOUNT_FORMS}")


def _integer(text: str) -> int:
    return int(text.strip().replace(",", "").replace("_", ""))


def _checked(table: dict[str, Any], kind: type[msgspec.Struct], name: str, allowed: str) -> dict[str, Any]:
    """Return a table; raises PolicyError if it has an unknown key or an invalid value."""
    unknown = [key for key in table if key not in kind.__struct_fields__]
    if unknown:
        raise PolicyError(
            f"{name}.{unknown[0]}: no such key; the keys are {', '.join(kind.__struct_fields__)}"
        )
    try:
        msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise PolicyError(f"{name} = {table!r}: {error}; must be {allowed}") from error
    return table


def _per_model(value: Any, name: str) -> Any:
    if not isinstance(value, Mapping):
        raise PolicyError(
            f'{name}: must be tables by model name, such as [policies.NAME.per_model."claude-"]'
        )
    models: dict[str, dict[str, Any]] = {}
    for model, table in cast("Table", value).items():
        if not isinstance(table, Mapping):
            raise PolicyError(f"{name}.{model}: must be a table of fields")
        fields = cast("Table", table)
        refused = sorted(set(fields) & {"per_model", "limits", "name", "base"})
        if refused:
            raise PolicyError(f"{name}.{model}.{refused[0]}: cannot be set for a model")
        models[model] = {
            key: _value(key, field, f"{name}.{model}") for key, field in _reserves(fields).items()
        }
    return models
