# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
#
# Sourced after rc: runs cases of life.py, each a test case of its own.

# life_cases CASE...: of life_cases.py, each a test case of its own. Lines that begin with # are
# shown in any case.
life_cases() {
	local line seen=0 all=
	: >"$T_DIR/case"
	while IFS= read -r line; do
		case $line in
		"ok "*) ok "${line#ok }"; seen=$((seen + 1)); : >"$T_DIR/case" ;;
		"not ok "*)
			not_ok "${line#not ok }" "$(tail -n 30 "$T_DIR/case")"
			seen=$((seen + 1))
			: >"$T_DIR/case"
			;;
		"# "*) diag "${line#\# }" ;;
		"all cases "*) all=${line#all cases } ;;
		*) printf '%s\n' "$line" >>"$T_DIR/case" ;;
		esac
	done < <(python3 "$SELFTESTS/life.py" "$@" 2>&1)
	[ "$all" = $seen ] || not_ok "all cases" "$seen of $all"$'\n'"$(tail -n 30 "$T_DIR/case")"
}
