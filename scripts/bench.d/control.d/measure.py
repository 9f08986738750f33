"""Hunting and enforcing measured, one program at a time. Nothing takes longer than its bound."""
import glob
import json
import os
import random
import shutil
import subprocess
import threading
import time

ROOT, CSCHED, TMP = os.environ["ROOT"], os.environ["CSCHED"], os.environ["BENCH_TMP"]
CORPUS, BUILD = ROOT + "/tests/corpus", os.environ.get("BUILD", ROOT + "/build") + "/corpus"


def number(name, default):
    return type(default)(os.environ.get(name, default))


RUNS = number("CONTROL_RUNS", 1000)         # of one cell
AUTO = number("CONTROL_AUTO", 60.0)         # seconds for the default strategy: the aim
SECONDS = number("CONTROL_SECONDS", 2.0)    # for each other cell
STILL = 1.0                                 # a native run that takes longer stands still: they take milliseconds
ENFORCE = number("CONTROL_ENFORCE", 100)    # runs of each order
ORDER = number("CONTROL_ORDER", 12.0)       # seconds for each order
EXPLAIN = number("CONTROL_EXPLAIN", 30.0)   # seconds for the explanations of one program
STRATEGIES = os.environ.get("CONTROL_STRATEGIES",
                            "auto native sync site demote meet pct sample shared").split()
QUIET = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def expect(name):
    keys = {}
    with open(f"{CORPUS}/{name}/expect") as f:
        for line in f:
            key, _, value = line.partition(":")
            keys[key.strip()] = value.strip()
    return keys


def programs():
    """Those that do not fail every time, with their arguments."""
    for path in sorted(glob.glob(CORPUS + "/*/expect")):
        name = path.split("/")[-2]
        keys = expect(name)
        if keys.get("hunt") != "no":
            yield name, [f"{BUILD}/{name}"] + keys.get("args", "").replace("{BUILD}", BUILD).split()


def cell(found, runs, seconds):
    return {"found": found, "runs": runs, "seconds": round(seconds, 2)}


def native(argv):
    """Nothing but the program, two at a time; a run that stands still counts as a failure."""
    begin, runs, jobs = time.monotonic(), 0, []
    try:
        while True:
            while len(jobs) < 2:
                jobs.append((subprocess.Popen(argv, **QUIET), time.monotonic()))
            now = time.monotonic()
            for job, since in list(jobs):
                if job.poll() is None and now - since < STILL:
                    continue
                jobs.remove((job, since))
                runs += 1
                if job.poll() is None or job.returncode != 0:
                    job.kill()
                    job.wait()
                    return cell(True, runs, time.monotonic() - begin)
            if runs >= RUNS or now - begin > SECONDS:
                return cell(False, runs, now - begin)
            time.sleep(0.0005)
    finally:
        for job, _ in jobs:
            job.kill()
            job.wait()


def hunt(argv, strategy, out):
    """The cell, and the trace of the failure or None."""
    limit = AUTO if strategy == "auto" else SECONDS
    shutil.rmtree(out, ignore_errors=True)
    command = [CSCHED, "hunt", "--json", "--no-explain", "--runs", str(RUNS), "--time", str(limit),
               "--seed", str(random.randrange(1 << 30)), "--strategy", strategy, "--out", out, "--"]
    try:
        done = subprocess.run(command + argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=limit * 3 + 60)
        a = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return cell(False, 0, limit), None
    if not a.get("trace"):
        return cell(False, a["runs"], a["seconds"]), None
    return cell(True, a["first_run"], a["first_seconds"]), a["trace"]


def hunting(name, argv):
    """A row of the first table, and traces of failures, the default strategy's first."""
    row, traces = {}, []
    for strategy in STRATEGIES:
        if strategy == "native":
            row[strategy] = native(argv)
            continue
        row[strategy], trace = hunt(argv, strategy, f"{TMP}/{name}.{strategy}")
        if trace:
            traces.append(trace)
    return row, traces


def race(name):
    """Each of two threads does one thing, once: natively they hardly ever meet."""
    program = f"{TMP}/{name}"
    subprocess.run(["cc", "-O1", "-g", "-pthread", "-o", program,
                    f"{ROOT}/tests/program/hunt.d/{name}.c"], check=True)
    failed = sum(subprocess.run([program], **QUIET).returncode != 0 for _ in range(RUNS))
    return {"native": failed, "runs": RUNS, "auto": hunt([program], "auto", f"{TMP}/{name}.races")[0]}


def explained(traces):
    """The first of three failing runs that can be explained, and None; or the first one and why not."""
    best, why, until = traces[0], "no reason given", time.monotonic() + EXPLAIN
    for trace in traces[:3]:
        patience = until - time.monotonic()
        if patience < 1:
            break
        try:
            done = subprocess.run([CSCHED, "explain", trace], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True, timeout=patience)
            why = (done.stderr.strip().splitlines() or [why])[-1]
        except subprocess.TimeoutExpired:
            why = f"explain took longer than {EXPLAIN:.0f} s"
        else:
            if done.returncode == 0:
                return trace, None
    return best, why


def enforce(trace, argv, alternate):
    command = [CSCHED, "replay", "--native", "--json", "-n", str(ENFORCE), "--limit", "20", "--time", str(ORDER)]
    command += (["--alternate"] if alternate else []) + [trace, "--"] + argv
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=10 * ORDER + 60)
        a = json.loads(done.stdout)
        return {k: a[k] for k in ("runs", "failures", "same_failure", "diverged", "seconds")}
    except (subprocess.TimeoutExpired, ValueError):
        return None


def seconds_of(argv, n=10):
    """Median wall seconds of a run without anything; None: all of them stood still."""
    times = []
    for _ in range(n):
        begin = time.monotonic()
        child = subprocess.Popen(argv, **QUIET)
        # wait(timeout=) looks in ever longer steps: it would round the time up.
        limit = threading.Timer(STILL, child.kill)
        limit.start()
        child.wait()
        limit.cancel()
        if time.monotonic() - begin < STILL:
            times.append(time.monotonic() - begin)
    return sorted(times)[len(times) // 2] if times else None


def enforcing(argv, traces):
    """A row of the second table."""
    if not traces:
        return {"why": "no failing run to enforce"}
    trace, why = explained(traces)
    if why:
        return {"why": "not explained: " + why}
    failing = enforce(trace, argv, False)
    if not failing or not failing["runs"]:
        return {"why": "no schedule, or enforcing took too long"}
    alone = seconds_of(argv)
    cost = round(failing["seconds"] / failing["runs"] / alone, 1) if alone else None
    return {"failing": failing, "alternate": enforce(trace, argv, True), "cost": cost}
