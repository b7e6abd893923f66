"""Refuse what a real API refuses, in its own words: shapes, pairing, models, limits, signatures.

The dialect's own validator checks the list; the API (`apis/`) adds what stands around the list in a request,
and this what only the server knows: its models and its window.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Literal

from foldline.core.measure.window import Window
from foldline.testing.apis import api_of
from foldline.testing.apis.base import ModelApi
from foldline.testing.meter import Meter
from foldline.testing.request import Asked
from foldline.testing.signatures import Signer

# error: refused, as most do. truncate: the oldest input is cut away in silence (Ollama). accept: answered,
# with the usage that shows it (z.ai). starve: a reply of no token that stopped for length (MiMo).
Overflowing = Literal["error", "truncate", "accept", "starve"]
_ALTERNATE: Final = (
    'messages: roles must alternate between "user" and "assistant", '
    'but found multiple "{role}" roles in a row'
)


class Strict:
    """The rules of one served model.

    `models` None takes every name. `alternation` also refuses two messages of one role in a row, as Anthropic
    did before it combined them and as many chat templates still do. `prefill` False refuses a list that ends
    with the assistant, as Anthropic's models since Claude 4.6 do.
    """

    def __init__(
        self,
        window: Window,
        meter: Meter,
        signer: Signer,
        *,
        models: Sequence[str] | None = None,
        overflow: Overflowing = "error",
        alternation: bool = False,
        prefill: bool = True,
    ) -> None:
        self.window = window
        self.overflow: Overflowing = overflow
        self._meter = meter
        self._signer = signer
        self._models = models
        self._alternation = alternation
        self._prefill = prefill

    def check(self, asked: Asked) -> None:
        """Check a request; raises the Refusal that its provider would send. Sets `asked.tokens`."""
        api = api_of(asked.dialect)
        if not asked.model:
            raise api.bad(api.no_model)
        if self._models is not None and asked.model not in self._models:
            raise api.unknown_model(asked.model)
        api.check(asked, self._signer, prefill=self._prefill)
        if self._alternation:
            _alternate(asked, api)
        asked.tokens = self._meter.count(asked)
        cap, most = asked.max_tokens, self.window.output
        if cap is not None and cap > most:
            raise api.too_large(asked, cap, most)
        refusal = api.overflow(asked.tokens, self.window.input_limit, cap or 0, self.window.context)
        if refusal is not None and self.overflow == "error":
            raise refusal


def _alternate(asked: Asked, api: ModelApi) -> None:
    for before, role in pairwise(message.get("role") for message in asked.messages):
        if role == before and role in ("user", "assistant"):
            raise api.bad(_ALTERNATE.format(role=role))
