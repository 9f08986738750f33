# SPDX-License-Identifier: GPL-2.0-or-later
"""What scripts/judge makes of reports: a grade for the cause and for the hint, counts, lines to print."""
import corpus

CAUSE = ("right", "partly", "wrong", "withheld", "none")
HINT = ("right", "wrong", "none")


def cause(program, report):
    """right: nothing to object. withheld: no cause is claimed where there is one, or it is called unconfirmed. partly:
    an end of an edge lies where the cause is. wrong: none does, or a cause where no order is to blame."""
    wrong = [w for w in corpus.problems_cause(program, report) if not w.startswith("the root cause is ")
             or " about " in w]
    if not wrong:
        return "right"
    if not corpus.edges(report) or corpus.confidence(report) == "unconfirmed":
        return "withheld"
    at = set()
    for edge in corpus.edges(report):
        at |= corpus.places(program, edge["before"]) | corpus.places(program, edge["after"])
    return "partly" if at & program.lines("cause") else "wrong"


def hint(program, report):
    if not corpus.problems_hint(program, report):
        return "right"
    kind = ((report.get("dsp") or {}).get("hint") or {}).get("kind")
    return "none" if kind in (None, "none") else "wrong"


class Result:
    """Of one program."""

    def __init__(self, program):
        self.program = program
        self.judged = self.right = 0
        self.causes, self.hints, self.levels, self.seconds = [], [], [], []
        self.prints, self.lines = [], []
        self.holds = self.trial = None

    def no_trace(self, seed, why):
        self.lines.append(f"    run {seed}: no trace: {why}")

    def add(self, seed, trace, report, why, took):
        self.judged += 1
        self.seconds.append(took)
        if report is None:
            self.causes.append("none")
            self.hints.append("none")
            self.levels.append("none")
            self.lines.append(f"    run {seed} ({took:.1f} s): no report: {why}")
            return
        wrong = corpus.problems(self.program, report)
        self.prints.append(report["failure"]["fingerprint"])
        self.causes.append(cause(self.program, report))
        self.hints.append(hint(self.program, report))
        self.levels.append(corpus.confidence(report) or "none")
        self.right += not wrong
        self.lines += [f"    run {seed} ({took:.1f} s): {w}" for w in wrong]
        if wrong:
            said = ((report.get("dsp") or {}).get("hint") or {}).get("text")
            self.lines.append(f"    run {seed} in {trace}, hint: {said}")

    def tried(self, answer, why):
        """What csched hunt --with-fix says."""
        fixes = (answer or {}).get("fixes") or []
        self.holds = bool(answer and answer.get("holds"))
        if not fixes:
            self.lines.append(f"    not tried: {why}")
        for fix in fixes:
            t = fix["tried"]
            self.lines.append(f"    {t['verdict']}: {t['failures']} of {t['runs']} with it, {t['without_failures']} of "
                              f"{t['without_runs']} without: {fix['hint'] or fix['kind']}")
        self.trial = fixes[0]["tried"] if fixes else None

    def fingerprints(self):
        return sorted(set(self.prints))

    def text(self, o):
        name, lines = self.program.name, "".join("\n" + line for line in self.lines)
        if o.fix:
            return f"{name}: {'holds' if self.holds else self.trial['verdict'] if self.trial else 'untried'}{lines}"
        n = len(self.fingerprints())
        grades = f", cause {tally(self.causes)}, hint {tally(self.hints)}, said {tally(self.levels)}" if o.table else ""
        return (f"{name}: {self.right} of {o.runs} right, {n} fingerprint{'s' * (n != 1)} of {len(self.prints)}"
                f"{grades}{lines}")

    def is_bad(self, o):
        if o.fix:
            return not self.holds
        return self.right < (o.runs if o.least is None else o.least) or len(self.fingerprints()) > 1


def tally(words):
    return " ".join(f"{words.count(w)} {w}" for w in sorted(set(words), key=words.index)) or "-"


def mostly(words):
    """What is said of a program: the grade of most of its traces; the worse of two."""
    return max(sorted(set(words), key=CAUSE.index, reverse=True), key=words.count) if words else "none"


def summary(results, o):
    if o.fix:
        could = [r for r in results if r.trial and r.trial["without_failures"] * 100 >= r.trial["without_runs"]]
        return (f"the fix holds for {sum(r.holds for r in results)} of {len(results)} programs; of {len(could)} that fail in "
                f"1 of 100 runs without it, for {sum(r.holds for r in could)}")
    enough = sum(r.right >= (o.runs if o.least is None else o.least) for r in results)
    single = sum(len(r.fingerprints()) == 1 for r in results)
    text = f"{enough} of {len(results)} programs right, {single} with one fingerprint"
    if not o.table:
        return text
    causes = [c for r in results for c in r.causes]
    hints = [h for r in results for h in r.hints]
    programs = [mostly(r.causes) for r in results]
    times = sorted(t for r in results for t in r.seconds)
    return "\n".join([
        text,
        f"causes of {len(causes)} traces: " + ", ".join(f"{causes.count(w)} {w}" for w in CAUSE),
        f"hints: " + ", ".join(f"{hints.count(w)} {w}" for w in HINT),
        f"programs by the grade of most of their traces: " + ", ".join(f"{programs.count(w)} {w}" for w in CAUSE),
        f"median time {times[len(times) // 2] if times else 0:.1f} s, longest {times[-1] if times else 0:.1f} s",
    ])
