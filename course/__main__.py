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


def grade(arguments: argparse.Namespace) -> int:
    from course.grade.main import main

    return main(arguments)


def release(arguments: argparse.Namespace) -> int:
    from course.release import main

    return main(arguments)


def nbgrader(arguments: argparse.Namespace) -> int:
    from course.nbgrader import main

    return main(arguments)


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
    add_release(
        command(release, "Make a chapter's student version: no solutions, with all it needs.")
    )
    course_of = command(
        nbgrader, "Make an nbgrader course of chapters, for those who grade on JupyterHub."
    )
    course_of.add_argument("chapters", nargs="*", metavar="CH", help="such as 03 (default: all)")
    course_of.add_argument(
        "--out", required=True, metavar="DIR", help="a new folder: nbgrader's course"
    )
    add_grade(command(grade, "Grade submissions of a chapter's exercises, each in a sandbox."))
    return top


def add_release(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("chapter", metavar="CH", help="the chapter, such as 03")
    add("--out", required=True, metavar="DIR", help="where the folder and its zip go")
    add(
        "--private",
        metavar="FILE",
        help="your own exercises (.md): their statements and stubs are added",
    )
    add(
        "--repository",
        default="",
        metavar="URL",
        help="where you will put the folder, for the links in its README",
    )
    add("--branch", default="main", help="its branch (default: %(default)s)")
    add("--hub", default="", metavar="URL", help="your JupyterHub, for the nbgitpuller link")
    add("--force", action="store_true", help="write over an earlier release")
    add(
        "--dry-run",
        action="store_true",
        help="look for solutions, say what would be written, and write nothing",
    )


def add_grade(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("chapter", metavar="CH", help="the chapter, such as 03")
    add(
        "submissions",
        help="a zip or a folder: what Moodle or Canvas lets you download, or one file or folder a student",
    )
    add(
        "--out",
        required=True,
        metavar="DIR",
        help="where grades, feedback and the journal go; run again to go on",
    )
    add(
        "--private",
        metavar="FILE",
        help="your own exercises and hidden checks: .md like a chapter, or .py",
    )
    add(
        "--roster",
        metavar="CSV",
        help="who is who: Canvas's gradebook, Moodle's grading worksheet, or id,name,...",
    )
    add(
        "--late",
        metavar="FILE",
        help="late rules (TOML): deadline, grace_minutes, lost_per_day, lost_at_most, longer",
    )
    add(
        "--marks",
        metavar="CSV",
        help="marks of written answers (default: marks.csv in the output folder)",
    )
    add(
        "--jobs", type=int, default=2, metavar="N", help="how many at a time (default: %(default)s)"
    )
    add(
        "--only",
        action="append",
        metavar="EXERCISE",
        help="grade this exercise anew, and leave the others",
    )
    add(
        "--student",
        action="append",
        metavar="ID",
        help="grade this student anew, and leave the others",
    )
    add(
        "--seed",
        type=int,
        help="of the checks' inputs (default: one of the assignment's own, recorded)",
    )
    add(
        "--call-seconds",
        type=float,
        default=10,
        metavar="S",
        help="time for one call (default: %(default)s)",
    )
    add("--dry-run", action="store_true", help="say what would be graded, and write nothing")
    add(
        "--weak-isolation",
        action="store_true",
        help="run student code without bubblewrap, with limits on time and memory alone: it can read your files",
    )


def main(argv: list[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    return arguments.function(arguments)


if __name__ == "__main__":
    sys.exit(main())
