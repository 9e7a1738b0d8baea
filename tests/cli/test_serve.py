"""The keys, and what serving asks for before it begins."""

from __future__ import annotations

import json
import socket
import stat
from pathlib import Path

import pytest

from cli.test_cli import Cli, cli  # noqa: F401 - a fixture
from nyima.cli.serve import _bound, _is_loopback

pytest.importorskip("fastapi", reason="the extra server is not installed")


def test_a_key_is_shown_once_and_kept_as_its_hash_for_its_owner_alone(cli: Cli, db: Path) -> None:  # noqa: F811
    made = cli.json("keys", "add", "editor", "--user", "ana", "--scopes", "act-as, read", "--tokens", "500")
    assert made["scopes"] == ["read", "act-as"]
    (row,) = cli.json("keys", "list")["keys"]
    assert row == {k: v for k, v in made.items() if k != "secret"}
    assert (row["user"], row["tenant"], row["requests"], row["tokens"]) == ("ana", "local", 600, 500)
    file = db.with_suffix(".keys.json")
    assert made["secret"] not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not db.exists(), "a key needs no memory"


def test_the_secret_alone_is_on_standard_output(cli: Cli) -> None:  # noqa: F811
    done = cli("keys", "add", "editor")
    assert done.stdout.startswith("nyima-")
    assert len(done.stdout.split()) == 1
    assert "of me (read, write); it is not shown again" in done.stderr


def test_keys_are_listed_and_withdrawn(cli: Cli) -> None:  # noqa: F811
    assert "there is no key: `nyima keys add NAME` makes one" in cli("keys", "list").stdout
    one, two = (cli.json("keys", "add", name, "--requests", "0")["id"] for name in ("one", "two"))
    assert "any requests a minute, any tokens a day" in cli("keys", "list").stdout
    assert cli("keys", "remove", one).stdout == f"withdrawn: {one} one\n"
    assert [k["id"] for k in cli.json("keys", "list")["keys"]] == [two]
    assert f"there is no key '{one}': `nyima keys list` has their ids" in cli("keys", "remove", one, code=3).output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("x", "--scopes", "read,fly"), "fly is no scope of a key: give some of read, write, act-as, admin"),
        (("x", "--scopes", " , "), "nothing is no scope of a key"),
        ((" ",), "a key needs a name of 1 to 80 characters"),
        (("x" * 81,), "a key needs a name of 1 to 80 characters"),
        (("x", "--tokens", "-1"), "--tokens"),
        (("x", "--tenant", ""), "'' cannot be a tenant, user or assistant"),
        (("x", "--user", "a\nb"), "cannot be a tenant, user or assistant"),
    ],
)
def test_a_key_that_cannot_be_made_leaves_no_file(cli: Cli, db: Path, arguments: tuple[str, ...], words: str) -> None:  # noqa: F811
    assert words in cli("keys", "add", *arguments, code=2).output
    assert not db.with_suffix(".keys.json").exists()


def test_keys_that_cannot_be_read_are_named(cli: Cli, db: Path) -> None:  # noqa: F811
    for text in ("{", "{}", '{"keys": [{}]}', '{"keys": [{"id": "a", "scopes": 5}]}'):
        db.with_suffix(".keys.json").write_text(text)
        assert "cannot be read" in cli("keys", "list", code=2).output
        cli("keys", "add", "x", code=2)
        assert db.with_suffix(".keys.json").read_text() == text, "nothing is written over"


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False),
     ("192.0.2.1", False), ("example.org", False)],
)  # fmt: skip
def test_only_this_machine_needs_no_key(host: str, local: bool) -> None:
    assert _is_loopback(host) is local


def test_a_public_address_wants_a_key_first(cli: Cli) -> None:  # noqa: F811
    told = cli("serve", "--host", "0.0.0.0", code=2).output
    assert "0.0.0.0 can be reached from outside and there is no key yet: run `nyima keys add NAME` first" in told
    assert cli.json("keys", "list")["keys"] == []


def test_a_port_that_is_taken_is_told_before_a_key_is_made(cli: Cli) -> None:  # noqa: F811
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        told = cli("serve", "--port", str(port), code=2).output
    assert f"127.0.0.1:{port} cannot be taken: Address already in use: give another --port" in told
    assert cli.json("keys", "list")["keys"] == []
    assert "--port" in cli("serve", "--port", "65536", code=2).output
    assert "--max-body" in cli("serve", "--max-body", "3", code=2).output


@pytest.mark.parametrize(("host", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)])
def test_both_kinds_of_addresses_are_bound(host: str, family: socket.AddressFamily) -> None:
    try:
        socket.create_server((host, 0), family=family).close()
    except OSError:
        pytest.skip("this machine has no such address")
    with _bound(host, 0) as bound:
        assert bound.family is family
        assert bound.getsockname()[1] > 0


def test_what_is_shown_of_a_key_has_no_digest(cli: Cli) -> None:  # noqa: F811
    made = cli.json("keys", "add", "editor")
    shown = json.dumps(cli.json("keys", "list")) + cli("keys", "list").stdout
    assert "digest" not in shown
    assert made["secret"].split("-")[2] not in shown
