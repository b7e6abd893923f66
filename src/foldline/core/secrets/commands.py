"""Commands that are given a secret: as an argument, or on their standard input.

One line a command. `@` is the secret: a bare word only if it can be no name; `@?` one only if it looks drawn
at random, `@!` whatever it looks like. `_` is any one word, `-*` options, `...` whatever stands between, `=@`
the values of all `NAME=value` that follow. Other words are as in a pattern; `a|b` is either of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby, product, takewhile
from typing import NamedTuple

from foldline.core.secrets.plain import is_literal, is_mixed, is_odd, is_random
from foldline.core.secrets.span import SecretSpan

_ARGUMENTS = """
    7z|7za ... -p@!
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
    ConvertTo-SecureString ... @
    cqlsh ... -p @
    crackmapexec|netexec|nxc ... -p @
    curl ... (?:-u|--user|--proxy-user)[\\s=]?[\"']?[^\\s:\"']{1,100}:@!
    doppler secrets set -* _ @
    doppler secrets set =@
    dotnet user-secrets set -* _ @
    eb setenv =@?
    firebase functions:config:set =@?
    fly|flyctl secrets set|import|deploy =@
    gh secret set ... --body|-b @
    glab variable set _ @?
    heroku config:set =@?
    htpasswd -\\w*b\\w* _ _ @!
    http|https|xh ... -a\\s?[\"']?[^\\s:\"']{1,100}:@!
    ipmitool ... -P @
    keytool|jarsigner ... -(?:store|key|src|dest)\\w*pass @!
    kubectl|oc create secret =@
    ldapsearch|ldapmodify|ldapadd|ldapdelete|ldappasswd|ldapwhoami ... -w\\s?@!
    lftp ... -u [^\\s,]+,@
    login ... (?:-p|--password|--token|-token)[\\s=]@!
    mc alias set _ _ _ @
    mc config host add _ _ _ @
    mongo|mongosh|mongodump|mongorestore|mongoexport|mongoimport ... -p\\s?@!
    mosquitto_passwd ... -b _ _ @
    mysql|mysqldump|mysqladmin|mysqlimport|mariadb|mariadb-dump|mariadb-admin ... -p@!
    net use ... /user:\\S{1,80} @!
    net user _ (?!/)@
    netlify|ntl env:set -* _ @?
    ngrok authtoken @
    ngrok config add-authtoken @
    nmcli ... password|\\S+\\.psk @
    op item create|edit =@?
    openssl ... -k @!
    openssl passwd -* @
    poetry config http-basic\\.\\S+ _ @
    poetry config pypi-token\\.\\S+ @
    psexec|psexec64 ... -p @
    pulumi config set -* _ @ ... --secret
    pulumi config set ... --secret -* _ @
    rabbitmqctl add_user|change_password|authenticate_user _ @
    railway variables =@?
    rclone obscure @
    redis-cli ... (?:-a|--pass)[\\s=]@!
    security add-generic-password|add-internet-password ... -w @
    security import ... -P @
    security unlock-keychain ... -p @
    Set-Secret ... -Secret @
    setx _ @?
    smbclient|smbget|smbmap ... (?:-U|--user)[\\s=]?[\"']?[^\\s%\"']{1,60}%@!
    snmpget|snmpset|snmpwalk|snmpbulkwalk ... -A|-X @
    sqlcmd|bcp ... -P\\s?@!
    ssh-keygen ... -N|-P @
    sshpass ... -p\\s?@!
    supabase secrets set =@
    travis encrypt =@
    tsql|isql ... -P @
    twine ... (?:-p|--password)[\\s=]@!
    useradd|usermod ... -p @
    vault kv put|patch =@?
    vault login -* @
    vault write =@?
    wandb login -* @
    wget ... --(?:http-|ftp-|proxy-)?password[\\s=]@!
    wpa_passphrase _ @
    xfreerdp|xfreerdp3|wlfreerdp|wlfreerdp3 ... /p:@!
    zip|unzip ... -P\\s?@!
"""
_STANDARD_INPUT = """
    --password-stdin
    ansible-vault encrypt_string
    chpasswd
    cryptsetup
    docker|podman secret create
    firebase functions:secrets:set
    gcloud secrets create|versions
    gh auth login
    gh secret set
    kinit
    pass insert
    passwd --stdin
    secret-tool store
    sudo -S
    systemd-creds encrypt
    vercel env add
    wrangler secret put
"""
_ARG = (  # in double quotes, in single ones, or bare
    r"(?:\"(?P<secret>[^\"\n]{1,200})\"?|'(?P<single>[^'\n]{1,200})'?|(?P<bare>(?!-)[^\s\"'|;&<>\\]{1,200}))"
)
_VALUE = re.compile(rf"(?<=[ \t\"'=])[\w.\-\[\]]{{1,60}}={_ARG}")
_SPOKEN = re.compile(
    r"\b(?:echo(?: -\w{1,3})?|printf(?: [\"']?%s(?:\\n|\n)?[\"']?)?) [\"']{0,2}"
    r"(?P<secret>[^\s\\\"'|$]{5,400})[\\\"']{0,2} {0,4}\|"
)
_HERE = re.compile(rf"<<< ?{_ARG}")
_BLANK = r"(?:(?<=[ \t\"',])|[ \t]{1,9})"
_TO_ARG = r"(?:(?<=[ \t])|[ \t]{1,9}|=|[\"'],[ ]{0,2})"
_SIGNS = {
    "...": r"(?=[ \t\"',])[^\n|;]{0,300}?",
    "-*": r"[ \t]{1,9}(?:--?[A-Za-z][\w\-]{0,40}(?:[= ][^\s|;&]{1,100})?[ \t]{1,9}){0,4}",
    "_": _BLANK + r"(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'|(?!-)[^\s\"'|;&<>]{1,200})",
}


class _Command(NamedTuple):
    """What follows the words that a command begins with, and which secrets are believed."""

    rest: re.Pattern[str] | None  # None: the secret is on its standard input
    each: bool = False
    asks: str = ""


def _commands() -> dict[str, list[_Command]]:
    """Return the commands by the words that they begin with."""
    found: dict[str, list[_Command]] = {}
    for rows, given in ((_ARGUMENTS, True), (_STANDARD_INPUT, False)):
        for row in rows.strip().split("\n"):
            words = row.split()
            plain = list(takewhile(re.compile(r"[\w:|\-]{2,}").fullmatch, words))
            rest = re.compile("".join(map(_pattern, words[len(plain) :]))) if given else None
            asks = words[-1][-1] if words[-1][-1] in "?!" else ""
            command = _Command(rest, each=words[-1].startswith("=@"), asks=asks)
            for head in product(*(word.split("|") for word in plain)):
                found.setdefault(" ".join(head), []).append(command)
    return found


def _pattern(word: str) -> str:
    """Return the pattern of a word, with what may precede it."""
    if word in _SIGNS or word.startswith("=@"):
        return _SIGNS.get(word, "")
    before, at, _ = word.partition("@")
    options = before if "(" in before or "|" not in before else f"(?:{before})"
    if not at:
        return _BLANK + options + (r"(?=[= \t\"',])" if word.startswith("-") else "")
    return _BLANK + options + _ARG if before else _TO_ARG + _ARG


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
_REACH = 600  # characters before a command that are searched for its standard input


def commanded(text: str) -> Iterator[SecretSpan]:
    """Yield the secrets in a text that a command is given."""
    for head in _HEADS.finditer(text):
        for command in _COMMANDS[" ".join(head[0].split())]:
            if command.rest is None:
                first = max(0, head.start() - _REACH)
                line = max(text.rfind("\n", first, head.start()) + 1, first)
                yield from _judged(_SPOKEN.finditer(text, line, head.start()))
                yield from _judged(_HERE.finditer(text, head.end(), _line_end(text, head.end())))
            elif match := command.rest.match(text, head.end()):
                pairs = _VALUE.finditer(text, match.end(), _line_end(text, match.end()))
                yield from _judged(pairs if command.each else (match,), command.asks)


def _line_end(text: str, at: int) -> int:
    stop = _LINE_END.search(text, at, at + _REACH)
    return stop.start() if stop else min(at + _REACH, len(text))


def _judged(matches: Iterable[re.Match[str]], asks: str = "") -> Iterator[SecretSpan]:
    for match in matches:
        group = match.lastgroup or "secret"
        value = match[group]
        sure = asks == "!" or group != "bare" or is_mixed(value) or is_odd(value)
        if is_literal(value) and (is_random(value) if asks == "?" else sure):
            yield SecretSpan(*match.span(group), "password" if asks == "!" else "secret")
