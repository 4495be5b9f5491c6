#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: the KUnit suites where detectors watch them; a case for each suite
# TIMEOUT: 120
# KERNELS: uml-debug
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"

# The output of KUnit, without the times
said() { dmesg_since | sed -n 's/^\[ *[0-9.]*\] //p'; }

# wrong NAME: prints the failures of a suite, after its heading
wrong() { said | sed -n "/^    # Subtest: $1\$/,/^\(not \)\?ok /p" | grep -v '^    *ok ' | tail -n 60; }

suites() {
	local line name seen=0 all
	all=$(said | sed -n 's/^1\.\.//p')
	while read -r line; do
		seen=$((seen + 1))
		name=${line#*ok * }
		case $line in
		not*) not_ok "$name" "$(wrong "$name")" ;;
		*" # SKIP "*) skip "${name%% #*}" "${name##*# SKIP }" ;;
		*) ok "$name" ;;
		esac
	done < <(said | grep -E '^(not )?ok [0-9]+ ')
	[ "$all" = "$seen" ] || not_ok "all suites" "$seen of $all"
}

# A suite in which a case is skipped is good for KUnit.
no_case_is_skipped() { ! said | grep -E '^ +ok .* # SKIP'; }

t_run "load" modprobe kiwarp_kunit
suites
t_run "no case is skipped" no_case_is_skipped
t_run "unload" modprobe -r kiwarp_kunit
done_testing
