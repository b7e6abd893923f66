"""Run llama.cpp's own HTTP server in this process until standard input ends: MODEL PORT WINDOW TEMPLATE."""

from __future__ import annotations

import sys

import xllamacpp


def main(model: str, port: str, window: str, template: str) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {"smollm2"}
    params.hostnames = ["127.0.0.1"]
    params.port = int(port)
    params.n_ctx = int(window)
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = (
        1  # two of them wait for each other, busily, on a machine that runs other tests too
    )
    params.cpuparams_batch.n_threads = 1
    params.use_jinja = True
    params.chat_template = template
    params.warmup = False
    params.sampling.seed = 1
    params.sampling.temp = 0
    _server = xllamacpp.Server(params)  # ends with this process
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
