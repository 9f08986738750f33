"""What the benchmarks of csched testgen and reproduce share: classes with their bugs, a run of either command, and a section of
BENCHMARKS.md (with TESTGEN_WRITE=1)."""
import json
import os
import statistics
import subprocess
import time

ROOT, CSCHED, TMP = os.environ["ROOT"], os.environ["CSCHED"], os.environ.get("BENCH_TMP", ".")
SOURCE = os.path.join(ROOT, "tests", "testgen-src")
SECONDS = os.environ.get("TESTGEN_SECONDS", "10")


def classes_of(folder=""):
    """Sources of a folder of tests/testgen-src, with the folder."""
    return sorted(os.path.join(folder, f) for f in os.listdir(os.path.join(SOURCE, folder)) if f.endswith((".c", ".cc")))


def build(source, fixed=False):
    name, end = os.path.splitext(os.path.basename(source))
    out = os.path.join(TMP, "lib%s%s.so" % (name, "-fixed" if fixed else ""))
    if not os.path.exists(out):
        subprocess.run(["g++" if end == ".cc" else "gcc", "-g", "-O0", "-w", "-fPIC", "-shared", "-pthread", "-o", out,
                        os.path.join(SOURCE, source)] + (["-DFIXED"] if fixed else []), check=True)
    return out


def csched(command, library, *args):
    p = subprocess.run([CSCHED, command, "--json", "--no-explain", "-o", os.path.join(TMP, "out"), *args, library],
                       capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return json.loads(p.stdout) if p.stdout else {"error": p.stderr.strip()}


def mean(values):
    return "%.2f" % statistics.mean(values) if values else "-"


lines = []


def say(text=""):
    """A line of a table: shown at once, and kept for BENCHMARKS.md."""
    print(text, flush=True)
    lines.append(text.rstrip())


def write(name, title):
    """Each section is behind a mark of its own; what others wrote stays."""
    table = "\n".join(lines).strip("\n")
    del lines[:]
    if not os.environ.get("TESTGEN_WRITE"):
        return
    path, begin = os.environ.get("TESTGEN_FILE", os.path.join(ROOT, "BENCHMARKS.md")), "<!-- from here on: scripts/bench "
    with open("/proc/cpuinfo") as f:
        cpu = next((x.split(":", 1)[1].strip() for x in f if x.startswith("model name")), "unknown CPU")
    commit = subprocess.run(["git", "-C", os.path.dirname(os.path.abspath(__file__)), "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    text = "%s%s -->\n## %s\n\nWritten by `make bench BENCH=%s` with TESTGEN_WRITE=1. %s, %d cores, load average %.1f of other work included; " \
           "csched %s; %s UTC.\n\n```\n%s\n```\n" % (
               begin, name, title, name.split()[0], cpu, os.cpu_count(), os.getloadavg()[1], commit or "no commit",
               time.strftime("%Y-%m-%d %H:%M", time.gmtime()), table)
    with open(path) as f:
        parts = f.read().split(begin)
    others = [parts[0].rstrip("\n")] + [begin + p.rstrip("\n") for p in parts[1:] if not p.startswith(name + " ")]
    with open(path, "w") as f:
        f.write("\n\n".join(others + [text.rstrip("\n")]) + "\n")
