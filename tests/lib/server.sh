# Servers for tests: source "$ROOT/tests/lib/server.sh" after check.sh.
# serve LOG ANSWERS COMMAND...: starts COMMAND with @PORT@ in its words replaced by a free port, its output
# in LOG, and waits until the command ANSWERS succeeds (it sees $port). Sets port and pid. One that ends
# before it answers (another process may take the port first) is tried again with another port; false,
# with its log shown, when none of five answers.
serve() {
	local log=$1 answers=$2; shift 2
	for _ in 1 2 3 4 5; do
		port=$("$ROOT/tests/lib/free-port") || return 1
		"${@//@PORT@/$port}" >"$log" 2>&1 &
		pid=$!
		for _ in $(seq 600); do
			kill -0 $pid 2>/dev/null || break
			if $answers && kill -0 $pid 2>/dev/null; then return 0; fi
			sleep 0.1
		done
		# What is still there neither answers nor ends: another port will not help it.
		if kill -0 $pid 2>/dev/null; then stop_server; break; fi
		wait $pid
	done
	sed "s|^|  $log: |" "$log"
	return 1
}
# Ends what serve started: its children first, for when it is a shell function around the server.
stop_server() {
	pkill -TERM -P $pid 2>/dev/null || kill -TERM $pid 2>/dev/null
	wait $pid 2>/dev/null
}
