"""The same run every time: one BLAS thread, and Hypothesis without chance or deadline.

`KLOPT_HYPOTHESIS` picks the profile: `quick` (the default of the quick pass, -m "not slow"), `dev`
(the default of the whole suite), `ci`, `thorough` (many examples, new ones each run).
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from typing import Any

# Before Hypothesis and the tests are imported: some hundred children, and the second worker, read
# what the first one has compiled. Without it every child compiles klopt again, for a quarter second.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Before anything imports NumPy: the pools read these once, when they are loaded.
for pool in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{pool}_NUM_THREADS"] = "1"

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

try:
    from threadpoolctl import threadpool_limits
except ImportError:
    pass
else:
    threadpool_limits(limits=1)  # a plugin may have loaded NumPy before this file

# In the background of a shell a process ignores Ctrl-C, and so do its children, to which the tests
# send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A loaded machine must not fail a law for being slow; examples are not stored, so a run leaves no
# files.
common = settings(
    deadline=None, database=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", common, derandomize=True, max_examples=3)
settings.register_profile("dev", common, derandomize=True, max_examples=10)
settings.register_profile("ci", common, derandomize=True, max_examples=30)
settings.register_profile("thorough", common, derandomize=False, max_examples=500)


@pytest.hookimpl(tryfirst=True)  # the option --hypothesis-profile still has the last word
def pytest_configure(config: pytest.Config) -> None:
    """Load the profile before the first law is read: `settings` take what they do not say from it."""
    quick = "not slow" in config.option.markexpr
    settings.load_profile(os.environ.get("KLOPT_HYPOTHESIS", "quick" if quick else "dev"))


@pytest.hookimpl(optionalhook=True)  # pytest-xdist may be missing
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let each worker begin with half of the files: then a fixture of a file is made by one of them."""
    from xdist.scheduler import WorkStealingScheduling

    chosen = config.getvalue("dist") != "load"  # on the command line
    return None if chosen else WorkStealingScheduling(config, log)


@pytest.hookimpl(tryfirst=True)  # before -m is looked at
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs a browser is slow. ECOS has no wheel for every Python: what is about it alone is left out without."""
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.slow)
    if importlib.util.find_spec("ecos") is not None:
        return
    for item in items:
        values = getattr(getattr(item, "callspec", None), "params", {}).values()
        if any(str(getattr(value, "name", value)).lower() == "ecos" for value in values):
            item.add_marker(pytest.mark.skip(reason="ecos is not installed"))
