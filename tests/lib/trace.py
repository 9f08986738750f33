"""A small independent reader of traces, for tests of the recorder.

It shares no code with csched: what both agree on is more likely to be right.
    t = Trace(path); t.threads; t.sync(0); t.failure; t.end; t.kv
Raises ValueError with a place for anything that is not as trace_format.h says.
"""
import collections
import itertools
import os
import re
import struct

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
HEADER = "".join(open(os.path.join(ROOT, "common", name)).read() for name in ("trace_format.h", "trace_path_format.h"))
MASK = (1 << 64) - 1
VERSION = int(re.search(r"#define TRC_VERSION (\d+)", HEADER).group(1))


def enum(name):
    """Values of an enum in the header, by name."""
    body = re.search(r"enum %s \{(.*?)\}" % name, HEADER, re.S).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    value, out = 0, {}
    for item in body.split(","):
        m = re.match(r"\s*(\w+)\s*(?:=\s*(\d+))?\s*$", item)
        if m:
            value = int(m.group(2)) if m.group(2) else value
            out[m.group(1)] = value
            value += 1
    return out


TYPE = enum("trc_type")
OP = enum("trc_op")
AT = enum("trc_at")
KIND = enum("trc_failure_kind")
OP_NAME = {v: k[7:] for k, v in OP.items()}
AT_NAME = {v: k[7:] for k, v in AT.items()}
KIND_NAME = {v: k[9:] for k, v in KIND.items()}
OPEN = 0xFFFFFFFF
LIVE, MOVED, FREE = 1, 2, 3  # enum trc_place
SYNC_SIZE = 48

Sync = collections.namedtuple("Sync", "op at tsc object site result thread value")
Failure = collections.namedtuple(
    "Failure", "kind thread signal code status address regs text detail")
Blocked = collections.namedtuple("Blocked", "thread op cycle object site owner owner_site")
Thread = collections.namedtuple("Thread", "thread parent ordinal tid tsc pthread")


def checksum(data):
    k = 0x9E3779B97F4A7C15
    n = len(data)
    h = [n, n ^ k, ~n & MASK, k]
    data = data + b"\0" * (-n % 64)
    for at in range(0, len(data), 64):
        w = struct.unpack_from("<8Q", data, at)
        for i in range(4):
            v = (h[i] ^ w[2 * i]) * (k ^ w[2 * i + 1])
            h[i] = (v ^ v >> 64) & MASK
    s = h[0]
    for i in (1, 2, 3):
        s = ((s ^ h[i]) * k + (s >> 32)) & MASK
    return s


STREAM = {"process": 1, "rec": 2, "path": 3, "frags": 4, "memory": 5, "final": 6}


def own_stream(path):
    """(stream, thread) that a file is named after."""
    number = re.match(r"t(\d+)\.", os.path.basename(path))
    return STREAM[os.path.basename(path).split(".")[-1]], int(number.group(1)) if number else 0


def index(path):
    """A file's bytes and, for each (stream, thread) that it holds, (sealed and open chunks, {sequence: live chunk})."""
    data = open(path, "rb").read() if os.path.exists(path) else b""
    own, process, streams = own_stream(path), os.path.basename(path) == "process", {}
    at = 0
    while at < len(data):
        if len(data) - at < 64:
            raise ValueError("%s: %d bytes left at %d" % (path, len(data) - at, at))
        magic, version, stream, owner, sequence, capacity, pos, hsum, length, place, csum, _ = \
            struct.unpack_from("<QHHIIIQQIIQQ", data, at)
        if magic == 0:
            break  # allocated, killed before the header was written
        if magic != 0x6B6E686368637363 or not 1 <= version <= VERSION:
            raise ValueError("%s: bad chunk at %d" % (path, at))
        chunk = (sequence, pos, capacity if length == OPEN else length, length == OPEN, csum, at + 64)
        at += 64 + capacity
        if place == MOVED or (place == FREE and version >= 8 and process):
            continue
        if hsum != checksum(data[at - 64 - capacity:at - 32 - capacity]):
            if hsum == 0:
                break
            raise ValueError("%s: bad header checksum at %d" % (path, at))
        if (stream, owner) != own and (version < (8 if owner else 6) or not process):
            raise ValueError("%s: a chunk of stream %d at %d" % (path, stream, at))
        found, live = streams.setdefault((stream, owner), ([], {}))
        if place == LIVE:  # live chunks lie before their predecessors
            live[sequence] = chunk
        elif at < len(data) or sequence not in live:  # else a copy that was being made
            found.append(chunk)
    return data, streams


