"""The tokens of the service: whose each is, what it may do, and until when.

A token stands in the settings as it is, or as its SHA-256 (`foldline tokens` makes one so). One that is only
known by its hash cannot be looked for in what leaves the service: so it has a form of its own, and nothing of
that form leaves. What is taken out of the settings file ends without a restart.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import re
import secrets
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import unquote, unquote_plus

from foldline.config import TokenGrant, own_stamp, own_tokens
from foldline.errors import InputError

log = logging.getLogger("foldline")

SHORTEST: Final = 16  # characters of a token
LOOK_SECONDS: Final = 2.0  # between two looks at whether the settings file was written again
HASHED: Final = "sha256:"
PREFIX: Final = "foldline_"
_OWN: Final = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}")
_OWN_FOLDED: Final = re.compile(rf"{PREFIX}[a-z0-9_-]{{43}}")
_PLAIN: Final = re.compile(rf"[!-~]{{{SHORTEST},}}")
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_TENANT: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{16,}")
_URL_SAFE: Final = str.maketrans("-_", "+/")


def new_token() -> str:
    """Make a token that nobody can guess (256 bits)."""
    return PREFIX + secrets.token_urlsafe(32)


def hashed(token: str) -> str:
    """Return a token as it stands in the settings. Its 256 bits need no slow hash."""
    return HASHED + hashlib.sha256(token.encode()).hexdigest()


def check_tenant(name: str) -> None:
    """Raise InputError where a tenant cannot have that name."""
    if not _TENANT.fullmatch(name):
        raise InputError(f"[serve] tokens: {name!r} is no name of a tenant: use a-z, 0-9, - and _")


class Tokens:
    """The tokens that are set; raises InputError for those that cannot be, as `check` does of a grant."""

    def __init__(self, given: Mapping[str, str | TokenGrant], check: Callable[[TokenGrant], object]) -> None:
        self.grants: list[TokenGrant] = []
        self._digests: list[tuple[bytes, bool]] = []  # of each, and whether only that is known
        self._folded: list[str] = []
        for token, said in given.items():
            grant = TokenGrant(tenant=said) if isinstance(said, str) else said
            check_tenant(grant.tenant)
            check(grant)
            self.grants.append(grant)
            self._digests.append((self._digest(token, grant), token.startswith(HASHED)))

    def _digest(self, token: str, grant: TokenGrant) -> bytes:
        if token.startswith(HASHED):
            if not _HASH.fullmatch(token.removeprefix(HASHED)):
                raise InputError(
                    f"[serve] tokens: the hash of {grant.tenant!r} is none: use the line of `foldline tokens`"
                )
            return bytes.fromhex(token.removeprefix(HASHED))
        if not _PLAIN.fullmatch(token):
            raise InputError(
                f"[serve] tokens: the token of {grant.tenant!r} can be guessed or not be sent: use "
                f"{SHORTEST} or more letters, digits and signs without a blank, as `openssl rand -hex 24` "
                "prints"
            )
        self._folded.append(token.casefold())
        return hashlib.sha256(token.encode()).digest()

    def find(self, given: str) -> TokenGrant | None:
        """Return what a token allows; None for one that is wrong or has expired."""
        digest = hashlib.sha256(given.encode("utf-8", "replace")).digest()
        own = _OWN.fullmatch(given) is not None
        found = None
        # all are compared: the time that it takes tells nothing
        for (known, hash_only), grant in zip(self._digests, self.grants, strict=True):
            if hmac.compare_digest(known, digest) and (own or not hash_only):
                found = grant
        if found is None or (found.expires is not None and found.expires <= datetime.now(UTC)):
            return None
        return found

    def in_text(self, text: str) -> bool:
        """Return whether a text is a token of the service, or holds one, as it is or encoded."""
        return bool(self.grants) and any(self._in(form) for form in _forms(text))

    def _in(self, form: str) -> bool:
        return any(token in form for token in self._folded) or _OWN_FOLDED.search(form) is not None


def follows_file(given: Mapping[str, str | TokenGrant]) -> bool:
    """Whether tokens are those of the user's settings file, to be read again where that changes."""
    return bool(given) and given == own_tokens()


class CurrentTokens:
    """The tokens as they are set now; with `follows`, as the user's own settings file has them.

    A file that cannot be read, or whose tokens cannot be (`check` raises InputError), changes nothing, and a
    warning says so. One without tokens lets nobody in.
    """

    def __init__(
        self,
        given: Mapping[str, str | TokenGrant],
        check: Callable[[TokenGrant], object],
        *,
        follows: bool,
    ) -> None:
        self._check = check
        self._tokens = Tokens(given, check)
        self._follows = follows
        self._stamp: tuple[int, ...] | None = None  # of the file that they are of; None: not looked at yet
        self._refused: tuple[int, ...] | None = None  # of one that cannot be read
        self._next = 0.0

    @property
    def now(self) -> Tokens:
        """The tokens that are right now."""
        if self._follows and time.monotonic() >= self._next:
            self._next = time.monotonic() + LOOK_SECONDS
            if (found := own_stamp()) != self._stamp:
                self._read(found)
        return self._tokens

    def _read(self, found: tuple[int, ...]) -> None:
        try:
            self._tokens = Tokens(own_tokens(), self._check)
        except (InputError, RuntimeError) as error:
            if found != self._refused:
                log.warning("the tokens stay as they were: %s", error)
            self._refused = found
        else:
            self._stamp = found


def _forms(text: str) -> list[str]:
    """Return a text as it is, percent-decoded once and twice, and its words of base64 decoded."""
    once = unquote_plus(text)
    plain = [text, unquote(text), once, unquote_plus(once)]
    coded = [_decoded(word) for one in dict.fromkeys(plain) for word in _BASE64.findall(one)]
    return [one.casefold() for one in dict.fromkeys([*plain, *coded])]


def _decoded(word: str) -> str:
    whole = word.translate(_URL_SAFE)[: len(word) // 4 * 4 if len(word) % 4 == 1 else None]
    return base64.b64decode(whole + "=" * (-len(whole) % 4)).decode("latin-1")
