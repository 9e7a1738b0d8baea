"""What every command shares: options, dates, errors and exit codes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import nyima.errors
from nyima.cli.bars import curve_line
from nyima.cli.common import Common, command, parse_date, run_guarded, say
from nyima.cli.main import app
from nyima.errors import InputError, NyimaError

KINDS = [k for k in vars(nyima.errors).values() if isinstance(k, type) and issubclass(k, NyimaError)]


def ended(work: Callable[[], Awaitable[None]], *, debug: bool = False) -> int:
    with pytest.raises(typer.Exit) as caught:
        run_guarded(work, debug=debug)
    return caught.value.exit_code


def raising(error: BaseException) -> Callable[[], Awaitable[None]]:
    async def work() -> None:
        raise error

    return work


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_of_ours_is_one_line_with_its_code(kind: type[NyimaError], capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(raising(kind("it is so: do that"))) == kind.exit_code
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "nyima: it is so: do that\n")


def test_the_codes_tell_the_kinds_apart() -> None:
    codes = {k.__name__: k.exit_code for k in KINDS}
    assert {codes[n] for n in ("InputError", "ConfigError")} == {2}
    assert {codes[n] for n in ("StoreError", "StoreLocked", "ForeignStore", "NewerStore", "EmbedderMismatch")} == {5}
    assert {codes[n] for n in ("ModelError", "NoModel", "BudgetSpent", "ModelUnreachable")} == {4}
    assert (codes["NotFound"], codes["PackError"], codes["NyimaError"], codes["SourceFailed"]) == (3, 6, 1, 1)


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "what was said or fetched so far is kept"),
        (typer.Abort(), 1, "not confirmed; nothing was changed"),
        (
            OSError(28, "No space left on device", "/data/m.db"),
            5,
            "/data/m.db: No space left on device: check the path",
        ),
        (OSError("odd"), 5, "the system: odd: check the path and the disk"),
        (ValueError("odd"), 1, "unexpected ValueError: odd: run it with --debug and report what it prints"),
    ],
)
def test_other_errors_say_what_to_do(
    error: BaseException, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(raising(error)) == code
    err = capsys.readouterr().err
    assert words in err
    assert "Traceback" not in err


def test_with_debug_the_traceback_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    ended(raising(InputError("it is so")), debug=True)
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("nyima: it is so\n")


def test_a_code_of_ones_own_goes_through(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(raising(typer.Exit(6))) == 6
    assert capsys.readouterr().err == ""


# --- dates ---


@given(st.dates(date(1900, 1, 1), date(9998, 12, 31)))
def test_a_date_means_its_end(day: date) -> None:
    for text in (day.isoformat(), day.strftime("%Y%m%d").zfill(8)):
        whole = parse_date(text) - parse_date(f"{day}T00:00")
        assert timedelta(hours=22) <= whole < timedelta(hours=26), "but for the days on which clocks change"


@given(st.datetimes(datetime(1900, 1, 1), datetime(2900, 1, 1)), st.integers(-14, 14))
def test_a_time_with_a_zone_is_that_time(moment: datetime, offset: int) -> None:
    text = f"{moment.isoformat()}{'+' if offset >= 0 else '-'}{abs(offset):02}:00"
    assert parse_date(text) == datetime.fromisoformat(text)


def test_no_date_is_none() -> None:
    assert parse_date(None) is None
    assert parse_date("2026-05-01T00:00:00Z") == datetime(2026, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "2026-02-30", "25:00", "1.5.2026", "٢٠٢٦-٠٥-٠١x"])
def test_what_is_no_date_is_answered_with_one(text: str) -> None:
    with pytest.raises(InputError, match="is no date: give one such as 2026-05-01 or 2026-05-01T18:00"):
        parse_date(text)


def test_the_first_day_of_all_is_a_date_or_none() -> None:
    try:
        parse_date("0001-01-01")
    except InputError:
        return


# --- registering a command ---


@dataclass(frozen=True, slots=True)
class Size:
    """Options that belong together."""

    wide: Annotated[int, typer.Option("--wide", min=1)] = 3
    deep: Annotated[str, typer.Option("--deep")] = "no"


def own_app() -> typer.Typer:
    made = typer.Typer()

    async def measure(common: Common, name: Annotated[str, typer.Argument()], size: Size = Size()) -> None:
        """Measure something."""
        data = [name, size.wide, size.deep, common.user, str(common.db), common.debug]
        common.show(data, lambda out: out.print(f"[bold]{name}[/]", markup=False))
        await asyncio.sleep(0)

    async def other(common: Common) -> None:
        """Do something else."""

    command(made, "measure", "nyima measure tea")(measure)
    command(made, "other", "nyima other")(other)
    return made


def test_a_command_gets_the_shared_options_and_groups_of_its_own() -> None:
    runner = CliRunner()
    told = runner.invoke(
        own_app(), ["measure", "tea", "--wide", "5", "--user", "ana", "--db", "x.db", "--debug", "--json"]
    )
    assert json.loads(told.stdout) == ["tea", 5, "no", "ana", "x.db", True]
    plain = runner.invoke(own_app(), ["measure", "tea"])
    assert plain.stdout == "[bold]tea[/]\n"
    assert runner.invoke(own_app(), ["measure", "tea", "--wide", "0"]).exit_code == 2
    helped = runner.invoke(own_app(), ["measure", "--help"]).output
    assert "Example: `nyima measure tea`" in helped
    assert all(name in helped for name in ("--wide", "--deep", "--json", "--user", "--db", "--debug"))


def commands(group: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    found: list[tuple[tuple[str, ...], Any]] = []
    for name, one in group.commands.items():
        found += commands(one, (*path, name)) if hasattr(one, "commands") else [((*path, name), one)]
    return found


EVERY = commands(typer.main.get_command(app))


@pytest.mark.parametrize(("path", "one"), EVERY, ids=[" ".join(p) for p, _ in EVERY])
def test_each_command_has_the_shared_options_an_example_and_help_for_its_own(path: tuple[str, ...], one: Any) -> None:
    options = {o for p in one.params for o in p.opts}
    assert {"--json", "--user", "--db", "--debug"} <= options
    assert f"Example: `nyima {' '.join(path)}" in one.help
    assert [p.name for p in one.params if p.param_type_name == "option" and not p.help] == []


@pytest.mark.parametrize("path", [p for p, _ in EVERY if p[0] not in {"eval", "train"}], ids=" ".join)
def test_a_wrong_settings_file_stops_each_command_before_it_does_anything(
    path: tuple[str, ...], db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.toml").write_text("colour = 1\n")
    (tmp_path / "form.json").write_text('{"properties": {"a": {}}}')
    monkeypatch.setenv("NYIMA_CONFIG", str(tmp_path / "bad.toml"))
    given_arguments = {"fill": ["form.json"], "add": [str(tmp_path / "form.json")], "state": ["a", "b", "c"],
                       "merge": ["a", "b"], "revise": ["a", "b"]}  # fmt: skip
    wants = ("remember", "recall", "pull", "verify", "remove", "history", "retire", "travel", "import")
    more = given_arguments.get(path[-1], ["x"] if path[-1] in wants else [])
    more = [str(tmp_path / m) if m == "form.json" else m for m in more]
    done = CliRunner().invoke(app, [*path, *more, "--db", str(db)], input="y\n")
    assert "there is no setting 'colour'" in done.output, done.output
    assert done.exit_code == 2
    assert not db.exists()


# --- bars ---


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40))
def test_a_curve_has_a_bar_for_each_value_and_higher_ones_for_higher(values: list[float]) -> None:
    line = curve_line(values)
    assert len(line) == len(values)
    assert set(line) <= set("▁▂▃▄▅▆▇█")
    ordered = sorted(zip(values, line, strict=True))
    assert [bar for _, bar in ordered] == sorted(bar for _, bar in ordered)
    assert line[values.index(min(values))] == "▁"


def test_what_no_terminal_can_show_is_still_printed(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    say("a \ud800 surrogate and 猫")
    assert capsysbinary.readouterr().out == "a ? surrogate and 猫\n".encode()
