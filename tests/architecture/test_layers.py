"""The arrow of imports, and the other rules of the house that a test can keep."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOMES = {"nyima": ROOT / "src" / "nyima", "nyima_lab": ROOT / "lab" / "src" / "nyima_lab"}
SOURCE = HOMES["nyima"]
FILES = sorted(SOURCE.rglob("*.py"))
EVERY = sorted(path for home in HOMES.values() for path in home.rglob("*.py"))

ARROW = (
    {"errors"},
    {"domain"},
    {"language"},
    {"prompts"},
    {"stores", "models"},
    {"read"},
    {"change"},
    {"write"},
    {"mechanisms"},
    {"app"},
    {"sync"},
    {"memory"},
    {"turn"},
    {"program", "assistant"},
    {"services", "transfer", "frameworks", "voice"},
    {"server"},
    {"cli"},
)
"""From left to right; a module imports what stands left of it, and its own folder."""

PUTS_TOGETHER = {"app", "services", "transfer", "frameworks", "voice", "server", "cli"}
"""Only these import stores and models; the code between them knows the protocols alone."""

BROAD = {
    "app/tools.py": 2,  # the user's own module and function may raise anything
    "app/registry.py": 1,  # another distribution's module may raise anything
    "cli/main.py": 1,  # the same: it costs no other command
    "cli/common.py": 1,  # the command runner: any failure becomes a message and an exit code
    "server/proxy/relay.py": 1,  # the task of a stream: its client hears of any failure
    "server/pool.py": 1,  # the server's worker: it goes on with the next round
    "voice.py": 1,  # what is being said is broken off, and the error goes on
    "models/embed.py": 1,  # a library raises bare Exceptions for a damaged file
    "write/jobs.py": 1,  # the job runner: any failure stays with its job
    "read/sources.py": 1,  # the source runner: any failure stays with its source
}
ENVIRONMENT = {"app/environment.py", "models/silent.py"}  # silent.py writes it, for libraries that read it

FRONT_ENDS = {"cli", "server", "frameworks", "lab"}
"""Where a module may have the name of the module whose work it shows."""


def imports(tree: ast.AST) -> set[str]:
    """Every module of the project that is imported, also inside functions."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name.split(".")[0] in HOMES}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in HOMES:
            found |= {f"{node.module}.{a.name}" for a in node.names} if node.module == "nyima" else {str(node.module)}
    return found


def dotted(path: Path) -> str:
    """The name that a file is imported by."""
    name = next(n for n, home in HOMES.items() if path.is_relative_to(home))
    return ".".join((name, *path.relative_to(HOMES[name]).with_suffix("").parts)).removesuffix(".__init__")


def place(name: str) -> int | None:
    """How far right a module of nyima stands on the arrow; None for the package itself and testing."""
    head = name.split(".")[1] if "." in name else ""
    return next((n for n, heads in enumerate(ARROW) if head in heads), None)


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text("utf-8")) for path in EVERY}


def test_the_arrow_of_imports(trees: dict[Path, ast.Module]) -> None:
    wrong: list[str] = []
    for path in FILES:
        own, head = place(dotted(path)), dotted(path).split(".")[1:2]
        for target in imports(trees[path]):
            other, theirs = place(target), target.split(".")[1:2]
            if target.startswith("nyima_lab"):
                wrong.append(f"{dotted(path)} imports {target}")
            if own is None or other is None or head == theirs:
                continue
            good = other <= own
            if theirs and theirs[0] in {"stores", "models"}:
                good = head[0] in PUTS_TOGETHER
            if head[0] in {"stores", "models"}:
                good = theirs[0] in {"errors", "domain", "language"}
            if not good:
                wrong.append(f"{dotted(path)} imports {target}")
    assert sorted(wrong) == []


def test_the_arrow_names_every_module() -> None:
    heads = {dotted(path).split(".")[1] for path in FILES if "." in dotted(path)}
    assert heads - {h for place in ARROW for h in place} == {"__main__", "testing"}


def test_the_domain_uses_the_standard_library_only(trees: dict[Path, ast.Module]) -> None:
    for path in (SOURCE / "domain").rglob("*.py"):
        for node in ast.walk(trees[path]):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name.split(".")[0] in {*sys.stdlib_module_names, "nyima"}, (path, name)


