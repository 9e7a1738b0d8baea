"""The child process that runs llama.cpp: ``python -m nyima.models.local_server FILE``.

It serves the OpenAI wire protocol on a loopback port, prints the address as one JSON
line, and ends when its standard input closes, so it never outlives its parent. The
environment of the process (thread policy) is set by the parent.
"""

from __future__ import annotations

import json
import os
import sys

__all__ = ["main"]


def main() -> None:
    """Load the model that ``argv`` names and serve until standard input closes."""
    path, window, lanes, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    name, adapter = sys.argv[5], sys.argv[6]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {name}
    params.n_ctx = window * lanes
    params.n_parallel = lanes
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    if adapter:  # it is applied to the requests that ask for it
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(adapter, 0.0)]
    params.cache_ram_mib = 512
    params.warmup = False
    params.use_jinja = True
    params.verbosity = -1
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    server = xllamacpp.Server(params)
    print(json.dumps({"url": server.listening_address}), file=out, flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
