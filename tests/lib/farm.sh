# What the tests of hunting in shards share: source "$ROOT/tests/lib/farm.sh" after check.sh.
# Three programs with several bugs each, which a hunt of FARM_RUNS runs finds all.
FARM_PROGRAMS="two three late"
FARM_RUNS=600

build_farm_programs() {
	local p
	for p in $FARM_PROGRAMS; do
		${CC:-cc} -O1 -g -pthread -Wl,--build-id -o "$p" "$ROOT/tests/programs-src/farm/$p.c" || { not_ok "$p.c compiles"; finish; }
	done
}
# prints DIRECTORY: the fingerprints that the shards in it found, sorted.
prints() { "$CSCHED" merge --json "$1" | python3 -c 'import json,sys; print(*sorted(f["fingerprint"] for f in json.load(sys.stdin)["failures"]))'; }
# whole PROGRAM: the same work as one shard of one, in the directory whole-PROGRAM.
whole() {
	timeout 300 "$CSCHED" hunt --shard 1/1 --out "whole-$1" --runs $FARM_RUNS --jobs 1 --keep-going -- "$PWD/$1" </dev/null >/dev/null 2>&1
}
