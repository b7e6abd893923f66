"""Commands that are given a secret: as an argument, or on their standard input.

One line a command. `@` is the secret, `@?` one only if it looks drawn at random, `_` any one word, `-*`
options, `...` whatever stands between, `=@` the values of all `NAME=value` that follow. Other words are as in
a pattern; `a|b` is either of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby, product, takewhile
from typing import NamedTuple

from foldline.core.secrets.plain import is_literal, is_mixed, is_odd, is_random
from foldline.core.secrets.span import SecretSpan

_ARGUMENTS = """
    ConvertTo-SecureString ... @
    Set-Secret ... -Secret @
    ansible-vault encrypt_string ... @
    aws secretsmanager ... --secret-string @
    aws ssm put-parameter ... --value @ ... SecureString
    aws ssm put-parameter ... SecureString ... --value @
    az keyvault secret set ... --value @
    cargo login @
    cf set-env _ _ @?
    circleci env store-secret _ _ _ @
    cmdkey ... /pass:@
    composer config ... \\S*(?:http-basic)\\.\\S+ _ @
    composer config ... \\S*(?:oauth|token)\\.\\S+ @
    crackmapexec|netexec|nxc ... -p @
    cqlsh ... -p @
    doppler secrets set -* _ @
    doppler secrets set =@
    dotnet user-secrets set -* _ @
    eb setenv =@?
    firebase functions:config:set =@?
    fly|flyctl secrets set|import|deploy =@
    gh secret set ... --body|-b @
    glab variable set _ @?
    heroku config:set =@?
    ipmitool ... -P @
    kubectl|oc create secret =@
    lftp ... -u [^\\s,]+,@
    mc alias set _ _ _ @
    mc config host add _ _ _ @
    mosquitto_passwd ... -b _ _ @
    net user _ (?!/)@
    netlify|ntl env:set -* _ @?
    ngrok authtoken @
    ngrok config add-authtoken @
    nmcli ... password|\\S+\\.psk @
    op item create|edit =@?
    openssl passwd -* @
    poetry config http-basic\\.\\S+ _ @
    poetry config pypi-token\\.\\S+ @
    psexec|psexec64 ... -p @
    pulumi config set ... --secret -* _ @
    pulumi config set -* _ @ ... --secret
    rabbitmqctl add_user|change_password|authenticate_user _ @
    railway variables =@?
    rclone obscure @
    security add-generic-password|add-internet-password ... -w @
    security import ... -P @
    security unlock-keychain ... -p @
    setx _ @?
    snmpget|snmpset|snmpwalk|snmpbulkwalk ... -A|-X @
    ssh-keygen ... -N|-P @
    supabase secrets set =@
    travis encrypt =@
    tsql|isql ... -P @
    useradd|usermod ... -p @
    vault kv put|patch =@?
    vault write =@?
    wandb login -* @
    wpa_passphrase _ @
"""
_STANDARD_INPUT = """
    ansible-vault encrypt_string
    cryptsetup
    docker|podman secret create
    firebase functions:secrets:set
    gcloud secrets create|versions
    gh auth login
    gh secret set
    kinit
    pass insert
    secret-tool store
    systemd-creds encrypt
    vercel env add
    wrangler secret put
