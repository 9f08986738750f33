"""Shard files in great number, made from a real one: python3 shards.py FILE COUNT SITES DIRECTORY"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from seal import checksum  # noqa: E402


def multiply(path, count, sites, directory):
    """COUNT files of as many shards, with the failures (and traces) of the one at path and SITES more sites each, half of them its own."""
    base = os.path.dirname(os.path.abspath(path))
    with open(path) as f:
        lines = f.read().splitlines()[:-1]
    os.makedirs(directory, exist_ok=True)
    for i in range(1, count + 1):
        out = []
        for line in lines:
            words = line.split(" ")
            if words[0] == "shard":
                out += ["site 77 %x 5 %d" % (s if s % 2 else s + i * sites, i) for s in range(sites)]
                line = " ".join(["shard", words[1], str(i), str(count), *words[4:]])
            elif words[0] == "failure" and words[8] not in ("-", "") and not words[8].startswith("/"):
                line = " ".join([*words[:8], base + "/" + words[8], *words[9:]])
            out.append(line)
        text = ("\n".join(out) + "\n").encode()
        with open("%s/shard-%d-of-%d.csched-shard" % (directory, i, count), "wb") as f:
            f.write(text + b"end %x\n" % checksum(text))


if __name__ == "__main__":
    multiply(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
