"""From raw samples to the table: medians, ranges, verdicts. No measuring here.

A row compares a value with its bar. Where two sides were measured in alternating rounds the value is the median of the
per-round quotients, so that drift of the machine between rounds cancels out; the range is theirs too.
"""

import json
import statistics


def median(values):
    return statistics.median(values)


def quotients(over, under):
    return [a / b for a, b in zip(over, under)]


def short(value):
    """Three significant digits, thousands with separators."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 100:
        return f"{value:.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


class Table:
    """Rows of the final table, in order."""

    def __init__(self):
        self.rows = []

    def add(self, what, values, bar=None, unit="", note=""):
        """`bar` is ("≥" or "≤", limit), or None for a row that is only told."""
        value = median(values)
        met = None
        if bar:
            met = value >= bar[1] if bar[0] == "≥" else value <= bar[1]
        self.rows.append({"what": what, "median": value, "low": min(values), "high": max(values), "rounds": len(values),
                          "unit": unit, "bar": list(bar) if bar else None, "met": met, "note": note})

    def fail(self, what, bar, why):
        """A bar that could not be measured is missed."""
        self.rows.append({"what": what, "median": None, "low": None, "high": None, "rounds": 0, "unit": "",
                          "bar": list(bar) if bar else None, "met": False, "note": why})

    def missed(self):
        return [row for row in self.rows if row["met"] is False]

    @staticmethod
    def cells(row):
        unit = f" {row['unit']}" if row["unit"] else ""
        if row["median"] is None:
            measured = "not measured"
        elif row["rounds"] == 1:
            measured = f"{short(row['median'])}{unit}"
        else:
            measured = f"{short(row['median'])} ({short(row['low'])}–{short(row['high'])}){unit}"
        bar = f"{row['bar'][0]} {short(row['bar'][1])}{unit}" if row["bar"] else ""
        verdict = {True: "met", False: "MISSED", None: ""}[row["met"]]
        return [row["what"], measured, bar, verdict, row["note"]]

    HEAD = ["what", "measured: median (range)", "bar", "", "note"]

    def text(self):
        lines = [self.HEAD] + [self.cells(row) for row in self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(4)]
        return "\n".join("  ".join([cell.ljust(width) for cell, width in zip(line, widths)] + [line[4]]).rstrip()
                         for line in lines)

    def markdown(self):
        lines = [self.HEAD, ["---"] * 5] + [self.cells(row) for row in self.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def page(title, facts, table):
    """A result page for docs/measurements/."""
    told = "\n".join(f"- {name}: {value}" for name, value in facts.items())
    return f"# {title}\n\n{told}\n\n{table.markdown()}\n"


def write_json(path, facts, table, samples):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"facts": facts, "rows": table.rows, "samples": samples}, file, ensure_ascii=False, indent=1)
        file.write("\n")
