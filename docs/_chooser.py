"""The flow chart of the page on choosing, drawn as SVG from ``_chooser.txt``.

A line of the text is a kind of data; an indented line below it has what is needed, and after
">" the estimator.
"""

from html import escape
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".txt")
# Left edge and width of boxes of data, needs and estimators, in units of the picture. On narrow
# screens what is needed stands above its estimator.
WIDE = {"data": (0, 210), "need": (245, 285), "estimator": (560, 240)}
NARROW = {"data": (0, 400), "need": (30, 370), "estimator": (30, 370)}
HEIGHT, GAP = 34, 12  # of a box, and between boxes
LINE = 17  # between lines of text
CHARACTER = 7.4  # the width of most characters


def read_chart():
    """Needs and estimators by their kind of data."""
    chart, data = {}, None
    for line in SOURCE.read_text("utf-8").splitlines():
        if line.startswith(" "):
            chart[data].append(tuple(part.strip() for part in line.split(">")))
        else:
            data = line
            chart[data] = []
    return chart


def draw_chooser(folder):
    """Write ``chooser_wide.svg`` and ``chooser_narrow.svg``, for pages one folder above."""
    chart = read_chart()
    (folder / "chooser_wide.svg").write_text(_wide(chart), "utf-8")
    (folder / "chooser_narrow.svg").write_text(_narrow(chart), "utf-8")


def _wide(chart):
    shapes, top = (
        [_heading("data", "What is your data?"), _heading("need", "What do you need?")],
        34,
    )
    shapes.append(_heading("estimator", "Begin with"))
    for data, needs in chart.items():
        bottom = top + len(needs) * (HEIGHT + GAP) - GAP
        middle = (top + bottom - HEIGHT) / 2
        shapes.append(_box("data", WIDE["data"], middle - 9, data, HEIGHT + 18))
        for need, estimator in needs:
            shapes.append(_arrow(WIDE["data"], middle, WIDE["need"], top))
            shapes.append(_arrow(WIDE["need"], top, WIDE["estimator"], top))
            shapes.append(_box("need", WIDE["need"], top, need))
            shapes.append(_link(WIDE["estimator"], top, estimator))
            top += HEIGHT + GAP
        top += GAP
    return _picture(shapes, "wide", 800, top)


def _narrow(chart):
    shapes, top = [], 0
    for data, needs in chart.items():
        shapes.append(_box("data", NARROW["data"], top, data))
        first, top = top, top + HEIGHT + GAP
        for need, estimator in needs:
            shapes.append(
                f'<text class="need-text" x="{NARROW["need"][0] + 12}" y="{top + 13}">'
            )
            shapes.append(f"{escape(need)}</text>")
            top += LINE + 4
            shapes.append(f'<path d="M 12 {first + HEIGHT} V {top + HEIGHT / 2} h 16"/>')
            shapes.append(_link(NARROW["estimator"], top, estimator))
            top += HEIGHT + GAP
        top += GAP
    return _picture(shapes, "narrow", 400, top)


def _picture(shapes, name, width, height):
    drawn = "\n".join(shapes)
    return (
        f'<svg class="chooser chooser-{name}" viewBox="-1 -1 {width + 2} {height:g}" '
        'xmlns="http://www.w3.org/2000/svg" role="img" aria-label="Flow chart: from your data '
        f'and what you need to an estimator">\n{drawn}\n</svg>\n'
    )


def _heading(column, text):
    left, width = WIDE[column]
    return f'<text class="heading" x="{left + width / 2}" y="16">{text}</text>'


def _box(kind, column, top, text, height=HEIGHT):
    left, width = column
    lines = _broken(text, width - 16)
    first = top + height / 2 - LINE * (len(lines) - 1) / 2 + 5
    texts = [
        f'<text x="{left + width / 2}" y="{first + LINE * i:g}">{escape(line)}</text>'
        for i, line in enumerate(lines)
    ]
    return (
        f'<g class="{kind}"><rect x="{left}" y="{top:g}" width="{width}" height="{height}" '
        f'rx="8"/>{"".join(texts)}</g>'
    )


def _link(column, top, estimator):
    page = f"api/generated/sklearn_attention.{estimator}.html"
    return f'<a href="{page}">{_box("estimator", column, top, estimator)}</a>'


def _arrow(source, source_top, target, target_top):
    start, end = source[0] + source[1], target[0]
    y, z = source_top + HEIGHT / 2, target_top + HEIGHT / 2
    bend = (start + end) / 2
    return f'<path d="M {start} {y:g} C {bend} {y:g} {bend} {z:g} {end} {z:g}"/>'


def _broken(text, width):
    """Break a text into lines of a width."""
    lines = [""]
    for word in text.split():
        if lines[-1] and CHARACTER * len(f"{lines[-1]} {word}") > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
