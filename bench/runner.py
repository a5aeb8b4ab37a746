"""What every measuring script of this folder shares: one run with its samples and its table, alternating rounds, counting of
instructions, what is told about the machine, and where results go. quick.py and documents.py list the bars.

A bar is a function of a Bench; run() calls those that were asked for, prints the table and writes the files.
"""

import argparse
import datetime
import glob
import os
import platform
import re
import subprocess
import sys
import time

import rig as rigs
from report import Table, median, page, write_json
from rig import Rig, RigError, cpu_seconds, run_load

WARM_S = 0.3
DISTURBED_CPU = 0.15


def wait_idle(patience_s=120):
    """Until nothing else has used much CPU for a second."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        before, _ = rigs.machine_seconds()
        time.sleep(1)
        if rigs.machine_seconds()[0] - before <= DISTURBED_CPU:
            return


class Bench:
    """One run: the rig, the samples so far, the table."""

    def __init__(self, rig, arguments):
        self.rig = rig
        self.rounds = arguments.rounds
        self.seconds = arguments.seconds
        self.quiet = arguments.quiet
        self.quick = getattr(arguments, "quick", False)
        self.samples = []
        self.table = Table()
        self.wrong = 0
        self.nonces = 0

    def say(self, text):
        print(f"  {text}", file=sys.stderr, flush=True)

    def take(self, bar, side, result, **more):
        """Keeps a load result; a wrong answer counts against the whole run."""
        self.samples.append({"bar": bar, "side": side, **more, "load": result})
        if result["errors_total"]:
            self.wrong += result["errors_total"]
            self.say(f"{bar} {side}: {result['errors_total']} wrong answers: {result['errors']}")
        return result

    def load(self, bar, side, port, requests, **options):
        """A load over HTTP, with the CPU time that hanji's worker and nginx's worker used for it."""
        hanji = options.pop("hanji", None)
        options = {"c": 64, "d": self.seconds, "w": WARM_S, "l": side, **options}
        pids = {"nginx": self.rig.nginx_worker(), **({"hanji": hanji.worker()} if hanji else {})}
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        start, busy, stolen = time.monotonic(), *rigs.machine_seconds()
        result = run_load("load", ["127.0.0.1", port], requests, token=hanji.token if hanji else None, **options)
        took, busy_after, stolen_after = time.monotonic() - start, *rigs.machine_seconds()
        used = {name: cpu_seconds(pid) - before[name] for name, pid in pids.items()}
        own = sum(used.values()) + result["cpu_us_per_request"] * result["issued"] / 1e6
        return self.take(bar, side, result, cpu_us={name: s * 1e6 / max(1, result["answered"]) for name, s in used.items()},
                         others=max(0, busy_after - busy - own) / took, stolen=(stolen_after - stolen) / took)

    def of(self, bar, side):
        return [s for s in self.samples if s["bar"] == bar and s["side"] == side and not s.get("discarded")]

    def rates(self, bar, side):
        return [s["load"]["rate"] for s in self.of(bar, side)]

    def cpu(self, bar, side, who):
        return [s["cpu_us"][who] for s in self.of(bar, side)]

    def calm(self, action):
        """Runs one measurement. With --quiet it waits until the machine is idle, and repeats what other processes disturbed:
        judged by their CPU time alone, never by the result; the samples are kept, marked as discarded."""
        for attempt in range(5):
            if self.quiet:
                wait_idle()
            first = len(self.samples)
            action()
            taken = self.samples[first:]
            if not self.quiet or attempt == 4 or max(s.get("others", 0) for s in taken) <= DISTURBED_CPU:
                return
            for sample in taken:
                sample["discarded"] = True

    def alternate(self, sides):
        """Runs each side's function once per round, starting with another one each time."""
        names = list(sides)
        for i in range(self.rounds):
            for name in names[i % len(names):] + names[:i % len(names)]:
                self.calm(sides[name])

    def next_nonce(self):
        self.nonces += 1
        return f"n{self.nonces:07d}"


# ---- instructions ----

def callgrind_total(pattern):
    """The instructions in the newest dump that matches."""
    newest = max(glob.glob(pattern), key=os.path.getmtime, default=None)
    if newest is None:
        raise RigError("callgrind wrote no dump")
    with open(newest, encoding="utf-8", errors="replace") as file:
        for line in file:
            found = re.match(r"(?:totals|summary): (\d+)", line)
            if found:
                return int(found.group(1))
    raise RigError(f"no total in {newest}")


