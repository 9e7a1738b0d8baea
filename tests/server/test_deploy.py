"""The files with which the server is deployed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from .conftest import Desk

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile"
HADOLINT = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


@pytest.mark.skipif(HADOLINT is None, reason="there is no hadolint")
def test_the_dockerfile_passes_the_linter() -> None:
    done = subprocess.run([str(HADOLINT), str(DOCKERFILE)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_image_is_run_by_nobody_special_and_copies_what_is_there() -> None:
    text = DOCKERFILE.read_text("utf-8")
    assert text.index("USER 10001") < text.index("CMD [")
    for line in re.findall(r"^COPY (.+) \S+$", text, re.MULTILINE):
        assert all((ROOT / name).exists() for name in line.split())
    extras = re.search(r"'\.\[([\w,]+)\]'", text)
    assert extras is not None
    known = (ROOT / "pyproject.toml").read_text("utf-8")
    assert all(re.search(rf"^{extra} = \[", known, re.MULTILINE) for extra in extras[1].split(","))


def test_the_health_check_of_the_image_sees_a_server(desk: Desk) -> None:
    code = re.search(r'"-c", "([^"]+)"\]', DOCKERFILE.read_text("utf-8"))
    assert code is not None
    command = code[1].replace("http://127.0.0.1:8765", desk.url)
    assert subprocess.run([sys.executable, "-c", command], check=False).returncode == 0
    gone = code[1].replace("http://127.0.0.1:8765", "http://127.0.0.1:9")
    assert subprocess.run([sys.executable, "-c", gone], check=False, capture_output=True).returncode != 0


def test_the_compose_file_gives_nothing_away() -> None:
    yaml = pytest.importorskip("yaml")
    service = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]["nyima"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd")
def test_the_unit_is_valid(tmp_path: Path) -> None:
    unit = tmp_path / "nyima.service"
    text = (ROOT / "deploy" / "nyima.service").read_text("utf-8")
    unit.write_text(text.replace("%h/.local/bin/nyima", sys.executable), "utf-8")
    command = ["systemd-analyze", "verify", "--user", str(unit)]
    env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert str(unit) not in done.stderr, done.stderr
    unit.write_text(text.replace("PrivateTmp", "PrivateTmpp"), "utf-8")
    assert str(unit) in subprocess.run(command, capture_output=True, text=True, check=False, env=env).stderr


def test_a_server_says_where_it_is_ends_when_told_and_wants_a_key_to_go_public(tmp_path: Path) -> None:
    env = {**os.environ, "NYIMA_DB": str(tmp_path / "m.db"), "NYIMA_EMBEDDER": "none", "NYIMA_MODEL": "none"}
    command = [sys.executable, "-m", "nyima", "serve", "--port", "0", "--json"]
    public = subprocess.run(
        [*command, "--host", "0.0.0.0"], env=env, capture_output=True, text=True, check=False, timeout=60
    )
    assert public.returncode == 2
    assert "nyima keys add" in public.stderr
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = ""
        while not said.rstrip().endswith("}"):
            said += process.stdout.readline()
        told = json.loads(said)
        assert told["key"].startswith("nyima-")
        for _ in range(600):
            try:
                with urllib.request.urlopen(told["url"] + "/health/ready", timeout=20) as answer:
                    assert answer.status == 200
                break
            except OSError:
                time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) in {0, -signal.SIGTERM, 143}
    assert told["key"] not in (tmp_path / "m.keys.json").read_text("utf-8")
