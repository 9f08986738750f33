"""Our figures for one row: hunt, record, explain; every number comes from csched's own JSON
or from a clock. Row.why says why a figure is missing."""
import os
import re
import shutil
import statistics
import subprocess
import threading
import time

import corpus

ACCESSES = {"read", "write", "rmw"}
OVERHEAD_RUNS = 5


class Row:
    def __init__(self, program, size):
        self.program, self.size = program, size
        self.trace = self.hunt = self.report = self.info = None
        self.native_ms = self.recorded_ms = None
        self.explain_seconds = None
        self.why = None
        self.wrong = []


def code_lines(program):
    """Lines that are neither blank nor comment."""
    total = 0
    for source in program.sources:
        with open(os.path.join(program.dir, source)) as f:
            text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), f.read(), flags=re.S)
        total += sum(1 for line in text.splitlines() if line.strip())
    return total


def timed(command, cwd):
    """Milliseconds of a run that went well, or None."""
    start = time.monotonic()
    child = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    # wait(timeout=) looks in ever longer steps and would round up to the next one: 4, 16, 32 ms.
    # None takes a tenth of this; some hang natively, too.
    limit = threading.Timer(15, child.kill)
    limit.start()
    status = child.wait()
    seconds = time.monotonic() - start
    limit.cancel()
    return seconds * 1000 if status == 0 else None


def overhead(row, directory):
    """Median wall time natively and recorded, runs in turn, failing runs left out."""
    command = row.program.command(row.size)
    recorded = [corpus.CSCHED, "run", "-q", "-o", directory, "--", *command]
    native, shim = [], []
    for _ in range(OVERHEAD_RUNS * 3):
        if len(native) < OVERHEAD_RUNS:
            native.append(timed(command, directory))
        if len(shim) < OVERHEAD_RUNS:
            shim.append(timed(recorded, directory))
        native = [t for t in native if t is not None]
        shim = [t for t in shim if t is not None]
    if native and shim:
        row.native_ms, row.recorded_ms = statistics.median(native), statistics.median(shim)


def tree_size(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(path) for f in files)


def measure(row, directory, hunt_seconds, explain_seconds):
    label = row.program.name + (row.size or "")
    home = os.path.join(directory, label)
    shutil.rmtree(home, ignore_errors=True)
    row.trace, why, row.hunt = corpus.get_trace(row.program, home, hunt_seconds, row.size)
    times = os.path.join(directory, label + ".times")
    os.makedirs(times, exist_ok=True)
    overhead(row, times)
    shutil.rmtree(times, ignore_errors=True)
    if not row.trace:
        row.why = f"hunt: {why}"
        return
    row.size_bytes = tree_size(row.trace)
    row.info = corpus.parse(corpus.csched("info", "--json", row.trace)[1])
    row.report, why, row.explain_seconds = corpus.explain(row.program, row.trace, explain_seconds)
    if row.report is None:
        row.why = f"explain: {why}"
        return
    for check in (corpus.problems_failure, corpus.problems_cause, corpus.problems_alternate):
        row.wrong += check(row.program, row.report)


# ---- figures of a measured row; None: not known ----

def stat(row, key):
    return ((row.report or {}).get("stats") or {}).get(key)


def events(row):
    return ((row.report or {}).get("schedule") or {}).get("events") or []


def shared_accesses(row):
    return sum(1 for e in events(row) if e.get("op") in ACCESSES) if events(row) else None


def shared_variables(row):
    return len({e.get("variable") for e in events(row) if e.get("op") in ACCESSES}) \
        if events(row) else None


def path_bytes(row):
    if not row.info:
        return None
    return sum(t.get("path_bytes") or 0 for t in row.info.get("threads") or [])


def phase(row, *wanted):
    found = [p["seconds"] for p in stat(row, "phases") or [] if p["name"] in wanted]
    return sum(found) if found else None


def threads(row):
    return stat(row, "threads") or (len(row.info["threads"]) if row.info else None)


def to_grok(row):
    """Distinct operations in the dataflows that differ."""
    flows = ((row.report or {}).get("dsp") or {}).get("dataflows")
    if not flows:
        return None
    seen = {(e["thread"], e["index"]) for f in flows if f.get("differs")
            for e in (f.get("write"), f.get("read")) if e}
    return len(seen)


def alternate_found(row):
    return ((row.report or {}).get("alternate") or {}).get("found")


def switches(row):
    s = (row.report or {}).get("schedule") or {}
    return s.get("context_switches_before"), s.get("context_switches")
