"""Windows and prices of known models: a dated file beside this one, read at the first look-up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from foldline.catalogue.info import DEFAULT_WINDOW, ModelInfo
from foldline.catalogue.names import ASKED, LONG, MAKERS, PROVIDERS, TUNED, SplitName, normal, take_apart
from foldline.core.decide.price import Price
from foldline.core.log.codec import prepared
from foldline.core.measure.window import Window
from foldline.errors import InputError, PolicyError

# After a known name only this may follow, or it is another model: how much it thinks, or a state of it with
# or without a date. `gpt-5` is not `gpt-5-6`, and `grok-4` not `grok-4-fast`.
_REST: Final = re.compile(
    r"(?:[-:](?:minimal|low|medium|high|xhigh|thinking|(?:preview|exp|beta)(?:-\d\d){0,2}|0\d\d|latest))+"
)
LONG_WINDOW: Final = 1_000_000  # tokens, where a name ends in `[1m]`
_TYPO: Final = 0.8  # how like a provider's name another word is that is meant to be it
_Tokens = Annotated[int, msgspec.Meta(ge=1)]
_Usd = Annotated[float, msgspec.Meta(ge=0)]


class Override(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A user's say on a model; what is not given stays as the catalogue has it."""

    context: _Tokens | None = None
    input: _Tokens | None = None
    output: _Tokens | None = None
    price: dict[Literal["input", "output", "cache_read", "cache_write"], _Usd] = {}


prepared(Override)


class _Data(msgspec.Struct):
    models: dict[str, dict[str, tuple[Any, ...]]]


prepared(_Data)


@cache
def _data() -> _Data:
    raw = Path(__file__).with_name("models.json").read_bytes()
    return msgspec.json.decode(raw, type=_Data)


@cache
def _normal_names(provider: str) -> dict[str, str]:
    """Map a provider's names, in their normal form, to the name; of several the shortest, the undated one."""
    names = sorted(_data().models.get(provider, ()), key=lambda name: (-len(name), name))
    return {normal(name): name for name in names}


def _row(
    asked: str, provider: str, name: str, found: Literal["exact", "same name", "longest prefix"]
) -> ModelInfo:
    context, most_input, output, price, cache_read, cache_write, price_output = _data().models[provider][name]
    window = Window(context=context, input=most_input, output=output or DEFAULT_WINDOW.output)
    cost = None
    if price is not None and price_output is not None:
        cost = Price(input=price, output=price_output, cache_read=cache_read, cache_write=cache_write)
    return ModelInfo(asked, window, cost, entry=f"{provider}:{name}", found=found)


def _providers(asked: SplitName) -> tuple[str, ...]:
    return MAKERS if asked.provider is None else (asked.provider,)


def _longest_prefix(name: str, known: Mapping[str, Any]) -> str | None:
    fits = [key for key in known if name.startswith(key) and _REST.fullmatch(name[len(key) :])]
    return max(fits, key=len, default=None)


def _look_up(name: str) -> ModelInfo | None:
    if tuned := TUNED.match(name):
        base = _look_up(f"openai:{tuned[1]}")
        return base and msgspec.structs.replace(base, name=name, price=None, found="longest prefix")
    readings = take_apart(name)
    for asked in readings:
        for provider in _providers(asked):
            if asked.model in _data().models.get(provider, ()):
                return _row(name, provider, asked.model, "exact")
    for asked in readings:
        for provider in _providers(asked):
            if (same := _normal_names(provider).get(normal(asked.model))) is not None:
                return _row(name, provider, same, "same name")
    for asked in readings:
        prefixes = [
            (_longest_prefix(normal(asked.model), _normal_names(p)) or "", p) for p in _providers(asked)
        ]
        best, provider = max(prefixes, key=lambda pair: len(pair[0]))
        if best:
            return _row(name, provider, _normal_names(provider)[best], "longest prefix")
    return None


class Catalogue:
    """The windows and prices of models, with a user's own figures above those of the file.

    `overrides` maps a model's name to any of `context`, `input`, `output` (tokens) and `price` (`input`,
    `output`, `cache_read`, `cache_write`, USD for a million). A key holds for every name of the same model
    with the same provider, or with any provider where the key names none. Raises PolicyError for a bad one.
    """

    def __init__(self, overrides: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self._overrides = {name: _override(name, given) for name, given in (overrides or {}).items()}

    def look_up(self, model: str | None, window: int | Window | None = None) -> ModelInfo:
        """Return what is known of a model; of an unknown one (or None) the default window, `known` False.

        `window` stands above what is known: a `Window`, or a context in tokens.
        """
        name = model or ""
        info = (_look_up(name) if name else None) or ModelInfo(model or None, known=False, found="default")
        key = self._overridden(name)
        if key is not None:
            info = _overlay(info, key, self._overrides[key])
        if window is None and LONG.search(name) and not LONG.search(key or ""):
            window = LONG_WINDOW
        return info if window is None else info.within(window)

    def check(self, model: str) -> None:
        """Raise InputError for a model whose provider is misspelt, as in `opnai:gpt-5.2`."""
        provider, colon, name = model.partition(":")
        known = {*PROVIDERS, *_data().models}
        if not colon or "/" in provider or self._overridden(model) == model:
            return
        if any(one in provider.lower() for one in known):
            return
        meant = get_close_matches(provider.lower(), known if _look_up(name) else ASKED, n=1, cutoff=_TYPO)
        if meant:
            raise InputError(
                f"unknown provider {provider!r} in {model!r} (did you mean '{meant[0]}:{name}'?); "
                f"known are {', '.join(ASKED)}, and those of the catalogue (docs/models.md)"
            )

    def _overridden(self, name: str) -> str | None:
        if name in self._overrides:
            return name
        for dated in (True, False):  # a key with a date holds for that version alone
            asked = {(said, normal(model, dated=dated)) for said, model in take_apart(name)}
            asked |= {(None, model) for _, model in asked}
            for key in self._overrides:
                first = take_apart(key)[0]
                if (first.provider, normal(first.model, dated=True)) in asked:
                    return key
        return None


def _override(name: str, given: Mapping[str, Any]) -> Override:
    try:
        override = msgspec.convert(dict(given), Override)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise PolicyError(f"models.{name}: {error}") from error
    if override.price and _overlay(_look_up(name) or ModelInfo(name), name, override).price is None:
        raise PolicyError(f"models.{name}: price needs input and output: the catalogue has none to add to")
    return override


def _overlay(base: ModelInfo, key: str, override: Override) -> ModelInfo:
    window = base.window
    context = override.context or window.context
    # A known input limit says nothing about another context.
    kept = window.input if context == window.context else None
    window = Window(context=context, input=override.input or kept, output=override.output or window.output)
    known = base.known or override.context is not None
    given = {**(msgspec.structs.asdict(base.price) if base.price else {}), **override.price}
    price = Price(**given) if {"input", "output"} <= given.keys() else None
    return ModelInfo(base.name, window, price, known=known, entry=key, found="override")
