"""The files in deploy/ are right where it can be said without Docker: what they name is there, and is taken."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import yaml

from foldline.cli.commands.serve import serve
from foldline.config import ServeSettings, Settings, _checked
from foldline.service.app import Service
from foldline.service.tenants import Tenants

DEPLOY = Path("deploy")
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
MANIFESTS = {
    one["kind"]: one for one in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8"))
}
STEPS = re.findall(
    r"^([A-Z]+) (.*)$", (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", ""), re.MULTILINE
)


def taken(words):
    """The options of `foldline serve` as it reads them."""
    name, *options = words
    assert name == "serve"
    return serve.make_context("serve", options).params


def routes():
    return {route.path for route in Service(ServeSettings(store="memory://"), Settings()).app().routes}


def test_the_image_is_made_of_what_there_is():
    extras = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    (installed,) = (words for step, words in STEPS if step == "RUN" and "pip install" in words)
    assert set(re.search(r"\.\[(.+?)\]", installed)[1].split(",")) <= set(extras)
    kept = set(Path(".dockerignore").read_text(encoding="utf-8").split())
    for step, words in STEPS:
        if step == "COPY" and not words.startswith("--from"):
            for name in shlex.split(words)[:-1]:
                assert Path(name).exists()
                assert f"!{name}" in kept
    (command,) = (yaml.safe_load(words) for step, words in STEPS if step == "CMD")
    assert taken(command)["host"] == "0.0.0.0"
    assert [words for step, words in STEPS if step == "USER"] == ["10001"]
    (check,) = (words for step, words in STEPS if step == "HEALTHCHECK")
    assert re.search(r":8400(/\w+)", check)[1] in routes()


def test_compose_starts_the_service_over_its_database():
    service, database = COMPOSE["services"]["foldline"], COMPOSE["services"]["postgres"]
    given = taken(service["command"])
    assert (
        given["store_url" if "store_url" in given else "store"] == "postgresql://foldline@postgres/foldline"
    )
    assert (given["workers"], given["log"]) == (2, "json")
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    assert database["environment"]["POSTGRES_PASSWORD"] == service["environment"]["PGPASSWORD"]
    assert {volume.partition(":")[0] for volume in database["volumes"]} == set(COMPOSE["volumes"])


def test_the_manifests_belong_together_and_their_settings_are_taken():
    pod = MANIFESTS["Deployment"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    secret = MANIFESTS["Secret"]
    assert taken(container["args"])["log"] == "json"
    probes = {container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("readiness", "liveness")}
    assert probes == {"/ready", "/health"} <= routes()
    for one in container["env"]:
        assert one["valueFrom"]["secretKeyRef"]["key"] in secret["stringData"]
    known = _checked(tomllib.loads(secret["stringData"]["settings.toml"]), "deploy/kubernetes.yaml").serve
    assert known.store.startswith("postgresql://")
    assert Tenants(known, "memory://").closed
    for kind in ("Service", "PodDisruptionBudget"):
        spec = MANIFESTS[kind]["spec"]["selector"]
        assert spec.get("matchLabels", spec) == pod["metadata"]["labels"]
    assert {one["name"] for one in container["volumeMounts"]} == {
        one["name"] for one in pod["spec"]["volumes"]
    }
