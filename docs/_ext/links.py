"""Links that work in the repository work on the site too.

Pages are read in both places. On the site the folder of results is a page of its own, other files
of the repository are downloads. A page that is not written yet is plain text in a sentence, and
left out of a list of contents where its name ends with ``*``.
"""

import re
from pathlib import Path

#: Where a link of the repository leads to on the site.
ON_THE_SITE = {
    "../results/README.md": "results.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../CHANGELOG.md": "changelog.md",
}
#: The page whose list of contents has optional pages.
GUIDE = "guide"
_OPTIONAL_PAGE = re.compile(r"^(?P<name>[\w-]+)\*\n", flags=re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s#:]+)(?P<anchor>#[^)]*)?\)")


def site_links(text, folder):
    """Return a page's text with its links as the site needs them."""

    def changed(link):
        target = ON_THE_SITE.get(link["target"], link["target"])
        moved = target != link["target"]
        if target.endswith(".md") and not (folder / target).exists():
            return link["text"]
        return f"[{link['text']}]({target}{'' if moved else link['anchor'] or ''})"

    return _LINK.sub(changed, text)


def without_missing_pages(text, folder):
    """Return a page's text without the patterns of pages that are not there."""
    return _OPTIONAL_PAGE.sub(
        lambda line: line[0] if (folder / f"{line['name']}.md").exists() else "", text
    )


def rewrite(app, docname, source):
    """Change the links of Markdown pages as they are read."""
    path = Path(app.env.doc2path(docname))
    if path.suffix == ".md":
        source[0] = without_missing_pages(site_links(source[0], path.parent), path.parent)


def read_guide_again(app, env, added, changed, removed):
    """Read the list of pages again when a page has come or gone."""
    return [GUIDE] if added or removed else []


def setup(app):
    """Connect to Sphinx."""
    app.connect("env-get-outdated", read_guide_again)
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
