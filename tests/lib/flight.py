"""For tests of the flight recorder: its programs (tests/program/ring.d), its epochs, replay from one of them."""
import os
import re
import subprocess
from shim import CSCHED, ROOT, TMP, check


def build(name):
    out = os.path.join(TMP, name)
    subprocess.run(["gcc", "-g", "-O1", "-pthread", "-Wall", "-Wextra", "-o", out,
                    os.path.join(ROOT, "tests", "program", "ring.d", name + ".c")], check=True)
    return out


def epochs(trace):
    """Those that can be read from their beginning."""
    return sorted(int(m.group(1)) for m in (re.match(r"e(\d+)\.memory$", f) for f in os.listdir(trace)) if m)


def csched(*args, timeout=100):
    p = subprocess.run([CSCHED, *args], capture_output=True, text=True, timeout=timeout)
    return p.returncode, p.stdout + p.stderr


def size(trace):
    return sum(os.path.getsize(os.path.join(trace, f)) for f in os.listdir(trace))


def exactly(what, trace, epoch):
    status, out = csched("replay", "--epoch", str(epoch), trace)
    check("%s is followed exactly from epoch %d" % (what, epoch), status == 0 and "exact      yes" in out, out)
