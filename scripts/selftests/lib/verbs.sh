# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
#
# Sourced after rc: runs cases of verbs.py, each a test case of its own.

# verbs_cases CASE...: connections from host a to host b.
verbs_cases() { verbs_between a b "$B4" "" "$@"; }

# verbs_between CLIENT SERVER ADDRESS PREFIX CASE...: PREFIX is for the names.
verbs_between() {
	local client=$1 server=$2 addr=$3 prefix=$4 line seen=0 limit
	shift 4
	limit=$(($(at_most 50) + ${KIW_SOAK:-0} * 2))
	spawn agent "$server" timeout "$limit" python3 "$SELFTESTS/verbs.py" \
		agent "$(dev_of "$server")" "$addr"
	if ! wait_listen "$server" 7700 30; then
		not_ok "agent on $server" "$(spawn_log agent)"
		spawn_stop agent
		return
	fi
	: >"$T_DIR/case"
	while IFS= read -r line; do
		case $line in
		"ok "*) ok "$prefix${line#ok }"; seen=$((seen + 1)); : >"$T_DIR/case" ;;
		"not ok "*)
			not_ok "$prefix${line#not ok }" "$(tail -n 30 "$T_DIR/case")"
			seen=$((seen + 1))
			: >"$T_DIR/case"
			;;
		*) printf '%s\n' "$line" >>"$T_DIR/case" ;;
		esac
	done < <(on "$client" timeout "$limit" python3 "$SELFTESTS/verbs.py" \
		run "$(dev_of "$client")" "$addr" "$@" 2>&1)
	[ $seen = $# ] || not_ok "all cases" "$seen of $# cases ended"$'\n'"$(tail -n 30 "$T_DIR/case")"
	spawn_wait agent 20 || not_ok "agent ends" "status $?: $(spawn_log agent | tail -n 20)"
}
