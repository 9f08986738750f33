# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports speak of what the user wrote: programs of tests/programs-src/names are hunted in, and every format is looked at."""
import json
import os
import re
import subprocess
import corpus
from shim import ROOT, TMP, check, same

SOURCES = os.path.join(ROOT, "tests", "programs-src", "names")
INTERNAL = [
    r"\b_M_", r"_S_", r"\bstd::__", r"\b__gthread", r"operator\(\)", r"\{lambda", r"\b_Z[NKSLTVI0-9]",  # C++
    r"\b_R[NIMXYC][A-Za-z]", r"\bcore::", r"sync::poison", r"std::sys\b", r"futex\.v\b", r"\{closure",  # Rust
    r"\b__atomic_", r"\b__shared_", r"\bmalloc\.c:", r"_omp_fn", r"\+0x[0-9a-f]",
]


def build(name, *flags, out=None):
    source = next(n for n in os.listdir(SOURCES) if n.startswith(name + "."))
    out = os.path.join(TMP, out or name)
    compiler = {"c": ["gcc", "-g", "-O1", "-pthread"], "cc": ["g++", "-g", "-O1", "-pthread"],
                "rs": ["rustc", "-g", "-O"]}[source.split(".")[1]]
    subprocess.run([*compiler, "-o", out, os.path.join(SOURCES, source), *flags], check=True)
    return out


def words_of(value, keys=("function", "variable", "name", "text", "file")):
    """Every string of a JSON answer that names something of the program."""
    if isinstance(value, dict):
        for k, v in value.items():
            if isinstance(v, str) and k in keys:
                yield v
            elif k != "attempts":
                yield from words_of(v, keys)
    elif isinstance(value, list):
        for v in value:
            yield from words_of(v, keys)


def internals(text):
    text = re.sub(r"heap#\d+\+0x[0-9a-f]+", "heap", text)  # our own: memory of the heap whose type nobody knows
    return sorted({m.group(0) for pattern in INTERNAL for m in re.finditer(pattern, text)})


def spoken(name, command, *wanted, hunt=()):
    """Hunts, and looks at each format; wanted: what the terminal's report has to say."""
    where = os.path.join(TMP, "of-" + name)
    os.makedirs(where, exist_ok=True)
    status, out, err, _ = corpus.csched("hunt", "--no-try", "--json", "--out", where, "--time", "60", *hunt, "--", *command, timeout=300)
    found = corpus.traces_in(where)
    if not check(f"{name}: a failure is found", status == 0 and found, err):
        return
    trace = found[-1]
    for option in ("--color=never", "--markdown", "--html", "--dot", "--sarif"):
        page = os.path.join(TMP, name + option.replace("=", ""))
        to_file = option in ("--html", "--dot", "--sarif")
        text = corpus.csched("explain", option + "=" + page if to_file else option, trace)[1]
        if to_file:
            text = open(page).read() if os.path.exists(page) else ""
            text = re.sub(r"<script.*?</script>|<style.*?</style>", "", text, flags=re.S)
        # What the assumptions say of a library without lines is about that library.
        text = "\n".join(l for l in text.splitlines() if "no debug information" not in l)
        check(f"{name} {option}: there is a report", len(text) > 100, text)
        same(f"{name} {option}: user-level names only", [], internals(text))
        if option == "--color=never":
            flat = re.sub(r"\s+", " ", text)
            for pattern in wanted:
                check(f"{name}: says {pattern}", re.search(pattern, flat), text)
    answer = json.loads(corpus.csched("explain", "--json", trace)[1])
    said = {k: answer[k] for k in ("dsp", "root_cause", "failure", "schedule") if k in answer}
    same(f"{name} JSON: user-level names only", [], internals("\n".join(words_of(said))))
