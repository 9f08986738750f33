"""The corpus and its expectations: reading `expect`, getting a failing trace,
comparing what csched says with what is known. tests/corpus/README.md describes
the format. Used by tests/program/corpus and scripts/tables."""
import json
import os
import re
import subprocess
import time

ROOT = os.environ.get("ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CORPUS = os.path.join(ROOT, "tests", "corpus")
BUILD = os.environ.get("CORPUS_BUILD") or os.path.join(ROOT, "build", "corpus")
CSCHED = os.environ.get("CSCHED") or os.path.join(ROOT, "build", "csched")
MARKER = re.compile(r"/\*((?: @\w+)+) \*/")


class Program:
    """One corpus program: its expectations, with markers resolved to lines."""

    def __init__(self, name, root=CORPUS, build=BUILD):
        self.name = name
        self.dir = os.path.join(root, name)
        self.build = build
        self.expect = {}
        with open(os.path.join(self.dir, "expect")) as f:
            for line in f:
                key, sep, value = line.strip().partition(":")
                if not sep:
                    raise ValueError(f"{name}/expect: no key in {line!r}")
                self.expect[key] = value.strip()
        self.marks = {}
        self.sources = set()
        for source in sorted(os.listdir(self.dir)):
            if source.endswith((".c", ".cc", ".h")):
                self.sources.add(source)
                self._read_marks(source)

    def _read_marks(self, source):
        with open(os.path.join(self.dir, source)) as f:
            for number, line in enumerate(f, 1):
                found = MARKER.search(line)
                for mark in found.group(1).split() if found else []:
                    self.marks.setdefault(mark, set()).add((source, number))

    def words(self, key):
        return self.expect.get(key, "").split()

    def lines(self, key):
        """Every line that a key names, as a set of (file, line)."""
        return set().union(*self.groups(key), set())

    def groups(self, key):
        """The key's items, each a set of lines: '@a @b|@c' is [{a}, {b, c}]."""
        result = []
        for item in self.words(key):
            if item == "none":
                continue
            lines = set()
            for mark in item.split("|"):
                if mark not in self.marks:
                    raise ValueError(f"{self.name}/expect: {key}: no line is marked {mark}")
                lines |= self.marks[mark]
            result.append(lines)
        return result

    def promises(self, step):
        """Must this step work today? promise: hunt (the default), replay or explain."""
        order = ["build", "hunt", "replay"]
        upto = self.expect.get("promise", "hunt")
        reach = len(order) if upto == "explain" else order.index(upto)
        return (order.index(step) if step in order else len(order)) <= reach

    def command(self, size=None):
        args = self.expect.get("args-" + size if size else "args", "")
        return [os.path.join(self.build, self.name)] + args.replace("{BUILD}", self.build).split()


def names(root=CORPUS):
    return sorted(n for n in os.listdir(root) if os.path.exists(os.path.join(root, n, "expect")))


def csched(*args, timeout=600, cwd=None):
    """Runs csched; (status, stdout, stderr, seconds). Status -1: took too long."""
    start = time.monotonic()
    try:
        p = subprocess.run([CSCHED, *args], capture_output=True, text=True, errors="replace",
                           stdin=subprocess.DEVNULL, timeout=timeout, cwd=cwd)
        return p.returncode, p.stdout, p.stderr, time.monotonic() - start
    except subprocess.TimeoutExpired:
        return -1, "", f"took longer than {timeout} s", time.monotonic() - start


def has_command(name):
    status, out, _, _ = csched("--help")
    return status == 0 and re.search(rf"^  {name}\b", out, re.M) is not None


def parse(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


def traces_in(directory):
    found = [os.path.join(directory, n) for n in os.listdir(directory) if n.endswith(".csched")]
    return sorted(found, key=os.path.getmtime)


def get_trace(program, directory, seconds, size=None, seed=1):
    """A failing trace: (path or None, why not, hunt's JSON or None)."""
    os.makedirs(directory, exist_ok=True)
    command = program.command(size)
    if program.expect.get("hunt") == "no":
        csched("run", "-q", "--deadlock", "abort", "-o", directory, "--", *command, timeout=120)
        found = traces_in(directory)
        return (found[-1] if found else None), "no trace was left", None
    status, out, err, _ = csched("hunt", "--json", "--no-explain", "--out", directory, "--time",
                                 str(seconds), "--seed", str(seed), "--strategy",
                                 program.expect.get("hunt-strategy", "auto"), "--", *command,
                                 timeout=seconds + 120)
    hunted = parse(out) or {}
    found = traces_in(directory)
    if hunted.get("trace") and os.path.exists(hunted["trace"]):
        return hunted["trace"], None, hunted
    if status == 0 and found:
        return found[-1], None, hunted
    why = f"{hunted['runs']} runs, no failure" if "runs" in hunted else last_line(err) or f"status {status}"
    return None, why, hunted


def last_line(text):
    lines = [l for l in text.strip().splitlines() if l.strip()]
    return lines[-1].strip()[:300] if lines else ""


# ---- what a report says ----

def places(program, event):
    """The program's own lines that an event stands for: its place and its callers."""
    result = set()
    for at in [event] + list(event.get("stack") or []):
        name = os.path.basename(at.get("file") or "")
        if name in program.sources and at.get("line"):
            result.add((name, at["line"]))
    return result


def innermost(program, event):
    """The innermost of them (inlined and library frames are left out)."""
    for at in [event] + list(event.get("stack") or []):
        name = os.path.basename(at.get("file") or "")
        if name in program.sources and at.get("line"):
            return {(name, at["line"])}
    return set()


def shown(lines):
    return " ".join(f"{f}:{n}" for f, n in sorted(lines)) or "nowhere"


def problems_failure(program, report):
    """What is wrong with the failure as reported, as a list of sentences."""
    failure = report.get("failure") or {}
    wrong = []
    kinds = program.words("kind")
    if failure.get("kind") not in kinds:
        wrong.append(f"kind {failure.get('kind')}, expected {' or '.join(kinds)}")
    signal = program.expect.get("signal")
    if signal and failure.get("kind") == "signal" and failure.get("signal") != signal:
        wrong.append(f"signal {failure.get('signal')}, expected {signal}")
    texts = [t.strip() for t in program.expect.get("text", "").split(" | ") if t.strip()]
    said = f"{failure.get('text') or ''} {failure.get('headline') or ''}"
    if texts and not any(t in said for t in texts):
        wrong.append(f"text {said.strip()!r} does not hold {' or '.join(map(repr, texts))}")
    events = [e for e in [failure.get("event")] + list(failure.get("blocked") or []) if e]
    at = set().union(*(places(program, e) for e in events), set())
    if not at & program.lines("fails-at"):
        wrong.append(f"fails at {shown(at)}, expected {shown(program.lines('fails-at'))}")
    blocked = program.lines("blocked")
    if not blocked <= at:
        wrong.append(f"blocked at {shown(at)}, expected all of {shown(blocked)}")
    return wrong


def edges(report):
    return (report.get("root_cause") or {}).get("edges") or []


def confidence(report):
    return (report.get("confidence") or {}).get("level")


def problems_cause(program, report):
    wrong = []
    if program.words("cause") == ["none"]:
        if confidence(report) != "always":
            wrong.append(f"not reported as failing in every order, but as {confidence(report)}")
        if edges(report):
            wrong.append("a root cause is named where no order is to blame")
        return wrong
    if not (report.get("schedule") or {}).get("validated"):
        wrong.append("no validated failing schedule")
    if not edges(report):
        return wrong + ["no root cause"]
    # The machine has no store buffers to execute them with.
    if confidence(report) not in ("proved", "confirmed") and program.expect.get("memory-model") != "tso":
        wrong.append(f"the root cause is {confidence(report)}")
    allowed = program.lines("cause") | program.lines("cause-may")
    seen = set()
    for edge in edges(report):
        for end in ("before", "after"):
            at = places(program, edge[end])
            seen |= at
            if not at & allowed:
                wrong.append(f"the root cause names {shown(innermost(program, edge[end]) or at)} "
                             f"({edge[end].get('op')} {edge[end].get('variable')})")
    about = program.words("about")
    for edge in edges(report):
        said = [edge[end].get("variable") or "" for end in ("before", "after")]
        if about and not any(word in name for word in about for name in said):
            wrong.append(f"the root cause is about {' and '.join(said)}, expected {' or '.join(about)}")
    dsp = report.get("dsp") or {}
    for event in dsp.get("events") or []:
        seen |= places(program, event)
    # A region whose end the run did not come to has no event of its own there.
    for region in dsp.get("atomic_regions") or []:
        seen |= places(program, region["last"])
    for group in program.groups("cause"):
        if not seen & group:
            wrong.append(f"{shown(group)} is in neither the root cause nor the projection")
    return sorted(set(wrong))


def problems_alternate(program, report):
    wanted = program.words("alternate")
    alternate = report.get("alternate") or {}
    if not alternate.get("found"):
        return [] if "no" in wanted else ["no alternate found"]
    if wanted == ["no"]:
        return ["an alternate is claimed where none exists"]
    wrong = []
    if not alternate.get("validated"):
        wrong.append("the alternate is not validated")
    if not alternate.get("path_differs") and "yes" not in wanted:
        wrong.append("the alternate keeps the path, along which nothing avoids the failure")
    return wrong


def problems_hint(program, report):
    """Kind and lines: what it tells people to change must be a place that has to do with the bug."""
    hint = (report.get("dsp") or {}).get("hint") or {}
    wanted = program.words("hint")
    wrong = [] if hint.get("kind") in wanted else [f"hint {hint.get('kind')}, expected {' or '.join(wanted)}"]
    named = hint_lines(program, hint.get("text"))
    allowed = set().union(*(program.lines(k) for k in ("cause", "cause-may", "hint-at", "hint-may", "fails-at",
                                                         "blocked")))
    if named - allowed:
        wrong.append(f"the hint names {shown(named - allowed)}")
    for group in program.groups("hint-at"):
        if not named & group:
            wrong.append(f"the hint does not name {shown(group)}")
    return wrong


def hint_lines(program, text):
    """The program's own lines that a hint names: 'bank.c:12 to 14' is two of them."""
    found = set()
    # A variable may be named after the place of its allocation: heap#2@shared-ptr.cc:25.
    text = re.sub(r"`[^']*'", "", text or "")
    for name, first, last in re.findall(r"([\w.+-]+\.(?:cc?|h)):(\d+)(?: to (\d+))?", text):
        if name in program.sources:
            found |= {(name, int(n)) for n in (first, last) if n}
    return found


def problems(program, report):
    return (problems_failure(program, report) + problems_cause(program, report) +
            problems_alternate(program, report) + problems_hint(program, report))


def explain(program, trace, timeout=300):
    """(report or None, why not, seconds)"""
    status, out, err, seconds = csched("explain", "--json", trace, timeout=timeout)
    report = parse(out)
    if report is None:
        return None, last_line(err) or f"status {status}", seconds
    return report, None, seconds
