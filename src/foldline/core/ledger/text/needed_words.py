"""The words that a rule for sentences needs: one look for them costs far less than the rule does."""

from __future__ import annotations

from typing import Final

_NEEDED: Final = {
    "never": "never",
    "always": "always",
    "prohibition": "don|do not|do never",
    "should not": "should|only",
    "every": "every|each|all|any",
    "only": "only|exclusively",
    "our custom": "we|project|repo|codebase|team|company",
    "i do not want": "want|only|like you",
    "must": (
        "must|have to|need to|has to|needs to|should|is always|banned|mandatory|obligatory|compulsory|taboo|"
        "immutable|untouchable|read-only|read only|not to be|confidential|secret|private|append-only|"
        "internal|final|allowed"
    ),
    "use for": "use",
    "not that but this": ", not|, never",
    "keep": "keep",
    "avoid": "avoid|from|steer",
    "prefer": "prefer|rather",
    "stick to": "stick|follow|leave|hands off|frozen|stay away|stay out|keep away|keep out|treat",
    "remember": "remember|keep th",
    "nothing": "no |nothing|nobody|no one|none of",
    "may not": (
        "you may|you can|may only|may never|may not|allowed|permitted|acceptable|forbidden|limits|prohibited|"
        "read-only|read only| ok| fine"
    ),
    "permission": (
        "without|before|ask|approval|consent|sign|ok|permission|check|tell|warn|confirm|doubt|"
        "unsure|unclear|not sure"
    ),
    "standing": (
        "from |forward|at all times|no matter|circumstance|exception|rule|the rest|general|"
        "future|directive|principle|constraint|goal is|important|essential|crucial|critical|"
        "vital|at no "
    ),
    "manner": (
        "english|german|french|spanish|italian|portuguese|chinese|japanese|korean|russian|dutch|"
        "polish|turkish|danish|swedish|norwegian|finnish|czech|greek|hindi|arabic|hebrew|"
        "ukrainian|romanian|hungarian|latin|spelling|throughout|whole|entire|answer|repl|respon|"
        "messages|summaries|call me|address|greet|in all "
    ),
    "fr always": (
        "toujours|uniquement|seul|désormais|dorénavant|à partir|utilise|répon|écri|parle|demande|"
        "doi|tous|toutes"
    ),
    "fr never": "jamais|pas|plus|rien|aucun|évite|interdit",
    "es never": "nunca|jamás|no|evita|prohibido|sin ",
    "pt, it": "nunca|sempre|não|non|mai|agora|ora in",
    "es always": (
        "siempre|debe|a partir|adelante|usa|utiliza|responde|escribe|habla|contesta|puede|"
        "pregúntame|consúltame|avísame|máximo|español|inglés|francés|alemán|respuesta"
    ),
    "de always": "immer|antwort|schreib|sprich|rede|kommentare|doku|duze|sieze|alle|jede|nenn",
    "de never": "nie|kein",
    "de must not": "darf|dürfen|soll|nicht|kein",
    "de from now on": "ab |von |zukunft|künftig|grundsätzlich|stets|achte",
    "de only": "ausschließlich|nur|kein|wir |ohne|frag|maximal|höchstens|mindestens",
}
NEEDED: Final = {rule: tuple(words.split("|")) for rule, words in _NEEDED.items()}
"""By the name of a rule: a sentence without any of these words, lower case, cannot match it."""
_LIFTING: Final = (
    "you|allow|permit| ok| fine|no longer|not need|n't need|not have|n't have|no need|any more|anymore|"
    "forget|ignore|drop|lift|disregard|scrap|take back|withdraw| gone| void| off|darfst|kannst|erlaubt|"
    " free| may |ordnung|nicht mehr|tu peux|vous pouvez|plus besoin|autoris|puedes|se permite|ya no"
)
LIFTING: Final = tuple(_LIFTING.split("|"))
"""A sentence of ASCII without any of these words, lower case, lifts no rule."""
