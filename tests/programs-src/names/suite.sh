#!/bin/sh
# A test as people write them: a program is run with its input, and what it says is looked at.
set -e
out=$("$1")
test "$out" = "8 of 8"
