"""The `klopt` command.

Results go to standard output, everything else to standard error, so that a pipe carries results
only. Exit codes:

    0    everything asked for is certified (a comparison: everything was run; with
         `--accept estimated`: certified or ESTIMATED)
    1    something is not (a comparison: two proofs contradict each other, or the store failed)
    2    a bad call: an unknown file, name or option; the text suggests a similar one
    130  Ctrl-C

Whatever needs NumPy or a solver is imported by the command that uses it: `klopt --help` loads click
and nothing else.
"""

from __future__ import annotations

import difflib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from klopt.cli.archives import archive, replay
from klopt.cli.authoring import check_backend, check_problem, new
from klopt.cli.certificates import certificates, check
from klopt.cli.common import (
    BadCall,
    Commands,
    accepted as _accept,
    as_json as _json,
    explained as _verbose,
    instance as _instance,
    open_page,
    opened as _opened,
    tolerance as _tol,
)
from klopt.cli.comparisons import cite, compare, doctor, export, report
from klopt.cli.experiments import experiments
from klopt.cli.judgements import judge
from klopt.cli.results import print_result
from klopt.cli.theorems import verify

if TYPE_CHECKING:
    from klopt.engine.result import Accept, Result
    from klopt.model.problem import Point, Problem

__all__ = ["main"]