"""
_ARG = (  # in double quotes, in single ones, or bare
    r"(?:\\?\"(?P<secret>[^\"\n\\]{1,200})(?:\\?\")?|'(?P<single>[^'\n]{1,200})'?"
    r"|(?P<bare>(?!-)[^\s\"'|;&<>\\]{1,200}))"
)
_VALUE = re.compile(rf"(?<=[ \t\"'=])[\w.\-\[\]]{{1,60}}={_ARG}")
_SPOKEN = re.compile(
    r"\b(?:echo(?: -\w{1,3})?|printf(?: \\?[\"']?%s(?:\\{1,2}n)?\\?[\"']?)?) [\\\"']{0,2}"
    r"(?P<secret>[^\s\\\"'|$]{5,400})[\\\"']{0,2} {0,4}\|"
)
_HERE = re.compile(rf"<<< ?{_ARG}")
_SIGNS = {
    "...": r"[^\n|;]{0,300}?",
    "-*": r"(?:--?[A-Za-z][\w\-]{0,40}(?:[= ][^\s|;&]{1,100})?[ \t]{1,9}){0,4}",
    "_": r"(?:\\?\"[^\"\n\\]{0,200}\\?\"|'[^'\n]{0,200}'|(?!-)[^\s\"'|;&<>]{1,200})",
}


class _Command(NamedTuple):
    """What follows the words that a command begins with, and what is asked of its secret."""

    rest: re.Pattern[str] | None  # None: the secret is on its standard input
    each: bool = False
    drawn: bool = False


def _commands() -> dict[str, list[_Command]]:
    """Return the commands by the words that they begin with."""
    found: dict[str, list[_Command]] = {}
    for rows, asks in ((_ARGUMENTS, True), (_STANDARD_INPUT, False)):
        for row in rows.strip().split("\n"):
            words = row.split()
            plain = list(takewhile(re.compile(r"[\w:|\-]{2,}").fullmatch, words))
            rest = re.compile("".join(map(_pattern, words[len(plain) :]))) if asks else None
            command = _Command(rest, each=words[-1].startswith("=@"), drawn=words[-1].endswith("?"))
            for head in product(*(word.split("|") for word in plain)):
                found.setdefault(" ".join(head), []).append(command)
    return found


def _pattern(word: str) -> str:
    """Return the pattern of a word, with what stands before it."""
    if word in ("...", "-*"):
        return (r"(?=[ \t])" if word == "..." else r"[ \t]{1,9}") + _SIGNS[word]
    if word.startswith("=@"):
        return ""
    before, at, _ = word.partition("@")
    options = before or word
    if "|" in options and "(" not in options:
        options = f"(?:{options})"
    blank = r"(?:(?<=[ \t])|[ \t]{1,9})"
    if not at:
        return blank + _SIGNS.get(word, options + (r"(?=[= \t])" if word.startswith("-") else ""))
    return f"(?:{blank}|(?<=-)=){before and options}{_ARG}" if before else rf"(?:{blank}|=){_ARG}"


def _after_first(head: str) -> str:
    return re.escape(head[1:]).replace(r"\ ", r"[ \t]{1,9}")


_COMMANDS = _commands()
_HEADS = re.compile(  # by their first letters: else each word of a text is compared with all of them
    r"(?<![\w\-])(?:"
    + "|".join(
        f"{letter}(?:{'|'.join(_after_first(head) for head in heads)})"
        for letter, heads in groupby(sorted(_COMMANDS), key=lambda head: head[0])
    )
    + r")(?![\w\-])"
)
_LINE_END = re.compile(r"[\n|;]|&&")
_REACH = 600  # characters before a command in which its standard input may stand


def commanded(text: str) -> Iterator[SecretSpan]:
    """Yield the secrets in a text that a command is given."""
    for head in _HEADS.finditer(text):
        for command in _COMMANDS[" ".join(head[0].split())]:
            if command.rest is None:
                line = max(
                    text.rfind("\n", max(0, head.start() - _REACH), head.start()) + 1, head.start() - _REACH
                )
                yield from _judged(_SPOKEN.finditer(text, line, head.start()))
                yield from _judged(_HERE.finditer(text, head.end(), _line_end(text, head.end())))
            elif match := command.rest.match(text, head.end()):
                pairs = _VALUE.finditer(text, match.end(), _line_end(text, match.end()))
                yield from _judged(pairs if command.each else (match,), drawn=command.drawn)


def _line_end(text: str, at: int) -> int:
    stop = _LINE_END.search(text, at, at + _REACH)
    return stop.start() if stop else min(at + _REACH, len(text))


def _judged(matches: Iterable[re.Match[str]], *, drawn: bool = False) -> Iterator[SecretSpan]:
    for match in matches:
        group = match.lastgroup or "secret"
        value = match[group]
        sure = group != "bare" or is_mixed(value) or is_odd(value)
        if is_literal(value) and (is_random(value) if drawn else sure):
            yield SecretSpan(*match.span(group), "secret")
