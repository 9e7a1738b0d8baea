"""Libraries that would tell their makers about this machine, told not to before they load."""

from __future__ import annotations

import os

__all__ = ["no_telemetry"]

_SILENT = {"ORT_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1"}


def no_telemetry() -> None:
    """To be called before onnxruntime, or what uses it, is imported: it looks at the
    environment once, and then writes a device id and a queue of events below ~/.cache."""
    for name, value in _SILENT.items():
        os.environ.setdefault(name, value)