def test_no_import_cycle(trees: dict[Path, ast.Module]) -> None:
    names = {dotted(p) for p in trees}
    graph = {dotted(p): {i for i in imports(t) if i in names} - {dotted(p), "nyima"} for p, t in trees.items()}
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, (*above, name)
        if name not in done:
            for other in sorted(graph[name]):
                visit(other, (*above, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def test_no_name_of_a_type_twice(trees: dict[Path, ast.Module]) -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path, tree in trees.items():
        if not path.is_relative_to(SOURCE / "testing"):  # a double may have the name of what it stands for
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    homes[node.name].append(dotted(path))
            for node in tree.body:
                target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
                named = isinstance(target, ast.Name) and re.fullmatch(r"[A-Z]\w*[a-z]\w*", target.id)
                if named and "TypeVar(" not in ast.unparse(node):
                    homes[target.id].append(dotted(path))
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_a_module_name_is_repeated_only_in_front_ends() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in EVERY:
        name = dotted(path)
        front = name.startswith("nyima_lab.commands") or name.split(".")[1:2] in [[f] for f in FRONT_ENDS]
        if path.name not in {"__init__.py", "__main__.py"} and not front:
            homes[path.stem].append(name)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_every_third_party_import_is_declared(trees: dict[Path, ast.Module]) -> None:
    by_module = packages_distributions()
    missing: set[tuple[str, str]] = set()
    declared: set[str] = set()
    for home in HOMES.values():  # the lab may use what the product needs
        project = tomllib.loads((home.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
        wanted = [*project["dependencies"], *(d for extra in project["optional-dependencies"].values() for d in extra)]
        declared |= {re.split(r"[^\w.-]", d)[0].lower().replace("_", "-") for d in wanted}
        for path in home.rglob("*.py"):
            for node in ast.walk(trees[path]):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
                for head in {n.split(".")[0] for n in names} - {*sys.stdlib_module_names, *HOMES, ""}:
                    given = {d.lower().replace("_", "-") for d in by_module.get(head, [head])}
                    if not given & declared:
                        missing.add((dotted(path), head))
    assert sorted({head for _, head in missing}) == []


def test_nyima_alone_loads_neither_torch_nor_the_laboratory() -> None:
    heavy = {"torch", "transformers", "matplotlib", "onnxruntime", "fastapi"}
    code = (
        "import sys, nyima, nyima.assistant\n"
        "lab = {'nyima_lab'} & set(sys.modules)\n"
        "import nyima.cli.main\n"
        f"raise SystemExit(sorted(lab | {heavy!r} & set(sys.modules)) or 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_broad_excepts_and_the_environment_stay_where_they_are(path: Path, trees: dict[Path, ast.Module]) -> None:
    broad = 0
    for node in ast.walk(trees[path]):
        if isinstance(node, ast.ExceptHandler):
            names = {n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)} if node.type else {"Exception"}
            broad += bool(names & {"Exception", "BaseException"})
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}:
            assert str(path.relative_to(SOURCE)) in ENVIRONMENT, "the environment is read in app/environment.py alone"
    assert broad <= BROAD.get(str(path.relative_to(SOURCE)), 0)


def test_core_dependencies_are_light_and_each_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    reasons = "".join(path.read_text("utf-8") for path in (ROOT / "docs" / "decisions").glob("*.md"))
    for dependency in project["dependencies"]:
        assert re.split(r"[<>=\[]", dependency)[0] in reasons, dependency
    assert not [d for d in project["dependencies"] if d.startswith(("torch", "onnxruntime", "mcp"))]


def test_words_of_the_design(trees: dict[Path, ast.Module]) -> None:
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                assert not node.name.endswith(("Manager", "Handler", "Helper", "Util", "Service", "Impl")), node.name
                assert not node.name.startswith("Base"), node.name


def test_every_public_name_is_documented(trees: dict[Path, ast.Module]) -> None:
    for path in FILES:
        if path.name == "store.py" and path.parent.name == "testing":
            continue  # the methods of the reference are documented by the protocol
        assert ast.get_docstring(trees[path]) or not path.read_text("utf-8").strip(), path
        for node in trees[path].body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                assert ast.get_docstring(node), (path.name, node.name)


def test_all_is_sorted_and_true() -> None:
    import nyima

    assert nyima.__all__ == sorted(nyima.__all__, key=lambda n: (n.upper() != n, n))
    assert all(getattr(nyima, name) is not None for name in nyima.__all__)
    assert set(nyima.__all__) == set(nyima._MODULE_OF)


def test_nothing_names_this_workplace() -> None:
    words = ("/" + "work/", "pypi" + ".org")
    for path in [*EVERY, *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.py")]:
        text = path.read_text("utf-8")
        assert not [w for w in words if w in text], path


def test_no_two_test_files_share_a_name() -> None:
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


NOT_LANGUAGE = {"mechanisms/documents/parse.py": "HTML", "server/proxy/identity.py": "other programs' own prompts"}


def test_word_lists_of_a_language_stand_in_language_alone(trees: dict[Path, ast.Module]) -> None:
    found: list[str] = []
    for path in FILES:
        inside = path.relative_to(SOURCE)
        if inside.parts[0] in {"language", "prompts"} or str(inside) in NOT_LANGUAGE:
            continue
        for node in ast.walk(trees[path]):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            listed: list[str] = []
            if node.func.attr == "split" and isinstance(node.func.value, ast.Constant):
                listed = str(node.func.value.value).split()
            elif node.func.attr == "compile" and node.args:
                parts = [c.value for c in ast.walk(node.args[0]) if isinstance(c, ast.Constant)]
                listed = re.findall(r"(?<![\\\w])[a-z]{3,}", " ".join(p for p in parts if isinstance(p, str)))
            if len(listed) > 3:
                found.append(f"{inside}:{node.lineno} {listed[:4]}")
    assert found == []
