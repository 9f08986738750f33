"""What the tests of csched debug share: gdb in batch mode on a trace, and a client of the remote protocol."""
import hashlib
import os
import random
import re
import shutil
import socket
import subprocess
import time

import corpus
from shim import CSCHED, TMP, check

GDB = shutil.which("gdb")


def failing(name):
    """A failing trace of a corpus program, and the report of it."""
    program = corpus.Program(name)
    why = None
    for seed in range(1, 4):
        trace, why, _ = corpus.get_trace(program, os.path.join(TMP, f"{name}{seed}"), 60, seed=seed)
        if not trace:
            continue
        status, out, _, _ = corpus.csched("explain", "--json", trace)
        report = corpus.parse(out)
        if status == 0 and report:
            return trace, report
    check(f"{name}: a failing trace that is explained", False, why)
    return None, None


def debug(trace, *commands, args=(), gdb=()):
    words = [w for c in commands for w in ("-ex", c)]
    p = subprocess.run([CSCHED, "debug", *args, trace, "--", "-nx", "-batch", *gdb, *words], capture_output=True,
                       text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=300)
    return p.stdout + p.stderr


def registers(text, mark):
    """What `info registers` printed behind this mark."""
    part = text.split(mark, 1)[1].split("END", 1)[0] if mark in text else ""
    return re.findall(r"^(\w+) +(0x[0-9a-f]+)", part, re.M)


class Client:
    """A client of the remote protocol, on a socket of csched debug --listen."""

    def __init__(self, trace, name, *args):
        self.path = os.path.join(TMP, name)
        self.process = subprocess.Popen([CSCHED, "debug", *args, "--listen", self.path, trace], stderr=subprocess.PIPE,
                                        stdin=subprocess.DEVNULL)
        for _ in range(1200):
            if os.path.exists(self.path) or self.process.poll() is not None:
                break
            time.sleep(0.1)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(self.path)
        self.socket.settimeout(120)
        self.buffer = b""

    def send(self, body):
        self.socket.sendall(b"$%s#%02x" % (body, sum(body) & 255))

    def read(self):
        while not (m := re.search(rb"\$([^#]*)#..", self.buffer)):
            more = self.socket.recv(65536)
            if not more:
                return None
            self.buffer += more
        self.buffer = self.buffer[m.end():]
        self.socket.sendall(b"+")
        return m.group(1)

    def ask(self, body):
        self.send(body)
        return self.read()

    def monitor(self, line):
        """Its lines, and OK."""
        self.send(b"qRcmd," + line.encode().hex().encode())
        text = ""
        while (answer := self.read()) not in (None, b"OK", b""):
            text += bytes.fromhex(answer[1:].decode()).decode()
        return text

    def threads(self):
        return self.ask(b"qfThreadInfo")[1:].split(b",")

    def state(self):
        """A hash of every thread's registers and of what lies at their stack pointers."""
        h = hashlib.sha256()
        for t in self.threads():
            self.ask(b"Hg" + t)
            regs = self.ask(b"g")
            sp = int.from_bytes(bytes.fromhex(regs[7 * 16:8 * 16].decode()), "little")
            h.update(t + regs + self.ask(b"m%x,200" % sp))
        return h.hexdigest()

    def when(self):
        """(instruction, of how many)"""
        return tuple(map(int, re.search(r"instruction (\d+) of the \w+'s (\d+)", self.monitor("when")).groups()))

    def end(self):
        self.socket.close()
        self.process.stderr.read()
        return self.process.wait(60)


def random_moves(c, moves, seed=4):
    """How many places were reached again, and those that looked otherwise then than the first time."""
    rng = random.Random(seed)
    c.ask(b"?")
    c.monitor("goto end")
    end = c.when()[0]
    seen, again, bad = {}, 0, []
    threads = c.threads()
    marks = [rng.randrange(end) for _ in range(moves // 8 + 1)]
    for i in range(moves):
        how = rng.randrange(5)
        if how == 0:
            c.monitor("mark m%d" % i)
            c.ask(b"?")
        elif how == 1 and i:
            c.monitor("goto m%d" % rng.randrange(i))
        elif how == 2:
            c.ask(b"Hc" + rng.choice(threads))
            c.ask(rng.choice([b"bs", b"s"]))
        elif how == 3:
            c.monitor("goto T0:%d" % rng.choice(marks))
        else:
            c.ask(b"vCont;s:" + rng.choice(threads) + b";c")
        at, now = c.when()[0], c.state()
        if at in seen:
            again += 1
            if seen[at] != now:
                bad.append(at)
        seen[at] = now
    return again, bad
