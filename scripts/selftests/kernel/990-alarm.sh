#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: detectors of the kernel report faults of their kinds, and the check finds the reports
# TIMEOUT: 60
# CHECK-KERNELS: uml-debug 6.1 6.12
# DMESG-ALLOW: kiwarp_alarm|KASAN|possible (circular|unsafe) lock|Modules linked in|INFO: lockdep is turned off|alarm\.c|refcount|list_(add|debug)
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"

SOUND=/sys/module/kiwarp_alarm/parameters/sound

# is_found REGEX: whether the check of the kernel log fails and prints a line that matches REGEX.
is_found() {
	! _check "$T_MARK" >"$T_DIR/check" 2>&1 && grep -E "$1" "$T_DIR/check"
}

# finds FAULT REGEX
finds() {
	dmesg_mark "$1"
	echo "$1" >"$SOUND" && wait_for 20 is_found "$2" && return
	cat "$T_DIR/check"
	return 1
}

# nothing is found where nothing is wrong
is_quiet() {
	dmesg_mark
	_check "$T_MARK"
}

_load kiwarp_alarm || bail "no alarms"
t_run "no alarm" is_quiet
# Most of these reports are the last of their kind.
case $KIW_KERNEL in
uml-kcsan) t_run "a data race" finds race 'BUG: KCSAN: data-race in alarm_increment' ;;
uml-debug | uml-smp)
	t_run "a leak" finds leak 'unreferenced object'
	;;&
uml-debug | uml-smp | smp-debug)
	t_run "a lock taken in another order" finds lock-order 'possible circular locking'
	t_run "an access out of bounds" finds out-of-bounds 'KASAN: slab-out-of-bounds in alarm_'
	t_run "a shift that is too long" finds shift 'UBSAN: shift-out-of-bounds in .*alarm\.c'
	t_run "a corrupted list" finds list 'list_add corruption'
	t_run "sleeping with a spinlock" finds sleep 'BUG: sleeping function .*alarm\.c'
	;;
esac
t_run "an underflow" finds underflow 'refcount_t: underflow'
t_run "a warning" finds warning 'WARNING: .*alarm_warning'
dmesg_mark
t_run "unload" _unload kiwarp_alarm
done_testing
