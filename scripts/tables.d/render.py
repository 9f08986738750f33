"""The tables as Markdown, readable on a terminal too: two lines per program, theirs and ours."""
import measure as m
import paper
from markdown import table

NONE = "-"


def count(n):
    return NONE if n is None else f"{n:,}"


def seconds(s):
    if s is None:
        return NONE
    if s < 1:
        return f"{s * 1000:.0f}ms"
    return f"{s:.1f}s" if s < 60 else f"{int(s) // 60}m{int(s) % 60}s"


def size(n):
    if n is None:
        return NONE
    for unit in ("B", "K", "M"):
        if n < 1024:
            return f"{n:.0f}{unit}" if unit == "B" or n >= 100 else f"{n:.1f}{unit}"
        n /= 1024
    return f"{n:.1f}G"


def fewer(part, whole):
    return "" if not whole or part is None else f" (-{100 * (whole - part) // whole}%)"


def label(row):
    return row.program.name + (f" ({row.size})" if row.size else "")


def verdict(row):
    text = row.why or "; ".join(row.wrong) or "right"
    return (text if len(text) <= 110 else text[:107] + "...").replace("|", "/")


def overhead(row):
    if row.native_ms is None:
        return NONE
    return (f"{100 * (row.recorded_ms - row.native_ms) / row.native_ms:.0f}% "
            f"({row.native_ms:.0f}->{row.recorded_ms:.0f} ms)")


def log_size(row):
    if not row.trace:
        return NONE
    return f"{size(m.path_bytes(row))} of {size(row.size_bytes)}"


def pair(lines, row, theirs, ours):
    name = next(p for n, s, p in paper.ROWS if n == row.program.name and s == row.size)
    lines.append([label(row), "paper", *theirs[name]])
    lines.append(["", "csched", *ours])


def table_1(rows):
    lines = []
    for r in rows:
        pair(lines, r, paper.TABLE_1, [
            count(m.code_lines(r.program)), count(m.threads(r)), count(m.shared_variables(r)),
            count(m.shared_accesses(r)), overhead(r), log_size(r),
            seconds(m.phase(r, "machine", "symbolic traces")), count(m.stat(r, "constraints")),
            count(m.stat(r, "variables")), seconds(m.phase(r, "failing schedule"))])
    return table(["program", "", "LOC", "threads", "shared vars", "shared accesses", "overhead", "log",
                  "symbolic", "constraints", "variables", "solving"], lines)


def table_2(rows):
    lines = []
    for r in rows:
        e, de = m.stat(r, "events"), m.stat(r, "dsp_events")
        f, df = m.stat(r, "dataflows"), m.stat(r, "dsp_dataflows")
        name = next(p for n, s, p in paper.ROWS if n == r.program.name and s == r.size)
        t = paper.TABLE_2[name]
        lines.append([label(r), "paper", t[0], t[1], t[2] + fewer(int(t[2]), int(t[1])), t[3],
                      t[4] + fewer(int(t[4]), int(t[3])), t[5], ""])
        lines.append(["", "csched", count(m.stat(r, "pairs_tried")), count(e), count(de) + fewer(de, e),
                      count(f), count(df) + fewer(df, f), count(m.to_grok(r)), verdict(r)])
    return table(["program", "", "alt. pairs", "events", "in DSP", "dataflows", "in DSP", "to grok",
                  "cause and alternate"], lines)


def table_3(rows):
    lines = []
    for r in rows:
        before, after = m.switches(r)
        pair(lines, r, paper.TABLE_3, [count(before), count(after),
                                       seconds(m.phase(r, "fewer switches"))])
    return table(["program", "", "switches", "after CSR", "time (solver calls)"], lines)


def table_others(rows):
    lines = []
    for r in rows:
        hunt = r.hunt or {}
        e, de = m.stat(r, "events"), m.stat(r, "dsp_events")
        before, after = m.switches(r)
        lines.append([label(r), r.program.expect["kind"], count(m.threads(r)),
                      count(hunt.get("first_run")) if hunt.get("first_run") else NONE,
                      seconds(hunt.get("first_seconds")) if hunt.get("first_run") else NONE,
                      overhead(r), count(e), count(de) + fewer(de, e),
                      f"{count(before)} -> {count(after)}", seconds(r.explain_seconds), verdict(r)])
    return table(["program", "fails by", "threads", "hunt: runs", "time", "overhead", "events", "in DSP",
                  "switches", "explain", "cause and alternate"], lines)


