"""`import klopt` is cheap, its verbs stay verbs, and the packages are found from wherever Python starts.

Each case runs in an interpreter of its own, because an import happens once.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import lazy_loader
import pytest
from source import ROOT

HEAVY = {"numpy", "scipy", "click", "rich"}
NATIVE = {"clarabel", "cvxpy", "dask", "ecos", "highspy", "matplotlib", "pandas", "scs", "sklearn"}


def loaded_by(statement: str, cwd: Path = ROOT, flags: tuple[str, ...] = ()) -> set[str]:
    """Return the top-level modules that are loaded after the statement."""
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(m.partition('.')[0] for m in sys.modules)))"
    return set(json.loads(python(code, cwd, flags).splitlines()[-1]))


def python(code: str, cwd: Path = ROOT, flags: tuple[str, ...] = ()) -> str:
    done = subprocess.run(
        [sys.executable, *flags, "-c", code], cwd=cwd, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_loads_nothing() -> None:
    assert not loaded_by("import klopt") & (HEAVY | NATIVE)


def test_planning_and_certifying_load_no_native_library() -> None:
    assert (
        not loaded_by("import klopt; klopt.solve, klopt.plan, klopt.Backend, klopt.check_backend")
        & NATIVE
    )


def test_finding_every_problem_loads_none_of_them() -> None:
    assert not loaded_by("import klopt; dir(klopt.problems)") & (HEAVY | NATIVE)


VERBS = ["solve", "plan", "compare", "verify"]


@pytest.mark.parametrize("first", ["klopt", "klopt.engine.pipeline"])
def test_a_verb_is_a_function_and_no_module(first: str) -> None:
    """Whatever is imported first."""
    python(
        f"import types, {first}, klopt; "
        f"assert all(isinstance(getattr(klopt, verb), types.FunctionType) for verb in {VERBS})"
    )


@pytest.mark.parametrize("verb", VERBS)
def test_no_module_is_called_as_a_verb(verb: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"No module named 'klopt.{verb}'"):
        importlib.import_module(f"klopt.{verb}")


def test_the_package_is_a_plain_module() -> None:
    python("import types, klopt; assert type(klopt) is types.ModuleType")


def test_every_public_name_is_there() -> None:
    python(
        "import klopt; [getattr(klopt, name) for name in dir(klopt)]; assert set(klopt.__all__) <= set(dir(klopt))"
    )
    python("from klopt import *; solve, problems.SoftMargin")


def test_an_unknown_name_is_an_attribute_error() -> None:
    import klopt

    with pytest.raises(AttributeError, match="no attribute 'solv'"):
        klopt.solv  # noqa: B018
    with pytest.raises(AttributeError, match=r"no problem 'SoftMargins'; there are: .*SoftMargin"):
        klopt.problems.SoftMargins  # noqa: B018


@pytest.mark.parametrize("flags", [(), ("-S",)], ids=["installed", "not installed"])
def test_a_checkout_finds_its_problems_and_solvers(flags: tuple[str, ...]) -> None:
    """Without `site` the libraries are found, added by hand, but no `.pth` file says where klopt is."""
    libraries = str(Path(lazy_loader.__file__).parents[1])
    where = f"import sys; sys.path.append({libraries!r})\n"
    where += "import klopt.problems as p, klopt.solvers as s; print(p.__file__); print(s.__file__)"
    expected = [str(ROOT / folder / "__init__.py") for folder in ("problems", "solvers")]
    assert python(where, ROOT, flags).split() == expected


def test_no_class_exists_twice() -> None:
    names = python("import sys, klopt; klopt.problems.SoftMargin; print(*sys.modules)").split()
    assert "klopt.problems.soft_margin" in names
    assert not {"problems", "solvers", "klopt.klopt"} & set(names)


def test_help_is_instant() -> None:
    code = "import sys; sys.argv = ['klopt', '--help']; from klopt.cli.main import main"
    assert not loaded_by(f"{code}\ntry:\n    main()\nexcept SystemExit:\n    pass") & (
        NATIVE | {"numpy", "scipy"}
    )
