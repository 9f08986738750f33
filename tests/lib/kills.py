# SPDX-License-Identifier: GPL-2.0-or-later
"""SIGKILL for a command that keeps what it knows in files: again and again, each time at another instant after it wrote one."""
import os
import random
import subprocess
import time

MOST_SECONDS = 100  # until it writes


def identity(path):
    """Another one when the file was written anew: it is replaced, not changed."""
    try:
        s = os.stat(path)
        return s.st_ino, s.st_mtime_ns, s.st_size
    except FileNotFoundError:
        return None


def kill_after_writes(command, path, writes, rng=random.Random(7), **kw):
    """Kills the command after so many writes of the file and up to 20 ms; False: it ended before that."""
    p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, **kw)
    seen, until = identity(path), time.monotonic() + MOST_SECONDS
    while writes and p.poll() is None and time.monotonic() < until:
        now = identity(path)
        writes -= now != seen
        seen = now
        time.sleep(0.0005)
    time.sleep(rng.random() * 0.02)
    ended = p.poll() is not None
    p.kill()
    p.wait()
    return not ended