def average(values):
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def summary(rows):
    """Averages over the rows that have an alternate: a projection of nothing is no achievement."""
    rows = [r for r in rows if m.alternate_found(r)]

    def less(part, whole):
        p, w = part, whole
        return None if not w or p is None else 100 * (w - p) / w
    e = average([less(m.stat(r, "dsp_events"), m.stat(r, "events")) for r in rows])
    f = average([less(m.stat(r, "dsp_dataflows"), m.stat(r, "dataflows")) for r in rows])
    c = average([less(b, a) for a, b in map(m.switches, rows)])
    figures = [("fewer events in the DSP", e, 90), ("fewer dataflows", f, 96),
               ("fewer context switches", c, 63)]
    return "; ".join(f"{what}: {'-' if v is None else f'{v:.0f}%'} (paper {p}%)"
                     for what, v, p in figures)


def left(rows):
    """What a person has to look at: shares of a schedule do not tell, when fewer events are in it to begin with."""
    rows = [r for r in rows if m.alternate_found(r)]
    figures = [("events", lambda r: m.stat(r, "dsp_events"), paper.TABLE_2, 2),
               ("dataflows", lambda r: m.stat(r, "dsp_dataflows"), paper.TABLE_2, 4),
               ("context switches", lambda r: m.switches(r)[1], paper.TABLE_3, 1)]
    text = "Left to look at, on average: " + "; ".join(
        f"{average([ours(r) for r in rows]) or 0:.1f} {what} (paper "
        f"{average([int(theirs[paper_name(r)][at]) for r in rows]) or 0:.1f})" for what, ours, theirs, at in figures)
    return f"{text}. All rows taken together: {together(rows, 'events', 1)} fewer events, " \
           f"{together(rows, 'dataflows', 3)} fewer dataflows"


def together(rows, what, at):
    """The share of all rows' events, ours and the paper's (its columns at and at + 1): a row of three events has no weight."""
    ours = [(m.stat(r, "dsp_" + what) or 0, m.stat(r, what) or 0) for r in rows]
    theirs = [(int(paper.TABLE_2[paper_name(r)][at + 1]), int(paper.TABLE_2[paper_name(r)][at])) for r in rows]

    def less(pairs):
        part, whole = map(sum, zip(*pairs)) if pairs else (0, 0)
        return f"{100 * (whole - part) / whole:.1f}%" if whole else "-"
    return f"{less(ours)} (paper {less(theirs)})"


def behind(rows, rest):
    """Sentences about where the paper's figures are better, and what is not right."""
    out = []
    slower = [label(r) for r in rows if r.native_ms and
              100 * (r.recorded_ms - r.native_ms) / r.native_ms >
              float(paper.TABLE_1[paper_name(r)][4].rstrip("%"))]
    if slower:
        out.append("Recording costs more than the paper's instrumented builds on " + ", ".join(slower) +
                   ". The figure is the whole run's wall time, start-up included; what part start-up has in "
                   "it was not measured.")
    larger = [label(r) for r in rows if (m.stat(r, "dsp_events") or 0) > int(paper.TABLE_2[paper_name(r)][2])]
    if larger:
        out.append("The projection has more events than the paper's on " + ", ".join(larger) + ".")
    if any(r.trace for r in rows):
        out.append("Logs are larger throughout: a trace holds the memory snapshot and every system call's "
                   "effect, so that nothing else is needed later; the path alone is the first figure.")
    wrong = [f"{label(r)} ({verdict(r)})" for r in rows + rest if verdict(r) != "right"]
    if wrong:
        out.append("Not right or not finished: " + "; ".join(wrong) + ".")
    return out


def paper_name(row):
    return next(p for n, s, p in paper.ROWS if n == row.program.name and s == row.size)


def everything(rows, rest, machine, took):
    right = sum(verdict(r) == "right" for r in rows + rest)
    parts = ["# Benchmarks", f"Written by `make tables` (scripts/tables --write). {machine}; took {seconds(took)}.",
             "*paper*: Symbiosis (TOSEM 2016), as published, on its authors' machines and with their programs; "
             "*csched*: programs of the same shape from tests/corpus/, recorded unmodified, shared accesses found "
             "automatically, failures found by `csched hunt`, no planted sleeps.",
             f"Cause and alternate as written down in `expect`: {right} of {len(rows) + len(rest)} rows. {summary(rows)}. "
             f"{left(rows)}."]
    if rows:
        parts += ["## Table I: benchmarks and performance",
                  "Overhead: wall time of the whole run, start-up included, median of 5. Log: path bytes of whole trace. "
                  "Symbolic: following the run and extracting the symbolic traces. Variables and accesses: those in the "
                  "window that was solved.", table_1(rows),
                  "## Table II: differential schedule projections", table_2(rows),
                  "## Table III: context switch reduction", table_3(rows)]
    if rest:
        parts += ["## The programs the paper leaves out", table_others(rest)]
    worse = behind(rows, rest)
    parts += ["## Where we are behind", "\n".join("- " + w for w in worse) or "Nowhere measured here."]
    return "\n\n".join(parts)