MIN_TIME_LEFT_S = 1e-3
"""What is left for solving at least: a limit of 0 is none, and reading stopped in time."""


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="klopt")
def main() -> None:
    """Kernel learning as convex optimisation: a backend makes a claim, klopt issues the verdict.

    \b
    klopt demo                    compare all backends on the bundled suite
    klopt compare SoftMargin      compare all backends on a problem
    klopt solve model.mps         solve a file and prove the answer
    klopt judge model.mps a.sol   prove an answer that was made elsewhere
    klopt check proof.json        check a certificate in exact arithmetic
    klopt plan SoftMargin         list what can solve it, best first, and why
    klopt backends                list what is installed and what it takes
    klopt new backend NAME        write a backend to start from, in one file
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal that lacks a letter must not fail the command.
            stream.reconfigure(errors="replace")


@main.command(
    short_help="Solve a file, own data or a random instance, with proof.",
    # Arguments of a problem on own data are options whose names the problem knows.
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@_instance
@click.option(
    "--data",
    metavar="FILE",
    help="Points and labels, .csv or .npz: the PROBLEM is made of them.",
)
@click.option(
    "--kernel",
    "kernels",
    multiple=True,
    metavar="NAME[:NUMBER]",
    help="With --data: rbf, rbf:GAMMA, linear, poly:DEGREE, precomputed, ..; may be repeated.  [default: rbf]",
)
@click.option(
    "--positive", default="", metavar="LABEL", help="With --data: the class that is +1, of many."
)
@click.option("--backend", metavar="NAME|FILE.py", help="Use this backend and no other.")
@click.option("--formulation", metavar="NAME", help="Use this formulation (see klopt plan).")
@_tol
@click.option(
    "--time",
    "time_limit",
    metavar="DURATION",
    help="Stop after 30, 30s, 5m or 2h, reading included.",
)
@click.option(
    "--mem",
    "memory_limit",
    metavar="BYTES",
    help="Memory limit of the backend: 500M, 2G.  [default: no limit]",
)
@click.option(
    "--start",
    metavar="FILE",
    help="Start from a point: .npz or .json of arrays by name, as --json writes it.",
)
@click.option("--max-iter", type=int, metavar="N", help="Stop after N iterations of the backend.")
@click.option("--threads", default=1, show_default=True, help="Threads of the backend.")
@click.option(
    "--isolate/--no-isolate", default=None, help="Run in a child process.  [default: where needed]"
)
@click.option(
    "--exact",
    is_flag=True,
    help="Prove a linear program in rationals; the decimals of an .mps file are not rounded.",
)
@click.option(
    "--certificate",
    "certificate_file",
    type=click.Path(dir_okay=False, writable=True),
    metavar="FILE",
    help="Write the proof to a file that anybody can check (see klopt check).",
)
@click.option("--log", is_flag=True, help="Show the backend's log on standard error.")
@click.option(
    "--raw",
    multiple=True,
    metavar="KEY=VALUE",
    help="A native option of the backend; may be repeated.",
)
@_accept
@_verbose
@_json
@click.pass_context
def solve(
    context: click.Context,
    target: str,
    size: int | None,
    seed: int,
    data: str | None,
    kernels: tuple[str, ...],
    positive: str,
    backend: str | None,
    formulation: str | None,
    tol: float,
    time_limit: str | None,
    memory_limit: str | None,
    start: str | None,
    max_iter: int | None,
    threads: int,
    isolate: bool | None,
    exact: bool,
    certificate_file: str | None,
    log: bool,
    raw: tuple[str, ...],
    accept: Accept,
    verbose: bool,
    as_json: bool,
) -> None:
    """Solve a FILE (.mps .lp .dat-s .cbf .npz), a PROBLEM on own data, or a random instance of it.

    \b
    klopt solve model.mps
    klopt solve script.py:problem     a problem of CVXPY or klopt, or a function
                                      that returns one
    klopt solve SoftMargin --data train.csv --C 1 --kernel rbf
    klopt solve SoftMargin --size 200

    With --data the arguments of the problem are options: --C 1, --epsilon 0.1, --nu 0.2; klopt
    problems NAME lists them.

    Exit code 0 if the answer is proven (optimal, infeasible or unbounded), 1 if not, 2 for a bad
    call. An answer that is ESTIMATED is not proven; --accept estimated lets it pass.
    """
    from klopt.cli.arguments import read_duration, read_memory, read_options
    from klopt.engine.lookup import read_backend, read_problem
    from klopt.engine.pipeline import solve as run
    from klopt.engine.progress import waiting
    from klopt.model.backend import Settings

    options = read_options(raw)
    seconds = None if time_limit is None else read_duration(time_limit)
    memory = None if memory_limit is None else read_memory(memory_limit)
    # Refuses bad values before a large file is read.
    Settings(tol, seconds, max_iter, threads, seed, log, options, memory)
    chosen = read_backend(backend)
    began = time.perf_counter()
    if data is None:
        _refuse_unknown_options(context, kernels, positive)
        problem = read_problem(target, size, seed, exact, time_limit=seconds)
    else:
        problem = _on_own_data(target, size, data, kernels, positive, context.args)
    first = None if start is None else _start(start, problem)
    # Reading counts; what is left goes to solving.
    if seconds is not None:
        seconds = max(seconds - (time.perf_counter() - began), MIN_TIME_LEFT_S)
    with (
        waiting(f"solving {problem.describe()}", limit=seconds, wanted=not log),
        _native_output_on_stderr(log),
    ):
        result = run(
            problem,
            chosen,
            formulation=formulation,
            tol=tol,
            time_limit=seconds,
            max_iter=max_iter,
            threads=threads,
            seed=seed,
            start=first,
            isolate=isolate,
            log=log,
            raw=options,
            exact=exact,
            memory_limit=memory,
        )
    if log:
        click.echo("".join(attempt.answer.log for attempt in result.attempts), err=True, nl=False)
    print_result(result, chosen is not None, verbose, as_json)
    if certificate_file is not None and not _saved(result, certificate_file):
        sys.exit(1)
    sys.exit(0 if result.accepted(accept) else 1)


def _start(file: str, problem: Problem) -> Point:
    """The point to start from."""
    from klopt.judging.solution_files import read_point

    return read_point(file, problem)


def _saved(result: Result, file: str) -> bool:
    """Write the certificate; say why where there is none."""
    from klopt.engine.format import wrapped
    from klopt.errors import NotCertified

    try:
        result.certificate.save(file)
    except (NotCertified, OSError) as error:
        click.echo(wrapped(f"klopt: no certificate was written: {error}"), err=True)
        return False
    return True


def _refuse_unknown_options(
    context: click.Context, kernels: tuple[str, ...], positive: str
) -> None:
    """Refuse what only makes sense with data, and options that nobody knows."""
    if kernels or positive:
        raise BadCall("--kernel and --positive go with --data FILE")
    for word in context.args:
        if word.startswith("-"):
            known = [name for each in context.command.params for name in each.opts]
            name = word.partition("=")[0]
            near = difflib.get_close_matches(name, known, n=3)
            raise click.NoSuchOption(name, possibilities=near or None, ctx=context)
        raise click.UsageError(f"Got unexpected extra argument ({word})", ctx=context)


def _on_own_data(
    target: str,
    size: int | None,
    data: str,
    kernels: tuple[str, ...],
    positive: str,
    words: list[str],
) -> Problem:
    """The problem of the class `target` on the data of a file."""
    from klopt.cli.training_data import problem_of, read_options, read_training_data
    from klopt.engine.registry import problem_named

    if size is not None:
        raise BadCall(f"--size is for random instances; {data} has the points")
    cls = problem_named(target)
    return problem_of(cls, read_training_data(data, kernels, positive), read_options(words))


@contextmanager
def _native_output_on_stderr(wanted: bool) -> Iterator[None]:
    """Send what C code writes to standard output to standard error: a log is no result."""
    if not wanted:
        yield
        return
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


@main.command(short_help="List what could solve it, best first, and why.")
@_instance
@click.option(
    "--mem",
    "memory_limit",
    metavar="BYTES",
    help="Refuse what is foreseen to need more memory: 500M, 2G.  [default: no limit]",
)
@click.option(
    "-v", "--refused", is_flag=True, help="List every refused pair, with what the backend lacks."
)
@_json
def plan(
    target: str,
    size: int | None,
    seed: int,
    memory_limit: str | None,
    refused: bool,
    as_json: bool,
) -> None:
    """List what could solve a FILE or PROBLEM, best first, and count what cannot.

    Nothing is solved, and nothing is built without a memory limit. Exit code 1 if there is no
    route.
    """
    from klopt.cli.arguments import read_memory
    from klopt.engine.format import document, plan_data
    from klopt.engine.lookup import read_problem
    from klopt.engine.planner import plan as routes_of

    memory = None if memory_limit is None else read_memory(memory_limit)
    found = routes_of(read_problem(target, size, seed), memory_limit=memory)
    text = document("plan", plan_data(found)) if as_json else found.explain(refused=refused)
    click.echo(text)
    sys.exit(0 if found.routes else 1)


@main.command(short_help="List the backends, or describe one.")
@click.argument("name", required=False)
@_json
def backends(name: str | None, as_json: bool) -> None:
    """List the backends: what each takes, its version, whether it is ready.

    With a NAME: all its attributes; its library is imported to see whether it works.
    """
    from klopt.cli.listings import print_backend, print_backends
    from klopt.engine.format import backend_data, document
    from klopt.engine.lookup import read_backend
    from klopt.engine.registry import backends as known, broken

    one = read_backend(name)
    found = known() if one is None else (one,)
    if as_json:
        failures = [vars(item) for item in broken()]
        content = {"backends": [backend_data(each) for each in found], "broken": failures}
        click.echo(document("backends", content))
    elif one is None:
        print_backends(found, broken())
    else:
        print_backend(one)


@main.command(short_help="List the problems, or describe one.")
@click.argument("name", required=False)
@_json
def problems(name: str | None, as_json: bool) -> None:
    """List the problems: what each is and its equivalent formulations.

    With a NAME: its mathematics, its arguments, and the theorem behind each formulation.
    """
    from klopt.cli.listings import print_problem, print_problems, problem_data
    from klopt.engine.format import document
    from klopt.engine.registry import broken, problem_named, problems as known

    found: tuple[type[Problem], ...] = known() if name is None else (problem_named(name),)
    if as_json:
        failures = [vars(item) for item in broken()]
        content = {"problems": [problem_data(each) for each in found], "broken": failures}
        click.echo(document("problems", content))
    elif name is None:
        print_problems(found, broken())
    else:
        print_problem(found[0])


@main.command(short_help="Compare all backends on the bundled suite.")
@click.option(
    "--size",
    type=click.Choice(["quick", "demo", "full"]),
    default="demo",
    show_default=True,
    help="It takes seconds, about a minute, or an hour.",
)
@click.option(
    "-o",
    "--output",
    default="klopt-report.html",
    show_default=True,
    metavar="FILE.html",
    help="File of the report, an HTML page.",
)
@click.option("--store", metavar="FILE", help="Keep the runs and their certificates in this file.")
@_opened
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@_json
def demo(size: str, output: str, store: str | None, show: bool, quiet: bool, as_json: bool) -> None:
    """Compare all backends on every family of problems, on data that come with scikit-learn.

    Prints what it shows and who is fastest on which class, and writes a page. Exit code 0 if
    everything was run, whatever the verdicts.
    """
    from klopt.bench.demo import demo_data, print_demo, run_demo
    from klopt.engine.format import document

    comparison = run_demo(output, size=size, progress=not quiet, store=store)
    if as_json:
        click.echo(document("demo", demo_data(comparison, output)))
    else:
        print_demo(comparison, output)
    if show:
        open_page(output)


main.sections = MappingProxyType(
    {
        "Solve and prove": ("solve", "judge", "check", "plan"),
        "Compare solvers": ("demo", "compare"),
        "Read a store of runs": ("report", "export", "certificates", "cite"),
        "Hand on a comparison": ("archive", "replay"),
        "Check the papers": ("verify", "experiments"),
        "Look up": ("backends", "problems", "doctor"),
        "Write your own": ("new", "check-backend", "check-problem"),
    }
)

for command in (
    judge,
    check,
    new,
    check_backend,
    check_problem,
    compare,
    verify,
    experiments,
    report,
    export,
    certificates,
    cite,
    archive,
    replay,
    doctor,
):
    main.add_command(command)
