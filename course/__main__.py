"""The front door: one subcommand a task. `make` calls these; each imports only what it needs.

`extra` and `book` run where torch is not installed, so nothing here imports `lib`.
"""

import argparse
import sys


def extra(arguments: argparse.Namespace) -> int:
    from course.lock import requirements

    print("\n".join(requirements(arguments.name)))
    return 0


def lock(arguments: argparse.Namespace) -> int:
    from course.lock import write_lock

    return write_lock(upgrade=arguments.upgrade)


def run(arguments: argparse.Namespace) -> int:
    from course.run import run_chapters

    return run_chapters(arguments.chapters)


def figures(arguments: argparse.Namespace) -> int:
    from course.figures import refresh_all

    return refresh_all()


def book(arguments: argparse.Namespace) -> int:
    from course.build import build

    return build(arguments.heavy)


def serve(arguments: argparse.Namespace) -> int:
    from course.build import serve

    return serve(arguments.port, arguments.heavy)


def weigh(arguments: argparse.Namespace) -> int:
    from course.weigh import main

    return main(arguments.heavy)


def picture(arguments: argparse.Namespace) -> int:
    from course.picture import take

    return take()


def bench(arguments: argparse.Namespace) -> int:
    from course.bench import main

    return main(arguments.save, arguments.threads)


def study(arguments: argparse.Namespace) -> int:
    from course.study import main

    return main()


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m course", description=__doc__.splitlines()[0])
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def command(function, summary: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(function.__name__, help=summary, description=summary)
        sub.set_defaults(function=function)
        return sub

    heavy = "the site as Sphinx writes it, with the step that makes it light left out"
    build = command(book, "Build the website from the stored outputs; runs no chapter.")
    build.add_argument("--heavy", action="store_true", help=heavy)
    serving = command(serve, "Serve the built website on this machine alone.")
    serving.add_argument(
        "--port", type=int, default=8000, help="port on the loopback (default: %(default)s)"
    )
    serving.add_argument("--heavy", action="store_true", help=heavy)
    weighing = command(weigh, "Print how many KB each page of the built website sends, by kind.")
    weighing.add_argument("--heavy", action="store_true", help=heavy)
    command(run, "Derive, execute and clean chapters.").add_argument(
        "chapters", nargs="*", metavar="CH", help="chapter numbers, such as 03 (default: all)"
    )
    command(
        figures, "Put the present code of the interactive figures into the notebooks; runs no cell."
    )
    command(
        picture, "Make the pictures of the first page, of previews and icons, and the README's."
    )
    benchmark = command(bench, "Print the table of times and peak memory.")
    benchmark.add_argument("--save", action="store_true", help="store it in book/data/bench.json")
    benchmark.add_argument("--threads", type=int, help="for torch to use (default: its own choice)")
    command(
        study, "Train chapter 9's networks on the digits, and store how well they do (minutes)."
    )
    command(extra, "Print an extra's requirements from pyproject.toml, for pip.").add_argument(
        "name", help="site or test"
    )
    command(lock, "Write requirements.txt from pyproject.toml with pip-compile.").add_argument(
        "--upgrade", action="store_true", help="move every pin to the newest release that fits"
    )
    return top


def main(argv: list[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    return arguments.function(arguments)


if __name__ == "__main__":
    sys.exit(main())
