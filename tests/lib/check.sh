# Reporting for test scripts: source "$ROOT/tests/lib/check.sh"
# check "what is promised" command...   -> ok / not ok
bad=0
ok() { echo "ok $*"; }
not_ok() { echo "not ok $*"; bad=1; }
skip() { echo "skip $*"; }
check() { # status: whether it held
	local what=$1; shift
	if "$@"; then ok "$what"; else not_ok "$what"; return 1; fi
}
same() { # same WHAT EXPECTED GOT
	if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1"; echo "  expected: $2"; echo "  got:      $3"; fi
}
finish() { exit $bad; }
