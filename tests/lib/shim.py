"""What the recorder's tests share: compiling, running with the shim, finding traces, reporting."""
import glob
import os
import shutil
import subprocess
import sys

ROOT = os.environ.get("ROOT") or os.path.abspath(
    os.path.join(os.path.dirname(__file__), "..", ".."))
LIB = os.environ.get("CSCHED_LIB") or os.path.join(ROOT, "build", "libcsched.so")
CSCHED = os.environ.get("CSCHED") or os.path.join(ROOT, "build", "csched")
TMP = os.environ.get("TEST_TMP") or os.getcwd()
MODE = os.environ.get("MODE", "sync")
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
from trace import Trace  # noqa: E402

failures = 0


def check(what, good, more=""):
    global failures
    print(("ok " if good else "not ok ") + what)
    if not good:
        failures += 1
        if more:
            print("  " + str(more).replace("\n", "\n  "))
    sys.stdout.flush()
    return good


def same(what, want, got):
    return check(what, want == got,
                 "expected: %s\ngot:      %s" % (repr(want)[:500], repr(got)[:500]))


def skip(what, why):
    print("skip %s: %s" % (what, why))


def finish():
    sys.exit(1 if failures else 0)


def compile(source, *flags):
    """Compiles tests/programs-src/SOURCE; returns the program's path."""
    src = os.path.join(ROOT, "tests", "programs-src", source)
    out = os.path.join(TMP, os.path.splitext(os.path.basename(source))[0])
    cxx = source.endswith(".cc")
    subprocess.run(["g++" if cxx else "gcc", "-g", "-O1", "-D_GNU_SOURCE", "-I", ROOT, "-w",
                    "-o", out, src, "-pthread"] + list(flags), check=True)
    return out


class Result:
    def __init__(self, proc, out, err):
        self.status, self.out = proc.returncode, out
        lines = err.decode(errors="replace").splitlines(keepends=True)
        self.said = [l for l in lines if l.startswith("csched: ")]
        self.err = "".join(l for l in lines if not l.startswith("csched: "))
        self.pid = proc.pid
        self.timed_out = False

    def seen(self):
        """What anybody outside can see of the run."""
        return self.status, self.out, self.err


def run(argv, options=None, timeout=120, stdin=None, preload=None, **kw):
    """Runs argv, with the shim when options is a string. TERM after the timeout."""
    env = dict(os.environ)
    env.pop("LD_PRELOAD", None)
    env.pop("CSCHED_OPTIONS", None)
    if options is not None:
        env["LD_PRELOAD"] = preload or LIB
        env["CSCHED_OPTIONS"] = options
    kw.setdefault("cwd", TMP)
    env.update(kw.pop("env", {}))
    p = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL, **kw)
    timed_out = False
    try:
        out, err = p.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        timed_out = True
        p.terminate()
        out, err = p.communicate()
    r = Result(p, out, err)
    r.timed_out = timed_out
    return r


def traces(where=None):
    return sorted(glob.glob(os.path.join(where or TMP, "*.csched")))


def drop_traces(where=None):
    for t in traces(where):
        shutil.rmtree(t, ignore_errors=True)


def only_trace():
    """The one trace that is there, opened; None and a failed check otherwise."""
    found = traces()
    if len(found) != 1:
        check("one trace is left", False, found)
        return None
    return Trace(found[0])


def have(*programs):
    return all(shutil.which(p) for p in programs)
