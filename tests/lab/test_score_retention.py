"""`tools.score_retention`: the table of another implementation's measures."""

from __future__ import annotations

import json

from tools.score_retention import MEASURES, score

METRIC = """
import json, sys

measures = json.load(open(sys.argv[2] + "/measures.json"))
of_budget = {f"tools.score_retention:fold@{budget}": measures for budget in ("0.05", "0.1")}
json.dump([{"r": of_budget}], open(sys.argv[sys.argv.index("--out") + 1], "w"))
"""


def test_a_measure_without_a_value_is_a_dash(tmp_path):
    metric, sessions = tmp_path / "metric.py", tmp_path / "sessions"
    metric.write_text(METRIC)
    for source, measures in {
        "one": [0.25, 0.5, None, None, 1.0],
        "two": [0.75, None, None, None, 1.0],
    }.items():
        (sessions / source).mkdir(parents=True)
        (sessions / source / "measures.json").write_text(json.dumps(measures))
    table = score(sessions, metric)
    assert table.columns[2:] == MEASURES
    assert table.rows[:3] == [
        ("one (1)", "5%", ".250", ".500", "–", "–", "1.000"),
        ("two (1)", "5%", ".750", "–", "–", "–", "1.000"),
        ("**mean**", "5%", "**.500**", "**.500**", "**–**", "**–**", "**1.000**"),
    ]
