"""Reach a server: its URL and its key, the SDK that asks it, a proxy on the way, certificates."""

from __future__ import annotations

import importlib
import importlib.util
import os
import ssl
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from foldline.errors import InputError
from foldline.providers.options import Body

NO_KEY: Final = "none"  # the SDKs require a key; servers that need none ignore it


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's URL and key, which is read from `variables` at the first call unless `key` is set.

    No repr shows the key. `keyless`: the server may not need one.
    """

    base_url: str | None = None
    variables: tuple[str, ...] = ()
    key: str | None = None
    keyless: bool = False

    def __repr__(self) -> str:
        """Show everything but the key."""
        return f"Access(base_url={self.base_url!r}, variables={self.variables!r}, keyless={self.keyless!r})"

    def find_key(self) -> tuple[str, str] | None:
        """Return the key and its variable ("" if the caller passed the key); None if there is no key."""
        keys = [(self.key or "", ""), *((os.environ.get(name, ""), name) for name in self.variables)]
        return next(((key.strip(), name) for key, name in keys if key.strip()), None)


def withheld(sdk: Any, variable: str, key: str) -> Body:
    """Return headers that cancel those which an SDK reads from a variable: they are for its own server."""
    names = [line.partition(":")[0].strip() for line in os.environ.get(variable, "").split("\n")]
    replacements = {"authorization": f"Bearer {key}"}
    return {name: replacements.get(name.lower()) or sdk.Omit() for name in names if name}


def load(package: str) -> Any:
    """Import an SDK; raises InputError with what to install."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise InputError(f"{package} is not installed: pip install 'foldline[{package}]'") from error


def installed(package: str) -> bool:
    """Return whether an SDK can be imported, without importing it."""
    return importlib.util.find_spec(package) is not None


def unusable_proxy() -> str | None:
    """Return what is wrong with the proxies that are set, and what to do; None if they can be used."""
    exempt = os.environ.get("no_proxy", os.environ.get("NO_PROXY", ""))
    if "*" in map(str.strip, exempt.split(",")):
        return None
    names = ("http_proxy", "https_proxy", "all_proxy")
    variables = [name if name in os.environ else name.upper() for name in names]
    wrong = next((name for name in variables if not _is_usable(os.environ.get(name) or "http://")), None)
    return wrong and (
        f"the proxy in {wrong} cannot be used: write http://host:port, or unset it; "
        "socks5://host:port needs `pip install socksio`"
    )


def _is_usable(proxy: str) -> bool:
    try:
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        _ = parts.port  # raises ValueError for an invalid port
    except ValueError:
        return False
    socks = parts.scheme in ("socks5", "socks5h") and importlib.util.find_spec("socksio") is not None
    return socks or parts.scheme in ("http", "https")


def unusable_certificates() -> str | None:
    """Return what is wrong with SSL_CERT_FILE, and what to do; None if it is unset or can be used."""
    if not (file := os.environ.get("SSL_CERT_FILE")):
        return None
    try:
        ssl.create_default_context(cafile=file)
    except OSError as error:
        return f"SSL_CERT_FILE={file} cannot be used: {error.strerror or error}; correct or unset it"
    return None
