"""What makes a sentence no standing constraint, whichever rule finds it: a question, a report, a log."""

from __future__ import annotations

_POLITE = (
    r"(?:\w+[, ]+){0,3}(?:can|could|would|will|kannst|könntest|können) (?:you|we|i|du|wir)\b"
    r"(?!.*\b(?:why|whether|how|where|what|if|explain|check|find|see|look|test|tell|warum|ob)\b)"
    r".{0,30}\b(?:stick to|always|never|nobody|no one|from now on|in (?:the )?future|immer|nie(?:mals)?|"
    r"ab jetzt)\b"
)
"""A question that asks for what shall always hold: "can you make sure that we never log passwords?"."""

VETOES = {
    "question": rf"^(?!\W*{_POLITE}).*[?？]\W*$|吗\W*$|呢\W*$|为什么|怎么|ですか\W*$|ますか\W*$|"
    r"^\W*(?:why|what|how|who|where|when (?:did|does|do|will)|is|are|was|were|do (?:i|we|you|they|the|"
    r"these|those|any|all|our|my)\b|does|did|"
    r"am i|has|have (?:you|we)|should (?:i|we)|shall|would|which|q:)\b",
    "request": rf"^\W*(?!{_POLITE})(?:\w+[, ]+){{0,3}}(?:can|could|would|will) (?:you|we|i)\b",
    "moment": r"^(?!.*\b(?:never|always)\b)\W*(?:stop|wait|halt|hold on|hey|oh|whoa)\b"
    r"[,! ]|^\W*(?:stopp?|warte|halt|arr[eê]te|"
    r"attends|para|espera)\b[,!]",
    "reports": r"^\W*no (?:[\w-]+ ){1,3}(?:here|there|today|yesterday|so far|from (?:us|me|my side)|on "
    r"(?:my|our) (?:side|end))\W*$|"
    r"^\W*no (?:\w+ ){1,4}(?:ran|failed|passed|came|left|\w+ed)\W*$|^\W*no (?:entiendo|sé|funciona|puedo|"
    r"hay|tengo|encuentro|veo|me)\b|"
    r"^\W*(?:it|this|that) should only (?:take|be|need)\b|^\W*keep the (?:first|second|last|rest|other)\b|"
    r"^\W*keep the (?:old|new|current|existing)\b.*\b(?:delete|drop|remove)\b|"
    r"\bshould not be \w+ (?:here|there)\b",
    "not for good": r"\b(?:yet|for now|right now|this time|at the moment|for the moment|just this once|for "
    r"today|so far|until (?:i|we)|for the time being)\b|"
    r"\bjetzt noch nicht\b|\bnoch nicht\b|\bpas encore\b|\btodavía no\b|先不要|先别|暂时|"
    r"\b(?:nicht jetzt|pas maintenant|ahora no|not now|just this|this once|again today|today)\b|这次|今回",
    "log or code": r"^\s*(?:[\w./-]+\.\w{1,5}:\d+|\d+\s*[:+|→-]|[>+|│╰─✓✗•]|"
    r"\[(?:\d[\d:., TZ/-]{3,}|INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL)\]|"
    r"at \S+\(|\{\"|<\w|"
    r"(?-i:INFO|WARN|WARNING|ERROR|DEBUG)\b|Messages?:|--- |=== |\$ |//|/\*|#!)|"
    r"[{};]\s*$|\"\s*:\s*[\"{\[]|=>\s|\(\d+\.\d+s\)|\\n\\n|"
    r"^\s*(?:\w+\.)*\w*(?:error|exception|warning|fatal|panic)(?: \[\w+\])?: ",
    "describes": r"\b(?:(?:is|are|was|were|been|be|but|has|have|had|get|gets)\s+never\b|never\s+(?:said|"
    r"called|asserted|worked|works|shown|displayed|loads?|"
    r"finish(?:ed|es)|reached|committed|happened|used|set|got|ran|saw|seen|gets?|comes?|captured|"
    r"accumulated)\b|"
    r"(?:it|this|that|he|she|page|test|build|app|server)\s+(?:\w+\s+)?(?:always|never|only)\s+\w+s\b|"
    r"(?:do|can)n?['’]t always\b|cannot always\b|not always\b|"
    r"must (?:have been|be (?:the|a|some))\b|consider\b.{0,40}\b\w+ing\b|expected\b.{0,40}\bgot\b|"
    r"docs? says?\b|the (?:error|message|log|output|doc\w*|readme|spec) says?\b)|"
    r"^\W*(?:(?:i|they)\s+always\s+\w+|while this\b)|"
    r"\b(?:this|that|which|it) should (?:never|not) (?:have )?happen|\bviolat(?:es?|ing)\b|\bwe could\b|"
    r"\b(?:does|do|did)(?: not|n['’]t) (?:adhere|respect|follow|obey|honou?r)\b|"
    r"^\W*(?:(?:ok|okay|hm+|so|well|also|and|but)\b,? )*i (?:selected|clicked|opened|tried|got|saw|ran|"
    r"see|noticed|just|found)\b|"
    r"\b(?:they|he|she|people|someone|somebody) (?:say|says|said|think|claim)s?\b|"
    r"\bsays the\b|\bnever be too\b|"
    r"^\W*(?:(?:ok|okay|so|but|and|also|hm+),? )*(?:i|we|you|it|he|she|they|this|that) (?:just |already |"
    r"only |also |accidentally )?(?!agreed|decided|need)(?:\w{3,}ed|did|had|got|was|were|made|ran|saw|"
    r"went|wrote|thought)\b|"
    r"^\W*no (?:quiero|creo|recuerdo|me|he|ha|se puede (?:abrir|entrar))\b",
    "opinion": r"^\W*(?:\w+\s+){0,4}wondering\b|\bconsider whether\b|^\W*(?:i (?:guess|wonder|suppose|"
    r"assume|thought|noticed|believe)|i'm (?:wondering|considering|thinking)|maybe|perhaps|so wondering)\b|"
    r"^\W*i (?:don['’]?t|do not) (?:think|know|understand|see|get|like|believe|remember|have|need)"
    r"\b(?!.*\b(?:should|must)\b)|"
    r"^\W*(?:\w+,? )?i (?:might|may|could)\b|^\W*(?:it )?(?:seems|apparently|looks)\b|^\W*like\b|"
    r"^\W*i (?:must|have to|need to|should)\b",
    "settled": r"^\W*(?:no|nah|nope|hmm+|ah)\b[, ]+(?!.*\b(?:always|never|must)\b)(?:it|that|this|i|we|"
    r"don['’]?t (?:set|do)|revert|remove|wait)\b|^\W*never ?mind\b|"
    r"^\W*sorry\b|\bcommon (?:pitfalls|mistakes)\b",
}  # fmt: skip
