"""The pages of docs/ form a book: SUMMARY.md lists each of them, and all links lead somewhere."""

import os
import re
import shutil
import subprocess

import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
DOCS = os.path.join(ROOT, "docs")
PAGES = sorted(name for name in os.listdir(DOCS) if name.endswith(".md"))
LINK = re.compile(r"\]\(([^)\s]+)\)")


def text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def without_code(page):
    return re.sub(r"^```.*?^```", "", page, flags=re.M | re.S)


def anchors(path):
    """The anchors of the headings of a page, as GitHub and mdBook form them."""
    headings = re.findall(r"^#+ (.+)$", without_code(text(path)), re.M)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_the_summary_lists_every_page_once():
    listed = LINK.findall(text(os.path.join(DOCS, "SUMMARY.md")))
    assert sorted(listed) == [name for name in PAGES if name != "SUMMARY.md"]


@pytest.mark.parametrize("page", ["../README.md", *PAGES])
def test_links_lead_to_files_and_headings(page):
    path = os.path.join(DOCS, page)
    for link in LINK.findall(without_code(text(path))):
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
        assert os.path.exists(target), link
        assert target.startswith(DOCS) or page == "../README.md", f"{link} leads out of the book"
        if anchor:
            assert anchor in anchors(target), link


def test_mdbook_builds_the_book(tmp_path):
    if shutil.which("mdbook") is None:
        pytest.skip("mdbook is not installed")
    done = subprocess.run(
        ["mdbook", "build", DOCS, "-d", str(tmp_path / "book")], capture_output=True, text=True
    )
    assert done.returncode == 0 and "WARN" not in done.stderr, done.stderr
    for page in PAGES:
        name = {"README.md": "index.md"}.get(page, page)
        if page != "SUMMARY.md":
            assert (tmp_path / "book" / name.replace(".md", ".html")).exists(), page
