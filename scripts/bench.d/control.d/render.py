"""The results as Markdown, and their place in BENCHMARKS.md."""
import os

from markdown import table

MARK = "<!-- from here on: scripts/bench control -->"


def cell(c):
    if not c:
        return "not measured"
    if c["found"]:
        return f"{c['runs']} ({c['seconds']:.1f} s)"
    return f"no: {c['runs']} runs, {c['seconds']:.0f} s"


def order(r, key, wanted):
    if not r:
        return ["none", "-"]
    cut = "" if r["runs"] >= wanted else " (time)"
    return [f"{r[key]}/{r['runs']}{cut}", r["diverged"]]


def enforced(name, e, wanted):
    if e.get("why"):
        return [name, e["why"].replace("|", "/")[:100], "-", "-", "-", "-"]
    return ([name] + order(e["failing"], "same_failure", wanted) + order(e["alternate"], "failures", wanted) +
            [f"{e['cost']:.1f}" if e["cost"] else "-"])


def misses(rows, wanted):
    """Rows that miss the aim, in words."""
    out = []
    for name in sorted(rows):
        auto, e = rows[name]["hunting"].get("auto"), rows[name].get("enforcing")
        if auto and not auto["found"]:
            out.append(f"{name}: not found by the default strategy")
        if not e:
            continue
        if e.get("why"):
            out.append(f"{name}: {e['why'][:100]}")
            continue
        if e["failing"]["same_failure"] < e["failing"]["runs"]:
            out.append(f"{name}: failing order {order(e['failing'], 'same_failure', wanted)[0]}")
        if not e["alternate"]:
            out.append(f"{name}: no alternate to enforce")
        elif e["alternate"]["failures"]:
            out.append(f"{name}: alternate order {order(e['alternate'], 'failures', wanted)[0]}")
    return out


def everything(results, machine, m):
    rows, races = results["rows"], results["races"]
    parts = ["## Hunting and enforcing",
             f"Written by `make bench BENCH=control` with CONTROL_WRITE=1. {machine}."]
    if races:
        parts += ["### Two-thread races that no pthread call separates",
                  "Failures of native runs; runs (and seconds) of `csched hunt` to the first failure.",
                  table(["program", "native", "hunt"],
                        [[n, f"{r['native']} of {r['runs']}", cell(r["auto"])] for n, r in sorted(races.items())])]
    if rows:
        parts += ["### To the first failure",
                  f"Runs (and seconds). At most {m.RUNS} runs or {m.SECONDS:.0f} s, *auto*, the default strategy, "
                  f"{m.AUTO:.0f} s; *no*: not found, and what it had. *native* is the program alone, two at a time.",
                  table(["program"] + m.STRATEGIES,
                        [[n] + [cell(rows[n]["hunting"].get(s)) for s in m.STRATEGIES] for n in sorted(rows)] +
                        [["found"] + [sum(bool(r["hunting"].get(s, {}).get("found")) for r in rows.values())
                                      for s in m.STRATEGIES]])]
        lines = [enforced(n, rows[n]["enforcing"], m.ENFORCE) for n in sorted(rows) if rows[n].get("enforcing")]
        if lines:
            parts += ["### Enforced on the real program",
                      f"Of {m.ENFORCE} runs: failures as recorded in the failing order, failures in the alternate, runs that "
                      f"went another way; *(time)*: {m.ORDER:.0f} s were over first. Cost: seconds of an enforced run as "
                      "a ratio to native.",
                      table(["program", "failing", "other way", "alternate", "other way", "cost"], lines)]
        bad = misses(rows, m.ENFORCE)
        parts += ["### Misses the aim", "\n".join("- " + b for b in bad) or "None of what was measured here."]
    return "\n\n".join(parts)


def write(root, text):
    path = os.path.join(root, "BENCHMARKS.md")
    with open(path) as f:
        before, _, after = f.read().partition(MARK)
    # Other benchmarks' sections follow.
    _, mark, rest = after.partition("<!-- from here on: ")
    with open(path, "w") as f:
        f.write(f"{before.rstrip()}\n\n{MARK}\n{text.rstrip()}\n" + (f"\n{mark}{rest}" if mark else ""))
