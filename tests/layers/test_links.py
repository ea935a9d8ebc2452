"""Each link of a document leads to a file of the repository, and to an anchor of that file."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)


def documents():
    """All but those that are made: a copy of the repository need not have git."""
    folders = [folder for folder in ROOT.iterdir() if folder.is_dir() and folder.name not in ("target", ".git")]
    found = [*ROOT.glob("*.md"), *(path for folder in folders for path in folder.rglob("*.md"))]
    return sorted(path for path in found if "target" not in path.relative_to(ROOT).parts)


def anchors(text):
    """Those of headings, as GitHub names them, and those that are written as such."""
    text = FENCED.sub("", text)
    found = set(re.findall(r'<a id="([^"]+)"', text))
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")
        again = sum(other == name or re.fullmatch(re.escape(name) + r"-\d+", other) is not None for other in found)
        found.add(f"{name}-{again}" if again else name)
    return found


def broken(path, text):
    """The links of a text that lead nowhere, if it lies at this path."""
    found = []
    for link in re.findall(r"\]\(([^)\s]+)\)", FENCED.sub("", text)):
        name, _, anchor = link.partition("#")
        if re.match(r"\w+:", link):
            continue
        target = path.parent / name if name else path
        inside = text if not name else target.read_text() if target.suffix == ".md" and target.exists() else ""
        if (name and not target.exists()) or (anchor and anchor not in anchors(inside)):
            found.append(link)
    return found


class Links(unittest.TestCase):
    def test_each_leads_somewhere(self):
        found = {str(path.relative_to(ROOT)): broken(path, path.read_text()) for path in documents()}
        self.assertGreater(len(found), 20)
        self.assertEqual({name: links for name, links in found.items() if links}, {})

    def test_those_that_lead_nowhere_are_found(self):
        text = ('# One, two\n## One, two\n<a id="here"></a>\n[a](#one-two) [b](#one-two-1) [c](#here) [d](README.md) [e](https://a.b/#c)\n'
                "[f](#nowhere) [g](no.md) [h](README.md#nowhere)\n```sh\n# comment [i](no.md)\n```\n[j](#comment)")
        self.assertEqual(broken(ROOT / "any.md", text), ["#nowhere", "no.md", "README.md#nowhere", "#comment"])
