"""The arrow of imports and the budgets of the design."""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "nyima"
FILES = sorted(SOURCE.rglob("*.py"))
LAYERS = ("domain", "engines", "adapters", "app", "assistant", "skills", "interfaces")
APP = {"app", "parts", "settings"}
ASSISTANT = {
    "assistant", "bridge", "documents", "exchange", "graph", "hand", "memory", "opening", "own_sources", "pins", "policies", "spans", "replying",
    "statistics", "tools", "traces",
}  # fmt: skip
BROAD = {
    "interfaces/cli/common.py": 1,  # the command runner: any failure becomes a message and an exit code
    "interfaces/server/work.py": 1,  # the task of a stream: its client hears of any failure
    "interfaces/server/memories.py": 1,  # the server's worker: it goes on with the next round
    "interfaces/voice.py": 1,  # what is being said is broken off, and the error goes on
    "adapters/embedders.py": 1,  # a library raises bare Exceptions for a damaged file
    "engines/ingest.py": 1,  # the job runner: any failure stays with its job
    "engines/sources.py": 1,  # the source runner: any failure stays with its source
}
ENVIRONMENT = {"app.py", "silent.py"}  # silent.py writes it, for libraries that read it


def layer(name: str) -> str:
    """The layer of a dotted module name below nyima."""
    head = name.split(".")[1] if "." in name else ""
    if head in APP:
        return "app"
    return "assistant" if head in ASSISTANT else "" if head.startswith("_") else head


def imports(tree: ast.AST) -> set[str]:
    """Every nyima module that is imported, also inside functions."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name.split(".")[0] == "nyima"}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "nyima":
            found |= {f"{node.module}.{a.name}" for a in node.names} if node.module == "nyima" else {str(node.module)}
    return found


def dotted(path: Path) -> str:
    return ".".join(("nyima", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text("utf-8")) for path in FILES}


def test_the_arrow_of_imports(trees: dict[Path, ast.Module]) -> None:
    wrong: list[str] = []
    for path, tree in trees.items():
        own = layer(dotted(path))
        for target in imports(tree):
            other = layer(target)
            if other in {"", "errors"} or other == own or own in {"", "evals", "train"}:
                continue
            if own in {"engines", "adapters", "testing"}:
                good = other == "domain"
            elif own in LAYERS and other in LAYERS:
                good = LAYERS.index(other) < LAYERS.index(own)
            else:
                good = own == "interfaces" and other in {"evals", "train"}
            if not good:
                wrong.append(f"{dotted(path)} imports {target}")
    assert wrong == []


def test_the_domain_uses_the_standard_library_only(trees: dict[Path, ast.Module]) -> None:
    for path, tree in trees.items():
        if layer(dotted(path)) == "domain" or path.name == "errors.py":
            for node in ast.walk(tree):
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


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_broad_excepts_and_the_environment_stay_where_they_are(path: Path, trees: dict[Path, ast.Module]) -> None:
    tree = trees[path]
    broad = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            names = {n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)} if node.type else {"Exception"}
            broad += bool(names & {"Exception", "BaseException"})
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}:
            assert path.name in ENVIRONMENT, "the environment is read in app.py alone"
    assert broad <= BROAD.get(str(path.relative_to(SOURCE)), 0)


def test_few_core_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert len(project["dependencies"]) <= 8
    assert not [d for d in project["dependencies"] if d.startswith(("torch", "onnxruntime", "mcp"))]


def test_words_of_the_design() -> None:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                assert not node.name.endswith(("Manager", "Handler", "Helper", "Util", "Service", "Impl")), node.name
                assert not node.name.startswith("Base"), node.name


def test_every_public_name_is_documented(trees: dict[Path, ast.Module]) -> None:
    for path, tree in trees.items():
        if path.name == "store.py" and path.parent.name == "testing":
            continue  # the methods of the reference are documented by the protocol
        assert ast.get_docstring(tree) or not path.read_text("utf-8").strip(), path
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith(
                "_"
            ):
                assert ast.get_docstring(node), (path.name, node.name)


def test_all_is_sorted_and_true() -> None:
    import nyima

    assert nyima.__all__ == sorted(nyima.__all__, key=lambda n: (n.upper() != n, n))
    assert all(getattr(nyima, name) is not None for name in nyima.__all__)
    assert set(nyima.__all__) == set(nyima._MODULE_OF)


def test_nothing_names_this_workplace() -> None:
    words = ("/" + "work/", "pypi" + ".org")
    for path in [*FILES, *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.py")]:
        text = path.read_text("utf-8")
        assert not [w for w in words if w in text], path


def test_no_two_test_files_share_a_name() -> None:
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
