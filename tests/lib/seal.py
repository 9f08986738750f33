"""Traces with changed contents: the checksums of a stream made right again (csched-trace(5))."""
import struct

MASK, K = (1 << 64) - 1, 0x9E3779B97F4A7C15
OPEN = 0xFFFFFFFF


def checksum(data):
    n = len(data)
    h = [n, n ^ K, ~n & MASK, K]
    data += bytes(-n % 64)
    for words in struct.iter_unpack("<8Q", data):
        for i in range(4):
            v = (h[i] ^ words[2 * i]) * (K ^ words[2 * i + 1])
            h[i] = (v ^ v >> 64) & MASK
    total = h[0]
    for i in range(1, 4):
        total = ((total ^ h[i]) * K + (total >> 32)) & MASK
    return total


def chunks(data):
    """Of each: where its payload begins, how many bytes are used, and whether it has been closed."""
    at = 0
    while at + 64 <= len(data):
        capacity, length = struct.unpack_from("<I", data, at + 20)[0], struct.unpack_from("<I", data, at + 40)[0]
        used = min(capacity if length == OPEN else length, len(data) - at - 64)
        yield at + 64, used, length != OPEN
        at += 64 + capacity


def reseal(data):
    data = bytearray(data)
    for start, used, closed in chunks(data):
        if closed:
            struct.pack_into("<Q", data, start - 16, checksum(bytes(data[start:start + used])))
    return bytes(data)
