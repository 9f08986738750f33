# For tests of path recording: source "$ROOT/tests/lib/path.sh" after check.sh.
SRC=$ROOT/tests/program/path.d
T=$TEST_TMP/traces
mkdir -p "$T"

# A checker that decodes every path of a trace, built against the analyzer's archive.
cc -std=gnu11 -D_GNU_SOURCE -O2 -I"$ROOT" "$ROOT/tests/lib/pathcheck.c" "$BUILD/libanalyzer.a" \
	-lzstd -o "$TEST_TMP/pathcheck" || { not_ok "pathcheck builds"; exit 1; }

recorded() { # recorded COMMAND...: runs it under the shim in path mode
	CSCHED_OPTIONS="mode=path:keep=always:quiet=1:dir=$T${PATH_OPTIONS:+:$PATH_OPTIONS}" \
		LD_PRELOAD=$CSCHED_LIB timeout -k 5 120 "$@"
}

decodes() { # decodes WHAT: every trace made since the last call
	local d n=0 bad=
	for d in "$T"/*.csched; do
		[ -e "$d" ] || continue
		n=$((n + 1))
		"$TEST_TMP/pathcheck" "$d" >"$TEST_TMP/pathcheck.out" 2>&1 ||
			{ bad="$bad $(basename "$d")"; tail -n 4 "$TEST_TMP/pathcheck.out"; }
	done
	rm -rf "${T:?}"/*
	if [ $n -gt 0 ] && [ -z "$bad" ]; then ok "$1: every path decodes ($n traces)"
	else not_ok "$1: every path decodes ($n traces, bad:$bad)"; fi
}

# same_run WHAT COMMAND...: same output and status as natively, input from the file $IN if set
same_run() {
	local what=$1 a b; shift
	timeout 120 "$@" <"${IN:-/dev/null}" >"$TEST_TMP/native" 2>"$TEST_TMP/native.err"; a=$?
	recorded "$@" <"${IN:-/dev/null}" >"$TEST_TMP/ours" 2>"$TEST_TMP/ours.err"; b=$?
	if [ $a = $b ] && cmp -s "$TEST_TMP/native" "$TEST_TMP/ours"; then ok "$what: same bytes, same status ($a)"
	else not_ok "$what: same bytes, same status ($a, $b)"; tail -n 5 "$TEST_TMP/ours.err"; fi
}
have() { # have WHAT COMMAND: or a visible skip
	command -v "$2" >/dev/null || { skip "$1: $2 is not installed"; return 1; }
}
