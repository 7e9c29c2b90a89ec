"""What all commands share: bad calls, typos, Ctrl-C, and the options that mean the same everywhere."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, TypeVar

import click

from klopt.errors import KloptError

__all__ = ["BadCall", "Commands", "as_json", "instance"]

Function = TypeVar("Function", bound=Callable[..., Any])


class BadCall(click.ClickException):
    """A call that cannot mean anything: one paragraph on standard error and exit code 2."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Print the paragraph."""
        from klopt.engine.format import wrapped

        click.echo(wrapped(f"klopt: {self.message}"), err=True)


class Commands(click.Group):
    """The group of commands: klopt's errors are bad calls, Ctrl-C is exit code 130, a typo names its neighbour."""

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
    """Add what names a problem: the word, and the size and seed of a random instance."""
    seed = click.option(
        "--seed", default=0, show_default=True, help="Seed of the instance and of the backend."
    )
    size = click.option(
        "--size",
        type=click.IntRange(min=1),
        metavar="N",
        help="Size of an instance.  [default: 20]",
    )
    command = size(seed(command))
    return click.argument("target", metavar="FILE|PROBLEM")(command)


as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document instead of text."
)
