"""The pages around the chapters: every slide leads to where it is taught, every citation to something that exists."""

import ast
import doctest
import re

import pytest

from course import ROOT, notebooks

DECK = (ROOT / "book" / "deck.md").read_text("utf8")
SLIDES = range(1, 13)
CHAPTERS = {int(text.name[:2]): text for text in notebooks.chapters()}
PAGES = sorted((ROOT / "book").glob("*.md"))

SECTIONS = dict(
    (int(number), body)
    for number, body in re.findall(r"^## S(\d+): .*?\n(.*?)(?=^## S|\Z)", DECK, re.M | re.S)
)


def slides_of(chapter: int) -> set[int]:
    """The slides that a chapter's opening says it covers: "S7 to S9", "S2 and S3", "S11", "none"."""
    said = re.search(r"\*\*Slides?\*\* (.*?)\. \*\*Assumes", CHAPTERS[chapter].read_text("utf8"))
    if said[1].startswith("none"):
        return set()
    numbers = [int(n) for n in re.findall(r"S(\d+)", said[1])]
    return set(range(numbers[0], numbers[-1] + 1))


def headings(chapter: int) -> dict[str, str]:
    """The sections of a chapter: anchor, as MyST makes it, -> text of the section."""
    text = re.sub(r"```.*?```", "", CHAPTERS[chapter].read_text("utf8"), flags=re.S)
    parts = re.split(r"^#+ (.+)$", text, flags=re.M)[1:]
    slug = lambda title: re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")  # noqa: E731
    return {slug(title): body for title, body in zip(parts[::2], parts[1::2], strict=True)}


def test_every_slide_has_a_section_in_order():
    assert list(SECTIONS) == list(SLIDES)
    assert [int(n) for n in re.findall(r"\[S(\d+)\]\(#s", DECK)] == list(SLIDES)


@pytest.mark.parametrize("slide", [n for n in SLIDES if n > 1])
def test_a_slide_leads_to_the_section_that_teaches_it(slide):
    body = SECTIONS[slide]
    (chapter,) = {int(n) for n in re.findall(r"\*\*In chapter (\d+)\*\*", body)}
    links = re.findall(r"\(\.\./chapters/(\d\d)_\w+\.ipynb#([\w-]+)\)", body)
    assert links and {int(number) for number, _ in links} == {chapter}
    assert slide in slides_of(chapter), "the chapter's opening doesn't name this slide"
    sections = headings(chapter)
    for _, anchor in links:
        assert len(sections[anchor].split()) > 50, f"#{anchor} is too short to teach anything"
    taught = " ".join(sections[anchor] for _, anchor in links)
    assert re.search(rf"\bS{slide}\b", taught), "none of the sections says which slide it is about"
    assert re.search(r"\{lib\}`\w+\.\w+`", body), "no function of lib carries it out"


def test_chapters_cover_the_slides_once_each():
    covered = [slide for chapter in CHAPTERS for slide in sorted(slides_of(chapter))]
    assert covered == [n for n in SLIDES if n > 1]


def docstrings():
    for file in sorted((ROOT / "lib").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf8"))):
            if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
                if text := ast.get_docstring(node):
                    yield f"{file.stem}.{getattr(node, 'name', '')}", text


def test_docstrings_cite_what_exists():
    cited = 0
    for name, text in docstrings():
        for slide in re.findall(r"\bS(\d+)\b", text):
            assert int(slide) in SLIDES, f"{name} cites S{slide}"
            cited += 1
        for chapter in re.findall(r"\bchapter (\d+)", text):
            assert int(chapter) in CHAPTERS, f"{name} cites chapter {chapter}"
            cited += 1
    assert cited > 20


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_on_pages_do_what_they_say(page):
    """The >>> examples of a page, run in order."""
    blocks = re.findall(r"^```python\n(>>> .*?)^```", page.read_text("utf8"), re.M | re.S)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, str(page), 0)
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
    if page.stem == "index":
        assert len(test.examples) > 8


def test_every_work_that_a_chapter_names_is_in_the_references():
    bibliography = (ROOT / "book" / "references.bib").read_text("utf8")
    texts = [text.read_text("utf8") for text in CHAPTERS.values()] + [t for _, t in docstrings()]
    for text in texts:
        for paper in re.findall(r"arXiv:(\d{4}\.\d{4,5})", text):
            assert paper in bibliography, f"arXiv:{paper} is not in references.bib"


def test_the_glossary_is_in_order_and_names_chapters_that_exist():
    glossary = (ROOT / "book" / "glossary.md").read_text("utf8")
    entries = re.search(r"```\{glossary\}\n(.*?)```", glossary, re.S)[1]
    terms = re.findall(r"^(\S.*)$", entries, re.M)
    assert terms == sorted(terms, key=str.lower) and len(terms) > 20
    assert {int(n) for n in re.findall(r"[Cc]hapter (\d+)", entries)} <= set(CHAPTERS)
