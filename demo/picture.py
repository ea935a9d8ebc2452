"""The picture of the demo: how long each query of the dashboard took without the cache, from it, and after a write.

The SVG is written here, so that the demo needs no other package; a PNG is drawn beside it if matplotlib is there.
"""

import html
import math
from dataclasses import dataclass

# Opaque and light, so that it can be read on any page; the colours are apart for colour-blind eyes, too.
PAPER, INK, FAINT, LINE = "#ffffff", "#1f2328", "#57606a", "#d0d7de"
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 860, 200, 70, 96, 40
ROW, BAR = 50, 12


@dataclass
class Answers:
    """What one query took, in milliseconds."""

    name: str
    cold: float
    warm: float
    after_write: float
    # The write has changed a table that it reads.
    is_outdated: bool


@dataclass
class Bar:
    colour: str
    label: str
    milliseconds: object


BARS = [
    Bar("#7f7f7f", "without the cache", lambda answers: answers.cold),
    Bar("#d55e00", "from the cache", lambda answers: answers.warm),
    Bar("#56b4e9", "first time after a write to stores", lambda answers: answers.after_write),
]


def number(milliseconds):
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.1f}" if milliseconds >= 1 else f"{milliseconds:.2f}"


class Drawing:
    """Boxes and texts, at places in pixels from the upper left corner."""

    def __init__(self, width, height):
        self.width, self.height = width, height
        self.boxes, self.texts = [], []

    def box(self, x, y, width, height, colour):
        self.boxes.append((x, y, width, height, colour))

    def text(self, x, y, words, colour=INK, size=13, anchor="start"):
        self.texts.append((x, y, words, colour, size, anchor))

    def svg(self, title):
        lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
                 f'height="{self.height}" font-family="DejaVu Sans, Verdana, sans-serif" role="img">',
                 f"<title>{html.escape(title)}</title>"]
        lines += [f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'
                  for x, y, width, height, colour in self.boxes]
        lines += [f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}" text-anchor="{anchor}">{html.escape(words)}</text>'
                  for x, y, words, colour, size, anchor in self.texts]
        return "\n".join([*lines, "</svg>", ""])

    def png(self, path):
        """The same by matplotlib, whose points are 1/72 inch. Raises ImportError without it."""
        import matplotlib
        matplotlib.use("agg")
        from matplotlib import patches, pyplot
        figure = pyplot.figure(figsize=(self.width / 72, self.height / 72), dpi=144)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, self.width), ylim=(self.height, 0))
        axes.axis("off")
        for x, y, width, height, colour in self.boxes:
            axes.add_patch(patches.Rectangle((x, y), width, height, color=colour, linewidth=0))
        for x, y, words, colour, size, anchor in self.texts:
            axes.text(x, y, words, color=colour, fontsize=size * 0.9, ha={"start": "left", "middle": "center", "end": "right"}[anchor])
        figure.savefig(path)
        pyplot.close(figure)


def drawn(measured, rows):
    """`measured` is a list of Answers; `rows` is how many sales they were asked of."""
    height = TOP + ROW * len(measured) + BOTTOM
    drawing = Drawing(WIDTH, height)
    drawing.box(0, 0, WIDTH, height, PAPER)
    times = [bar.milliseconds(answers) for answers in measured for bar in BARS]
    lowest, highest = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def place(milliseconds):
        return LEFT + (math.log10(milliseconds) - lowest) / (highest - lowest) * (WIDTH - LEFT - RIGHT)

    drawing.text(16, 28, f"A dashboard of {len(measured)} queries over {rows:,} sales: milliseconds until the client has all rows", size=15)
    for at, bar in zip((LEFT, LEFT + 170, LEFT + 310), BARS):
        drawing.box(at, 45, BAR, BAR, bar.colour)
        drawing.text(at + 18, 56, bar.label)
    for power in range(lowest, highest + 1):
        at = place(10**power)
        drawing.box(at, TOP - 12, 1, height - TOP - BOTTOM + 12, LINE)
        drawing.text(at, height - BOTTOM + 18, f"{10**power:g} ms", FAINT, 12, "middle")
    for row, answers in enumerate(measured):
        top = TOP + row * ROW
        drawing.text(LEFT - 12, top + 15, answers.name.partition("_")[2].replace("_", " "), anchor="end")
        if not answers.is_outdated:
            drawing.text(LEFT - 12, top + 31, "does not read stores", FAINT, 11, "end")
        for step, bar in enumerate(BARS):
            end = place(bar.milliseconds(answers))
            drawing.box(LEFT, top + step * (BAR + 1), max(end - LEFT, 1), BAR, bar.colour)
            drawing.text(end + 5, top + step * (BAR + 1) + 10, number(bar.milliseconds(answers)), FAINT, 11)
    return drawing


def write(measured, rows, path):
    """Writes the SVG, and the PNG beside it if it can be drawn. Returns the files."""
    drawing = drawn(measured, rows)
    path.write_text(drawing.svg("How long each query of the demo took: without the cache, from the cache, and after a write"))
    image = path.with_suffix(".png")
    try:
        drawing.png(image)
    except ImportError:
        return [path]
    return [path, image]
