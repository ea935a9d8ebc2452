"""The picture that `make demo` draws shows what was measured."""

import sys
import xml.etree.ElementTree as xml
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "demo"))
import dataset  # noqa: E402  (they live beside the demo)
import picture  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
MEASURED = [picture.Answers("1_first", 100.0, 0.1, 90.0, True), picture.Answers("2_second", 1000.0, 1.0, 1.0, False)]


def shapes(text):
    """The words of a picture, and the boxes of each colour: [(left, width)]."""
    root = xml.fromstring(text)
    boxes = {}
    for box in root.iter(f"{SVG}rect"):
        boxes.setdefault(box.get("fill"), []).append((float(box.get("x")), float(box.get("width"))))
    return [words.text for words in root.iter(f"{SVG}text")], boxes


def test_bars_are_as_long_as_what_they_show(tmp_path):
    files = picture.write(MEASURED, 1000, tmp_path / "demo.svg")
    words, boxes = shapes(files[0].read_text())
    for shown in ("first", "second", "100", "0.10", "90.0", "1,000", "1.0", "0.1 ms", "1000 ms"):
        assert shown in words
    assert words.count("does not read stores") == 1
    # The scale has a power of ten in each quarter: the bars of 0.1 and of 1 ms are a quarter apart.
    cold, warm = [[width for _, width in boxes[bar.colour][1:]] for bar in picture.BARS[:2]]
    whole = picture.WIDTH - picture.LEFT - picture.RIGHT
    assert abs(cold[1] - whole) < 0.2 and abs(cold[0] - whole * 3 / 4) < 0.2
    assert warm[0] == 1 and abs(warm[1] - whole / 4) < 0.2


def test_the_picture_of_readme_has_the_queries_of_the_demo():
    text = (ROOT / "docs" / "demo.svg").read_text()
    assert len(text) < 60_000
    words, boxes = shapes(text)
    for name in dataset.queries():
        assert name.partition("_")[2].replace("_", " ") in words
    assert all(len(boxes[bar.colour]) == 1 + len(dataset.queries()) for bar in picture.BARS)
    # Opaque behind all else, so that dark pages do not shine through.
    assert boxes[picture.PAPER] == [(0, picture.WIDTH)]
    assert "](docs/demo.svg)" in (ROOT / "README.md").read_text()