def callgrind_control(*words):
    done = subprocess.run(["callgrind_control", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=60, check=False)
    if done.returncode != 0 or "Error" in done.stdout:
        raise RigError(f"callgrind_control {' '.join(words)}: {done.stdout.strip()}")


# ---- the whole ----

def first_line(*command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.stdout.strip().splitlines()[0]
    except (OSError, IndexError):
        return "?"


def facts():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = re.findall(r"(?m)^model name\s*: (.*)$", file.read()) or [platform.machine()]
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": first_line("git", "-C", rigs.TOP, "describe", "--always", "--dirty"),
        "machine": f"{len(rigs.CPUS)} × {models[0]}, {platform.system()} {platform.release()} {platform.machine()}",
        "programs": f"{first_line(os.path.join(rigs.BUILD, 'hanji'), 'version')}; {first_line('nginx', '-v')}; "
                    f"SQLite {first_line('sqlite3', '--version')[:6]}",
        "placement": f"nginx's worker on CPU {rigs.NGINX_CPU}; hanji on CPU {rigs.HANJI_CPU}, load generator on CPU "
                     f"{rigs.LOAD_CPU}; the same for static files",
        "load before": " ".join(f"{value:.2f}" for value in os.getloadavg()),
    }


def disturbance(samples):
    """What else used the machine while it was measured, in CPUs."""
    told = []
    for name, words in (("others", "other processes"), ("stolen", "the hypervisor")):
        values = [s[name] for s in samples if name in s and not s.get("discarded")] or [0]
        told.append(f"{words} used {median(values):.2f} CPU (at most {max(values):.2f})")
    discarded = sum(1 for s in samples if s.get("discarded"))
    return "while loads ran, " + ", ".join(told) + (f"; discarded as disturbed: {discarded} samples" if discarded else "")


def parser_for(text, bars):
    """The options that every script has."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.5, help="of each load")
    parser.add_argument("--quiet", action="store_true",
                        help=f"on a shared machine: wait for idle CPUs, repeat loads beside which others used > {DISTURBED_CPU} CPU")
    parser.add_argument("--save", action="store_true", help="result page and raw data into docs/measurements/ too")
    parser.add_argument("bars", nargs="*", metavar="BAR", help=" ".join(bars))
    return parser


def choose(parser, arguments, bars):
    """All bars when none is named; an error for one that does not exist."""
    arguments.bars = arguments.bars or list(bars)
    for bar in arguments.bars:
        if bar not in bars:
            parser.error(f"no bar {bar}; there are {' '.join(bars)}")


def measure(arguments, bars, rig):
    with rig:
        bench = Bench(rig, arguments)
        for bar in arguments.bars:
            bench.say(f"{bar} …")
            start = time.monotonic()
            try:
                bars[bar](bench)
            except (RigError, OSError, ArithmeticError, LookupError, ValueError, subprocess.SubprocessError) as error:
                bench.table.fail(bar, None, (f"{type(error).__name__}: {error}".splitlines() or [""])[0][:200])
                bench.say(f"{bar}: {error}")
            bench.say(f"{bar} took {time.monotonic() - start:.0f} s")
        bench.nginx_errors = rig.nginx_errors()
    return bench


def save(arguments, name, told, bench):
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d-%H%M%S")
    path = os.path.join(rigs.TOOLS, f"{name}-{stamp}.json")
    write_json(path, told, bench.table, bench.samples)
    print(f"raw: {os.path.relpath(path)}")
    if arguments.save:
        folder = os.path.join(rigs.TOP, "docs", "measurements")
        os.makedirs(folder, exist_ok=True)
        stem = os.path.join(folder, f"{name}-{stamp}")
        write_json(f"{stem}.json", told, bench.table, bench.samples)
        with open(f"{stem}.md", "w", encoding="utf-8") as file:
            file.write(page(f"make bench-{name}", told, bench.table))
        print(f"saved: {os.path.relpath(stem)}.md")


def run(name, arguments, bars, make_rig=Rig):
    """Measures, prints, writes; the exit status. `make_rig` gives the rig, which is entered here."""
    rigs.catch_signals()
    rigs.raise_files()
    told = facts()
    try:
        bench = measure(arguments, bars, make_rig())
    except RigError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    compared = sum(s["load"]["compared"] for s in bench.samples if "load" in s)
    told["checked"] = (f"{sum(s['load']['answered'] for s in bench.samples if 'load' in s):,} answers for status and length, "
                       f"{compared:,} bodies byte by byte; wrong: {bench.wrong}; lines in nginx's error log: "
                       f"{len(bench.nginx_errors)}")
    told["disturbed"] = disturbance(bench.samples)
    print("\n".join(f"{what}: {value}" for what, value in told.items()))
    print(bench.table.text())
    for line in bench.nginx_errors[:5]:
        print(f"nginx: {line}")
    save(arguments, name, told, bench)
    return 1 if bench.wrong or bench.table.missed() else 0