def chunks(path, check, host=None):
    """Yields (payload, is_open) in order. What the process stream's file (host: its index) holds of others is theirs."""
    own = own_stream(path)
    files = [(path, None)]
    if own[0] in (2, 3, 4):
        files.insert(0, (os.path.join(os.path.dirname(path), "process"), host))
    elif host:
        files = [(path, host)]
    expected = start = 0
    for file, known in files:
        data, streams = known or index(file)
        found, live = streams.get(own, ([], {}))
        for sequence, pos, used, is_open, csum, at in sorted(found + list(live.values())):
            if sequence != expected or pos != start:
                raise ValueError("%s: chunk %d at %d where %d at %d was expected" %
                                 (file, sequence, pos, expected, start))
            payload = data[at:at + used]
            if not is_open and check and checksum(payload) != csum:
                raise ValueError("%s: bad checksum in chunk %d" % (file, sequence))
            yield payload, is_open
            expected += 1
            start += used


def records(path, check=True, host=None):
    """Yields (type, flags, bytes) of a record stream."""
    for payload, is_open in chunks(path, check, host):
        at = 0
        while at < len(payload):
            head, flags, size = struct.unpack_from("<HHI", payload, at)
            if head == 0:
                if not is_open:
                    raise ValueError("%s: a hole in a sealed chunk" % path)
                break
            if size < 8 or size % 8 or at + size > len(payload):
                raise ValueError("%s: record of %d bytes at %d" % (path, size, at))
            yield head, flags, payload[at:at + size]
            at += size


def slot_of(size, record):
    """The number of an operation that may be repeated, or None."""
    return struct.unpack_from("<I", record, SYNC_SIZE)[0] if size >= SYNC_SIZE + 8 else None


def again_slots(first, record):
    """Slots of a TRC_AGAINS record: the first, and one less than each byte behind its head."""
    return [first] + [byte - 1 for byte in record[8:].rstrip(b"\0")]


