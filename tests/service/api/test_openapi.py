"""The OpenAPI document says what the service does: requests made from it, right and wrong ones, get what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.service.api.client import api, chat

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "unsupported_method,use_after_free,ensure_resource_availability"
)


ENDLESS = "/sessions/[^/]+/events$"  # a stream that ends where its client does: that many seconds a request


def attacked(client, folder, examples):
    """Have schemathesis make requests of every operation; return how many."""
    ending = asked_for(client, folder, examples, "30", "--exclude-path-regex", ENDLESS)
    return ending + asked_for(client, folder, examples, "1", "--include-path-regex", ENDLESS)


def asked_for(client, folder, examples, seconds, *which):
    tool = Path(sys.executable).parent / "schemathesis"
    given = ["--checks", CHECKS, "--max-examples", str(examples), "--continue-on-failure", "--no-color"]
    given += ["--generation-deterministic", "--request-timeout", seconds, *which]
    ran = subprocess.run(
        [tool, "run", f"{client.url}/api/openapi.json", *given],
        cwd=folder,
        env={**os.environ, "SCHEMATHESIS_HOOKS": str(Path(__file__).with_name("own_keys.py"))},
        capture_output=True,
        text=True,
        timeout=3_000,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-6_000:]
    found = re.search(r"(\d+) generated, (\d+) passed", ran.stdout)
    assert found is not None, ran.stdout[-2_000:]
    assert found[1] == found[2]
    return int(found[1])


@pytest.mark.slow
def test_every_operation_answers_as_the_document_says(tmp_path):
    with api(store=f"sqlite:///{tmp_path / 's.db'}") as (client, _):
        client.begin("one", messages=chat(6))
        assert attacked(client, tmp_path, 2) > 400
        assert client.get("/sessions").status_code == 200


@pytest.mark.soak
def test_thousands_of_requests_are_no_server_error(tmp_path):
    with api(store=f"sqlite:///{tmp_path / 's.db'}") as (client, _):
        client.begin("one", messages=chat(6))
        assert attacked(client, tmp_path, 60) > 4_000


def test_the_document_names_every_type_and_needs_a_token_where_the_service_does():
    with api() as (client, _):
        document = client.get("/openapi.json").json()
        assert document["openapi"].startswith("3.1")
        assert "security" not in document
        refs = set(re.findall(r'"#/components/schemas/(\w+)"', client.get("/openapi.json").text))
        assert refs <= set(document["components"]["schemas"])
        index = client.get("/").json()
        assert len(index["operations"]) == sum(len(methods) for methods in document["paths"].values())
    with api(
        tokens={"token-for-tests-1": "default"}, headers={"Authorization": "Bearer token-for-tests-1"}
    ) as (client, _):
        assert client.get("/openapi.json").json()["security"]
