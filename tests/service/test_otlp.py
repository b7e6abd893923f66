"""Spans go by OTLP to a collector, such as Langfuse or Phoenix: a real exporter, and a collector on the loopback."""

from __future__ import annotations

import gzip
import http.server
import threading

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.service.api.client import Client, chat
from tests.service.supervised import supervised

pytestmark = pytest.mark.slow


class Collector(http.server.BaseHTTPRequestHandler):
    """Takes what is posted."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.came.append((self.path, self.headers["authorization"], body))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def collector():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    server.came = []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_requests_and_compactions_are_sent_to_a_collector(tmp_path, collector):
    env = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}/api/public/otel",
        "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Basic%20cGs6c2s=",
    }
    with supervised(tmp_path, "--store", "memory://", env=env) as service:
        client = Client(service.url)
        client.begin("one", messages=chat(20))
        client.post("/sessions/one/compact")
        client.close()
        service.stop()
    spans = {}
    for path, key, body in collector.came:
        assert path == "/api/public/otel/v1/traces"
        assert key == "Basic cGs6c2s="
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            named = {one.key: one.value.string_value for one in resource.resource.attributes}
            assert named["service.name"] == "foldline"
            spans |= {span.name: span for scope in resource.scope_spans for span in scope.spans}
        assert b"Question" not in body
    asked, made = spans["POST /api/sessions/{session}/compact"], spans["compaction"]
    assert asked.parent_span_id == b"", "the request before it came over the same connection"
    assert made.parent_span_id == asked.span_id
    told = {one.key: one.value.string_value for one in made.attributes}
    assert told["gen_ai.conversation.id"] == "one"


def test_a_collector_that_cannot_be_served_does_not_stop_the_service(tmp_path):
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    with supervised(tmp_path, "--store", "memory://", env=env) as service:
        client = Client(service.url)
        client.begin("one")
        client.close()
