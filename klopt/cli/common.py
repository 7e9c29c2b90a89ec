"""What all commands share: bad calls, typos, Ctrl-C, and common options."""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

import click

from klopt.errors import KloptError

__all__ = [
    "BadCall",
    "Commands",
    "accepted",
    "as_json",
    "explained",
    "instance",
    "open_page",
    "opened",
    "stop_with_advice",
    "tolerance",
]

Function = TypeVar("Function", bound=Callable[..., Any])


class BadCall(click.ClickException):
    """A call that makes no sense: one paragraph on standard error and exit code 2."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Print the paragraph."""
        from klopt.engine.format import wrapped

        click.echo(wrapped(f"klopt: {self.message}"), err=True)


class HelpGroups(click.Group):
    """Commands whose help is in groups.

    `sections` holds the heading of each group and its commands; others come last.
    """

    sections: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups of commands."""
        listed = {name for names in self.sections.values() for name in names}
        others = tuple(name for name in self.list_commands(ctx) if name not in listed)
        width = max(map(len, self.commands))
        for heading, names in (*self.sections.items(), ("Commands", others)):
            known = [(name, self.commands[name]) for name in names if name in self.commands]
            if known:
                limit = formatter.width - 6 - width
                rows = [(f"{name:{width}}", each.get_short_help_str(limit)) for name, each in known]
                with formatter.section(heading):
                    formatter.write_dl(rows)


class Commands(HelpGroups):
    """Commands: klopt's errors are bad calls, Ctrl-C is exit code 130, typos get suggestions."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which they were added."""
        return list(self.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command that the first word names."""
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise BadCall(f"no command {args[0]!r}{hint} There are: {', '.join(known)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KloptError as error:
            raise BadCall(str(error)) from error
        except KeyboardInterrupt:
            click.echo("klopt: interrupted", err=True)
            ctx.exit(130)


def instance(command: Function) -> Function:
    """Add what chooses a problem: its name or file, and the size and seed of a random instance."""
    seed = click.option(
        "--seed", default=0, show_default=True, help="Seed of the instance and of the backend."
    )
    size = click.option(
        "--size",
        type=click.IntRange(min=1),
        metavar="N",
        help="Size of a random instance.  [default: 20]",
    )
    command = size(seed(command))
    return click.argument("target", metavar="FILE|PROBLEM")(command)


as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document instead of text."
)


tolerance = click.option(
    "--tol",
    default=1e-6,
    show_default=True,
    help="Relative gap at which an answer counts as optimal.",
)
accepted = click.option(
    "--accept",
    type=click.Choice(["proven", "estimated"]),
    default="proven",
    show_default=True,
    help="Exit with 0 for a proof only, or for an estimate as well.",
)
explained = click.option(
    "-v", "--verbose", is_flag=True, help="Explain in full what is proven and what was tried."
)


opened = click.option("--open", "show", is_flag=True, help="Open the page in a browser.")


def open_page(path: str) -> None:
    """Show a page in the user's browser, or say where it is."""
    import webbrowser

    address = Path(path).resolve().as_uri()
    if not webbrowser.open(address):
        click.echo(f"klopt: no browser was found; open {address}", err=True)


def stop_with_advice(error: BaseException, kept: str, resume: bool) -> NoReturn:
    """End a long command after Ctrl-C or a failure of its store, and say how to go on."""
    interrupted = isinstance(error, KeyboardInterrupt)
    reason = f"interrupted; the finished {kept} are kept." if interrupted else str(error)
    command = f"klopt {shlex.join(sys.argv[1:])}"
    if not resume:
        command += " --resume"
    click.echo(f"klopt: {reason}\nresume with: {command}", err=True)
    sys.exit(130 if interrupted else 1)