def again_run(payload, at, window, size):
    """Slots of the TRC_AGAIN records of so many bytes from `at` on, at most window of them."""
    part = payload[at:at + size * window]
    heads = memoryview(part[:len(part) // size * size]).cast("Q")[::size // 8].tolist()
    first = TYPE["TRC_AGAIN"] | size << 32  # less the flags
    return [h >> 16 & 0xFFFF for h in itertools.takewhile(lambda h: h & ~0xFFFF0000 == first, heads)]


def sync_flags(path, host=None):
    """Flags of all sync events of a thread's stream, quickly: most are repetitions."""
    head, named = struct.Struct("<HHI").unpack_from, {}
    for payload, is_open in chunks(path, False, host):
        at, end, window = 0, len(payload), 64
        while at < end:
            kind, flags, size = head(payload, at)
            if kind == 0 and is_open:
                break
            if not kind or size < 8 or size % 8 or at + size > end:
                raise ValueError("%s: record of type %d, %d bytes at %d" % (path, kind, size, at))
            if kind == TYPE["TRC_AGAIN"]:
                run = again_run(payload, at, window, size)
                yield from (named[slot] for slot in run)
                at += size * len(run)
                window = min(4096, window * 2) if len(run) == window else 64
                continue
            if kind == TYPE["TRC_AGAINS"]:
                yield from (named[slot] for slot in again_slots(flags, payload[at:at + size]))
            if kind == TYPE["TRC_SYNC"]:
                yield flags
                if size > SYNC_SIZE:
                    named[slot_of(size, payload[at:at + size])] = flags
            at += size


class Trace:
    """The process stream's file is read once: every thread's stream may begin in it."""

    def __init__(self, path, check=True):
        self.path, self.check = path, check
        self.kv, self.threads, self.notes, self.names = {}, {}, [], {}
        self.failure = self.end = self.exec = None
        self.modules, self.blocked, self.stacks, self.children = [], [], [], []
        self.withdrawn = 0
        process = os.path.join(path, "process")
        self.host = index(process)
        for kind, flags, b in records(process, check, self.host):
            self.take(kind, flags, b)

    def take(self, kind, flags, b):
        if kind == TYPE["TRC_KV"]:
            k, v = struct.unpack_from("<II", b, 8)
            self.kv[b[16:16 + k].decode()] = b[16 + k:16 + k + v]
        elif kind == TYPE["TRC_MODULE"]:
            start, end, offset, tsc, prot, idlen, _, plen = struct.unpack_from("<QQQQIBBH", b, 8)
            self.modules.append((start, end, offset, prot, b[48:48 + idlen].hex(),
                                 b[80:80 + plen].decode()))
        elif kind == TYPE["TRC_THREAD"]:
            t = Thread(*struct.unpack_from("<IIIIQQ", b, 8))
            if t.thread in self.threads:
                raise ValueError("thread %d twice" % t.thread)
            self.threads[t.thread] = t
        elif kind == TYPE["TRC_THREAD_NAME"]:
            t, n = struct.unpack_from("<II", b, 8)
            self.names[t] = b[16:16 + n].decode()
        elif kind == TYPE["TRC_NOTE"]:
            _, _, n = struct.unpack_from("<QII", b, 8)
            self.notes.append((flags, b[24:24 + n].decode()))
        elif kind == TYPE["TRC_FAILURE"]:
            _, thread, sig, code, status, addr = struct.unpack_from("<QIiiiQ", b, 8)
            regs = struct.unpack_from("<18Q", b, 40)
            _, tlen, dlen = struct.unpack_from("<QII", b, 184)
            self.failure = Failure(KIND_NAME[flags], thread, sig, code, status, addr, regs,
                                   b[200:200 + tlen].decode(), b[200 + tlen:200 + tlen + dlen])
        elif kind == TYPE["TRC_STACK"]:
            thread, length = struct.unpack_from("<II", b, 8)
            self.stacks.append((thread, length))
        elif kind == TYPE["TRC_BLOCKED"]:
            thread, op, cycle, obj, site, owner, _, osite = struct.unpack_from("<IHHQQIIQ", b, 8)
            self.blocked.append(Blocked(thread, OP_NAME[op], cycle, obj, site, owner, osite))
        elif kind == TYPE["TRC_WITHDRAWN"]:
            self.withdrawn += 1
            self.failure = None
        elif kind == TYPE["TRC_CHILD"]:
            self.children.append((flags,) + struct.unpack_from("<II", b, 16))
        elif kind == TYPE["TRC_EXEC"]:
            n = struct.unpack_from("<I", b, 20)[0]
            self.exec = b[24:24 + n].decode()
        elif kind == TYPE["TRC_END"]:
            self.end = (flags, struct.unpack_from("<i", b, 16)[0])
        else:
            raise ValueError("record type %d in the process stream" % kind)

    def id(self, n):
        t = self.threads[n]
        return "T0" if n == 0 else "%s.%d" % (self.id(t.parent), t.ordinal)

    def file(self, n):
        return os.path.join(self.path, "t%d.rec" % n)

    def flags(self, n):
        """Flags of thread n's sync events: see sync_flags()."""
        return sync_flags(self.file(n), self.host)

    def sync(self, n):
        """Sync events of thread n."""
        named = {}
        for kind, flags, b in records(self.file(n), self.check, self.host):
            if kind == TYPE["TRC_SYNC"]:
                e = Sync(OP_NAME[flags & 0xFFF], AT_NAME[flags >> 12],
                         *struct.unpack_from("<QQQiIQ", b, 8))
                named[slot_of(len(b), b)] = e
                yield e
            elif kind == TYPE["TRC_AGAIN"]:
                yield named[flags]._replace(tsc=struct.unpack_from("<Q", b, 8)[0] if len(b) > 8 else 0)
            elif kind == TYPE["TRC_AGAINS"]:
                yield from (named[slot]._replace(tsc=0) for slot in again_slots(flags, b))
