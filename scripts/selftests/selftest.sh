#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# selftest.sh [--totals FILE]: checks the check of the system tests, on the host, with guests
# that only pretend: whatever becomes of a guest or of a result, a test that did not
# pass is a failure. FILE gets the totals, "passed failed skipped".

set -u
HERE=$(cd "$(dirname "$0")" && pwd)
WORK=$(mktemp -d "${TMPDIR:-/tmp}/kiwarp-selftest.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
export T_DIR=$WORK/t
mkdir "$T_DIR"
# shellcheck source=scripts/selftests/lib/rc
. "$HERE/lib/rc"
# shellcheck source=scripts/vm/lib.sh
. "$HERE/../vm/lib.sh"
# shellcheck source=scripts/selftests/lib/plan.sh
. "$HERE/lib/plan.sh"

# --- a tree with two tests, and a fake kernel ------------------------------------------

# The guest does what SCENARIO says: that many boots were before in $WORK/boots.
fake_guest() {
	cat <<-'END'
	#!/bin/bash
	printf '%s\n' "$@" >"$WORK/options"
	while [ "$1" != -- ]; do
		[ "$1" != --out ] || out=$2
		shift
	done
	shift 2
	boot=$(cat "$WORK/boots")
	echo $((boot + 1)) >"$WORK/boots"
	begin() { printf 'TAP version 13\nok 1 - a case\n' >"$out/$1.ktap"; }
	finish() { begin "$1"; echo 1..1 >>"$out/$1.ktap"; echo "0 2" >"$out/$1.result"; }
	finish_all() { for name in "$@"; do finish "$name"; done; }
	wait_until_late() { sleep "$(sed -n 's/^KIW_BEGIN_BY=//p' "$WORK/options")"; }
	: >"$out/boot"
	case $SCENARIO.$boot in
	good.*) finish_all "$@" ;;
	between.0) finish "$1"; exit 125 ;;
	behind.0) finish_all "$@"; exit 125 ;;
	within.0) finish "$1"; begin "$2"; exit 125 ;;
	empty.0) finish "$1"; begin "$2"; : >"$out/$2.result"; exit 124 ;;
	short.0) finish_all "$@"; echo 0 >"$out/$2.result" ;;
	unplanned.0) finish_all "$@"; begin "$2" ;;
	nothing.0) finish_all "$@"; echo 1..0 >"$out/$2.ktap" ;;
	skipped.0 | excused.0)
		finish_all "$@"
		printf 'TAP version 13\nok 1 - a case # SKIP %s\n1..1\n' "$SCENARIO" >"$out/$2.ktap"
		;;
	bad.0) finish_all "$@"; echo "BUG: something" >"$out/$2.dmesg" ;;
	untidy.0) finish_all "$@"; printf 'a\nkiwarp \n' >"$out/$2.left" ;;
	given-up.0) finish "$1"; exit 3 ;;
	late.0) finish "$1"; wait_until_late; exit 4 ;;
	late-at-once.0) wait_until_late; exit 4 ;;
	late-and-lost.0) finish "$1"; begin "$2"; wait_until_late; exit 4 ;;
	late-and-dead.0) begin "$1"; wait_until_late; exit 125 ;;
	until.0) printf '%s\n' "$@" >"$WORK/order"; echo 'not ok 1 - a case' >"$out/$1.ktap"
		echo "1 2" >"$out/$1.result"; exit 3 ;;
	silent.0) finish "$1" ;;
	dead.*) rm "$out/boot"; exit 125 ;;
	*.[1-9]) finish_all "$@" ;;
	esac
	END
}

fake_tree() {
	local name
	mkdir -p "$WORK/scripts/selftests/group" "$WORK/scripts/selftests/lib" "$WORK/scripts/vm"
	cp "$HERE/lib/plan.sh" "$WORK/scripts/selftests/lib"
	sed '/^DEFAULT_KERNELS=/,/)$/c DEFAULT_KERNELS=(uml)' "$HERE/check" >"$WORK/scripts/selftests/check"
	chmod +x "$WORK/scripts/selftests/check"
	cp "$KIW_VM/lib.sh" "$KIW_VM/ktap.py" "$WORK/scripts/vm"
	for name in 001-first 002-second; do : >"$WORK/scripts/selftests/group/$name.sh"; done
	echo skipped >"$WORK/scripts/selftests/skips"
	fake_guest >"$WORK/scripts/vm/run.sh"
	# shellcheck disable=SC2016 # for the script itself
	printf '#!/bin/bash\n[ "$SCENARIO" != unbuilt ] && echo /nowhere\n' |
		tee "$WORK/scripts/vm/build.sh" >"$WORK/scripts/vm/siw.sh"
	mkdir "$WORK/scripts/verbs"
	# shellcheck disable=SC2016 # for the script itself
	printf '#!/bin/bash\n[ "$SCENARIO" != no-programs ]\n' >"$WORK/scripts/verbs/build.sh"
	chmod +x "$WORK"/scripts/vm/*.sh "$WORK/scripts/verbs/build.sh"
	export WORK
}

# check_says SCENARIO PASSED FAILED [SKIPPED]: the totals of the check
check_says() {
	local status=0
	echo 0 >"$WORK/boots"
	SCENARIO=$1 "$WORK/scripts/selftests/check" --kernel uml --totals "$WORK/totals" 2>&1 || status=1
	grep -x "$2 $3 ${4:-0}" "$WORK/totals" && [ "$status" = "$((${3} > 0))" ]
}

# until_failure SCENARIO PASSED FAILED TEST...: likewise, in one guest
until_failure() {
	local status=0
	echo 0 >"$WORK/boots"
	SCENARIO=$1 "$WORK/scripts/selftests/check" --kernel uml --totals "$WORK/totals" \
		--until-failure "${@:4}" >"$WORK/said" 2>&1 || status=1
	cat "$WORK/said"
	grep -x "$2 $3 0" "$WORK/totals" && [ "$status" = "$(($2 == 0 || $3 > 0))" ] &&
		[ "$(cat "$WORK/boots")" = 1 ] && grep -x KIW_UNTIL_FAILURE=1 "$WORK/options"
}

# in_time SECONDS SCENARIO PASSED FAILED SKIPPED BOOTS: likewise, if no test is to begin later
in_time() {
	local status=0
	echo 0 >"$WORK/boots"
	printf 'uml %s 1 0\n' 001-first.sh 002-second.sh >"$WORK/plan"
	SCENARIO=$2 "$WORK/scripts/selftests/check" --kernel uml --totals "$WORK/totals" \
		--plan "$WORK/plan" --seconds "$1" >"$WORK/said" 2>&1 || status=1
	cat "$WORK/said"
	grep -x "$3 $4 $5" "$WORK/totals" && [ "$status" = "$(($3 == 0 || $4 > 0))" ] &&
		[ "$(cat "$WORK/boots")" = "$6" ] &&
		[ "$(grep -c " late: not begun within $1 s" "$WORK/said")" = "$5" ]
}

# late_in_guest: run-tests ends before the second of three tests, and still finds what the first has
# leaked.
late_in_guest() {
	local status=0
	mkdir -p "$WORK/out"
	# shellcheck disable=SC2016 # the inner shell expands it
	KIW_SELFTESTS=$HERE bash -c '. <(sed "s|/out/|$WORK/out/|g" "$1")
		KIW_BEGIN_BY=$((SECONDS + 2))
		for f in dmesg_mark say_left clean_up; do eval "$f() { :; }"; done
		kernel_is_broken() { return 1; }
		run_one() { echo "run $1"; until is_late; do _pause 0.1; done; }
		let_leaks_age() { echo "age"; }
		check_one() { echo "check $1"; }
		main 001 002 003' - "$HERE/../vm/guest/run-tests" >"$WORK/said" 2>/dev/null || status=$?
	cat "$WORK/said"
	[ "$status" = 4 ] && diff "$WORK/said" - <<-'END'
		run 001
		check 001
		done 001
		age
		check 001
	END
}

# rotated SECONDS FIRST: the order of tests, if FIRST of them come last, before 990. 065 stays the
# first one.
rotated() {
	local names=(001 002 003)
	# shellcheck disable=SC2016 # the inner shell expands it
	diff <(env HERE="$HERE" BEGIN_BY="$1" bash -c \
		'. <(sed -n "/^rotate()/,/^}/p" "$0"); rotate "$@"' "$HERE/check" 065 "${names[@]}" 990) \
		<(printf '%s\n' 065 "${names[@]:$2}" "${names[@]:0:$2}" 990)
}

# commit: as a number
commit() {
	local hash
	hash=$(git -C "$HERE" rev-parse HEAD 2>/dev/null) || hash=0000000
	echo $((16#${hash:0:7}))
}

# recorded_late: the row of a test that had no time stays in a plan.
recorded_late() {
	echo 0 >"$WORK/boots"
	printf 'uml %s 1 0\n' 001-first.sh 002-second.sh >"$WORK/plan"
	SCENARIO=late "$WORK/scripts/selftests/check" --kernel uml --seconds 6 --record "$WORK/plan"
	plan_rows "$WORK/plan" | diff - <(printf 'uml %s 1 0\n' 001-first.sh 002-second.sh)
}

first_failure() {
	until_failure until 0 2 002 001 && diff "$WORK/order" - <<-'END' && ! grep 001-first "$WORK/said"
		002-second.sh
		001-first.sh
	END
}

# no_boot SCENARIO: every test fails, and no guest is tried.
no_boot() { check_says "$1" 0 2 && [ "$(cat "$WORK/boots")" = 0 ]; }

# said_by REGEX SCENARIO PASSED FAILED [SKIPPED]
said_by() { check_says "${@:2}" >"$WORK/said" && cat "$WORK/said" && grep -q -E "$1" "$WORK/said"; }

# seeded REGEX [VARIABLE...]: the seed that the guest gets, and that a failure shows
seeded() {
	local regex=$1 seed
	shift
	echo 0 >"$WORK/boots"
	env "$@" SCENARIO=bad "$WORK/scripts/selftests/check" --kernel uml >"$WORK/said"
	cat "$WORK/said"
	seed=$(sed -n 's/^KIW_SEED=//p' "$WORK/options")
	[[ $seed =~ ^($regex)$ ]] && grep -q "KIW_SEED=$seed .*--kernel uml 002-second.sh$" "$WORK/said"
}

# The command that runs a failed test again is for the same devices.
again_on_ext() {
	local -x KIW_LINK_TYPE=kiwarp-ext
	said_by 'again: .*KIW_LINK_TYPE=kiwarp-ext .*scripts/selftests/check' bad 2 1
}

# planned PASSED FAILED LINE...: with that plan, every test passes, and the totals are these.
planned() { planned_with "" "$@"; }

# planned_with OPTIONS PASSED FAILED LINE...: likewise, of a check with these options
planned_with() {
	local options=$1 passed=$2 failed=$3 status=0
	shift 3
	printf '%s\n' "$@" >"$WORK/scripts/selftests/plan"
	cp "$WORK/scripts/selftests/plan" "$WORK/recorded"
	echo 0 >"$WORK/boots"
	# shellcheck disable=SC2086 # words
	SCENARIO=${SCENARIO:-good} "$WORK/scripts/selftests/check" $options --totals "$WORK/totals" \
		--record "$WORK/recorded" >"$WORK/said"
	cat "$WORK/said"
	grep -x "$passed $failed 0" "$WORK/totals" || status=1
	mv "$WORK/scripts/selftests/plan" "$WORK/plan"
	grep -v '^#' "$WORK/recorded"
	return "$status"
}

# The rows of another kernel, of a test that was not asked for, and of one that failed are as they
# were; kernels with the same numbers share a line.
records() {
	local -x SCENARIO=bad
	planned_with "--kernel uml" 2 1 "6.1,6.12 001-first.sh 1 0" "uml 002-second.sh 7 1" \
		"uml 003-third.sh 1 0" || return
	diff <(grep -v '^#' "$WORK/recorded") - <<-'END' || return
		6.1,6.12,uml 001-first.sh 1 0
		uml 002-second.sh 7 1
	END
	SCENARIO=good planned_with "--kernel uml 002" 1 0 "uml 001-first.sh 7 0" "uml 003-third.sh 1 0" ||
		return
	diff <(grep -v '^#' "$WORK/recorded") - <<-'END'
		uml 001-first.sh 7 0
		uml 002-second.sh 1 0
		uml 003-third.sh 1 0
	END
}

plan_is_written() { planned 2 0 "$@" && diff <(grep -v '^#' "$WORK/recorded") <(printf '%s\n' "$@"); }

# by_plan OPTIONS PASSED FAILED LINE...: of a check that is given a plan
by_plan() {
	planned_with "--plan $WORK/scripts/selftests/plan $1" "${@:2}"
}

not_recorded() { by_plan "--kernel uml" 2 0 "uml 001-first.sh - -" "uml 002-second.sh 1 0" &&
	grep -q '001-first.sh: .* not recorded' "$WORK/said"; }

no_plan() {
	! "$WORK/scripts/selftests/check" --kernel uml --plan "$WORK/nowhere" >"$WORK/said" 2>&1 &&
		grep -q "no plan $WORK/nowhere" "$WORK/said"
}

# with_head PASSED KERNEL HEAD...: of two tests, the first has these lines in its head.
with_head() {
	local status=0
	printf '# %s\n' "${@:3}" >"$WORK/scripts/selftests/group/001-first.sh"
	echo 0 >"$WORK/boots"
	SCENARIO=good "$WORK/scripts/selftests/check" --kernel "$2" --totals "$WORK/totals" || status=1
	: >"$WORK/scripts/selftests/group/001-first.sh"
	cat "$WORK/totals"
	grep -x "$1 0 0" "$WORK/totals" && return "$status"
}

# Nothing judges: the totals of each test must not be missed.
unjudged() {
	printf '#!/bin/bash\n' >"$WORK/scripts/vm/ktap.py"
	said_by 'it was not judged' good 0 2
	local status=$?
	cp "$KIW_VM/ktap.py" "$WORK/scripts/vm"
	return "$status"
}

# given_reasons: for which tests skip a case
given_reasons() {
	(cd "$HERE/.." && cat selftests/*/[0-9]*.sh selftests/lib/* verbs/*.c verbs/*/*.c ../ktest/*.c) | sed -n -E \
		-e 's/.*skip_this "([^"]*)".*/\1/p' -e 's/.*\<skip "[^"]*" "([^"$]*)".*/\1/p' \
		-e 's/.*ok .*# SKIP ([^*"$\}]+).*/\1/p' | sort -u
}

reasons_are_listed() { diff <(given_reasons) <(grep -v '^#' "$HERE/skips" | sort); }

# rows: the table of Documentation/testing.rst, "TEST KERNEL" for each kernel
rows() {
	awk -F '  +' '/^[0-9][0-9][0-9]-[a-z0-9-]+  / {
		n = split($2, kernels, ", ")
		for (i = 1; i <= n; i++) print $1, kernels[i]
	}' "$HERE/../../Documentation/testing.rst" | sort
}

planned_rows() {
	local file name
	for file in "$HERE"/*/[0-9][0-9][0-9]-*.sh; do
		name=$(basename "$file" .sh)
		plan_rows "$HERE/plan" | awk -v t="$name" '$2 == t ".sh" { print t, $1; some = 1 }
			END { if (!some) print t, "none" }'
	done | sort
}

table_is_plan() { diff <(rows) <(planned_rows); }

# plan_is_of FILE CHECK...: the plan has the tests that this run has according to their heads.
plan_is_of() {
	diff <(plan_rows "$HERE/$1" | cut -d' ' -f1,2 | LC_ALL=C sort) <("${@:2}" --list)
}

# made FILE TARGET: likewise, of what make runs
made() {
	local -a cmd
	# A variable of make in the environment would be for another one.
	read -r -a cmd < <(cd "$HERE/../.." && env -u MAKEFLAGS -u MAKELEVEL make -s -n "$2" | tr -d '\\\n')
	(cd "$HERE/../.." && plan_is_of "$1" env "${cmd[@]}")
}

# What "make check" runs has been recorded: a row without numbers is compared with nothing.
all_numbers() {
	! plan_rows "$HERE/plan" | grep -- - | grep -E ' -( |$)'
}

# The part of "make check" on devices of the type kiwarp-ext: its plan has numbers for it.
ext_numbers() {
	local tests t
	tests=$(sed -n '/KIW_LINK_TYPE=kiwarp-ext/,/[0-9]$/p' "$HERE/../check.sh" |
		grep -o -E '[0-9]{3}( [0-9]{3})*$')
	[ -n "$tests" ] || return 1
	for t in $tests; do
		plan_rows "$HERE/plan-ext" | grep -E "^uml $t-[^ ]* [0-9]+ [0-9]+$" || return 1
	done
}

# What "make check" says at its end: what failed and why, and then the names alone.
ends_in_short() (
	TMP=$WORK/ends
	mkdir "$TMP" && cat >"$TMP/log" <<-'END' || return 1
		not ok 3 - checkpatch --strict
		# main.c:54: CHECK
		ok 4 - sparse
		# 44 s sparse
		6.12:2    300-kernel.sh                        ok    89 passed, 0 failed, 0 skipped  (9 s)
		uml-debug 130-cm.sh                            FAIL  39 passed, 1 failed, 0 skipped  (89 s)
		    failed: backlog
		    | ok 1 - nobody
		    | not ok 5 - backlog
		uml FAIL: status 2, 0 of 9 tests were judged
	END
	eval "$(sed -n '/^failures()/,/^}/p; /^in_short()/,/^}/p' "$HERE/../check.sh")"
	failures >"$TMP/failed"
	cat "$TMP/failed"
	! grep -E 'sparse|300-kernel|nobody' "$TMP/failed" &&
		grep -q main.c:54 "$TMP/failed" && grep -q '| not ok 5 - backlog' "$TMP/failed" &&
		in_short | diff - <(printf '%s\n' '== in short' 'checkpatch --strict' \
			'uml-debug 130-cm.sh' '  failed: backlog' uml)
)

# cleaning STATUS COMMANDS: what run-tests says if restoring the host runs these commands.
cleaning() {
	local status=0
	# shellcheck disable=SC2016 # the inner shell expands it
	KIW_SELFTESTS=$HERE KIW_CLEAN=1 timeout 60 bash -c '. "$1"
		eval "clean_host() { $2; }"; clean_this' - "$HERE/../vm/guest/run-tests" "$2" || status=$?
	[ "$status" = "$1" ]
}

# What hangs is left alone: the guest goes away with it.
never_clean() {
	local status=0
	cleaning 1 "echo \$BASHPID >'$WORK/hung'; exec sleep 600" >"$WORK/said" 2>&1 || status=1
	cat "$WORK/said"
	grep -q 'does not end: clean_host' "$WORK/said" || status=1
	kill "$(cat "$WORK/hung")" || status=1
	return "$status"
}

# --- guests that are killed ----------------------------------------------------------------

# The emulator of guest, a or b meets FATE_guest and so on: STAGE-END. Powers off if there is none.
# The status of its command is STATUS_guest and so on, or 0.
fake_emulator() {
	cat <<-'END'
	#!/bin/bash
	for arg; do case $arg in kiw.share=*) share=${arg#*=} ;; esac; done
	fate=FATE_${share##*/} status=STATUS_${share##*/}
	meet() {
		case ${!fate:-} in
		$1-poweroff) exit 0 ;;
		$1-panic) echo "Kernel panic - not syncing: x"; exit 0 ;;
		$1-qemu) echo "qemu-system-x86_64: terminating on signal 15 from pid 1"; exit 0 ;;
		$1-uml) exit 1 ;;
		$1-hung) trap 'exit 0' TERM; exec {pipe}<> <(:); read -r -t 60 -u "$pipe"; exit 3 ;;
		$1-[0-9]*) kill "-${!fate#*-}" $$ ;;
		esac
	}
	meet booting
	meet running
	echo "${!status:-0}" >"$share/out/status"
	meet answered
	exit 0
	END
}

# Of the test bed, all but what a guest is made of
fake_bed() {
	local bed=$WORK/bed
	mkdir -p "$bed/kernel"
	cp "$KIW_VM"/{lib.sh,run.sh,fdpair.py} "$bed"
	# shellcheck disable=SC2016 # for the script itself
	sed 's/^B_ENDS=\(.*\)/B_ENDS=${B_ENDS:-\1}/' "$KIW_VM/pair.sh" >"$bed/pair.sh"
	fake_emulator >"$bed/kernel/kernel"
	# shellcheck disable=SC2016 # for the script itself
	{
		cat "$KIW_VM/guest.sh"
		echo 'guest_prepare() {
			K_TYPE=uml K_DIR=$KIW_VM/kernel R_DIR= I_DIR= X_LIB= W=$(mktemp -d "$KIW_VM/run.XXXXXX")
		}
		guest_dir() { mkdir -p "$W/$1/in" "$W/$1/out"; : >"$W/$1/out/stdout"; }'
	} >"$bed/guest.sh"
	chmod +x "$bed"/*.sh "$bed/kernel/kernel"
}

# ends_with STATUS run|pair VARIABLE...: FATEs; LIMIT is the time that the guests have; with THIRD
# there are three
ends_with() {
	local status
	# shellcheck disable=SC2016 # for the inner shell
	env "${@:3}" bash -c '"$0" --timeout "${LIMIT:-600}" ${THIRD:+--third} -- true' "$WORK/bed/$2.sh"
	status=$?
	echo "status $status"
	[ "$status" = "$1" ]
}

# Whatever ends a guest, and whenever; only at the end of what it has to do it may power off.
any_stage() {
	local stage end status
	for stage in booting running answered; do
		for end in poweroff panic qemu uml 9 15; do
			case $stage-$end in
			answered-poweroff) status=0 ;;
			*-9) status=124 ;;
			*) status=125 ;;
			esac
			echo "$stage-$end:"
			ends_with "$status" "$@" "FATE_$GUEST=$stage-$end" || return 1
		done
	done
}
any_stage_of() { GUEST=$1 any_stage "${@:2}"; }

# --- what is found in a kernel log ---------------------------------------------------------

# race FRAMES FRAMES: a report of KCSAN with these stacks, as a kernel prints it
race() {
	local frames
	echo "=================================================================="
	echo "BUG: KCSAN: data-race in ${1%% *} / ${2%% *}" | sed 's/@\([^ ]*\)/\1 [kiwarp]/g'
	for frames in "$1" "$2"; do
		printf '\n%s to 0xffff888003a1c0c8 of 8 bytes by task 17 on cpu 1:\n' "write (marked)"
		for frame in $frames; do echo " $frame+0x12/0x340${MODULE:+ [$MODULE]}"; done |
			sed 's/^ @\(.*\)/ \1 [kiwarp]/'
	done
	printf '\nvalue changed: 0x0000000000000000 -> 0x0000000000000001\n'
	printf '\nReported by Kernel Concurrency Sanitizer on:\n'
	echo "CPU: 1 UID: 0 PID: 17 Comm: x Tainted: G           O       6.12.0 #1"
	echo "Tainted: [O]=OOT_MODULE"
	echo "Hardware name: QEMU Standard PC (Q35 + ICH9, 2009)"
	echo "=================================================================="
}

stamped() { sed 's/^/[   12.345678] /'; }

reported() { stamped | _reports ''; }
race_found() { race "$@" | reported | grep 'BUG: KCSAN'; }
race_left_out() { ! race "$@" | reported | grep .; }

# A warning of another CPU in the middle of a race that is left out
race_interrupted() {
	race "one two" "other" | sed '/^value changed/iWARNING: CPU: 0 PID: 1 at net/core.c:1 f+0x1/0x2' |
		reported >"$WORK/found"
	cat "$WORK/found"
	grep -q 'WARNING: CPU' "$WORK/found" && ! grep -q KCSAN "$WORK/found"
}

race_cut_off() { race "one @kiw_two" "other" | head -n 6 | reported | grep 'BUG: KCSAN'; }
race_not_first() { { race a b; race a @kiw_b; race a b; } | reported | grep -c KCSAN | grep -x 1; }

is_report() { echo "$1" | reported; }
is_no_report() { ! is_report "$1"; }
is_allowed() { ! echo "$1" | stamped | _reports "$2"; }

# --- guests ------------------------------------------------------------------------------

# verdict WAITSTATUS CONSOLE [STATUS]: of guest_verdict
verdict() {
	local W=$WORK/w G_TIMEOUT=1
	rm -rf "$W"
	mkdir -p "$W/guest/out"
	echo "$2" >"$W/guest/console"
	[ -z "${3:-}" ] || echo "$3" >"$W/guest/out/status"
	# shellcheck source=scripts/vm/guest.sh
	(. "$KIW_VM/guest.sh"; guest_verdict guest "$1")
}

verdict_is() { [ "$(verdict "${@:2}" 2>/dev/null)" = "$1" ]; }

kmemleak_is_off() {
	local KMEMLEAK=/dev/full
	! kmemleak_check ''
}

# counted SHOWN OPTIONS...: of a client of rping that has shown so many pings
counted() {
	local i
	for ((i = 0; i < $1; i++)); do echo "ping data: rdma-ping-$i: ABCDEFGHIJKLMNOPQRST"; done >"$WORK/pings"
	rping_counted "$WORK/pings" "${@:2}"
}
not_counted() { ! counted "$@"; }

# leaked N SIZE[/OCTET]...: of objects of these sizes, with that first octet, N are leaks although
# nodes of 576 octets that are no leaves may be lost
leaked() {
	local want=$1 KMEMLEAK=$WORK/kmemleak size octet nodes
	nodes=$(sed -n "s/^NODES='\(.*\)'\$/\1/p" "$HERE/verbs/260-failing.sh")
	shift
	for size; do
		octet=${size#*/} size=${size%/*}
		[ "$octet" != "$size" ] || octet=75
		echo "unreferenced object 0x0000000062a5c6d8 (size $size):"
		echo '  comm "failing", pid 576, jiffies 4294941576'
		echo "  hex dump (first 32 bytes):"
		echo "    $octet 0c 65 72 62 73 5f 61 (size 576) unreferenced object"
		echo "  backtrace (crc 5a8c1de0):"
	done >"$KMEMLEAK"
	_leaked "$nodes" >"$WORK/leaks" || [ "$want" = 0 ] || return 1
	[ "$(grep -c '^unreferenced' "$WORK/leaks")" = "$want" ]
}

no_object() { : >"$WORK/kmemleak" && ! KMEMLEAK=$WORK/kmemleak _leaked ''; }
any_object() { leaked 0 576 && KMEMLEAK=$WORK/kmemleak _leaked ''; }

# --- the guided fuzzer, with targets that fail ------------------------------------------

fake_target() {
	cat >"$WORK/fake.py" <<-'END'
	import guide

	class Fake(guide.Target):
	    """Lines are numbers. fake-together fails if 3 and 7 are in an input; fake-after if 3 is in
	    an input after one that had 7; fake-end at the end if 5 was in one; fake-once at its fifth
	    input."""

	    def __init__(self, name):
	        self.name, self.had, self.runs = name, set(), 0

	    def line(self, rand):
	        return str(rand.randrange(40))

	    def change(self, line, rand):
	        return self.line(rand)

	    def run(self, lines):
	        has, self.runs = set(lines), self.runs + 1
	        if self.name == "fake-together" and {"3", "7"} <= has or \
	                self.name == "fake-after" and "3" in has and "7" in self.had or \
	                self.name == "fake-once" and self.runs == 5:
	            raise guide.Failed("fake: it fails")
	        self.had |= has

	    def close(self):
	        had, self.had = self.had, set()
	        if self.name == "fake-end" and "5" in had:
	            raise guide.Failed("fake: it has changed")

	def make(name, _):
	    return Fake(name)
	END
}

guide() {
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$WORK python3 "$HERE/../fuzz/guide.py" --seed 2 --again more \
		"$@" >"$WORK/guided"
}

# shortened TARGET INPUT: its failure is found, and needs no more than this.
shortened() {
	guide --runs 2000 -- "$1" && return 1
	grep -q -x -E "again: KIW_INPUT='$1: ($2)' more" "$WORK/guided" ||
		{ cat "$WORK/guided"; return 1; }
}

not_repeated() {
	guide --runs 200 -- fake-once && return 1
	grep 'does not fail again' "$WORK/guided"
}

# A guest that dies of 3 after 7
fake_check() {
	cat >"$WORK/fake-check" <<-'END'
	#!/bin/bash
	case $KIW_INPUT in *7*\;\;*3*) exit 1 ;; esac
	END
	chmod +x "$WORK/fake-check"
}

shortened_outside() {
	fake_check
	echo 'fake: 1; 2;; 7; 8;; 4;; 5; 6;; 9;; 3; 1' >"$WORK/fake.last"
	PYTHONDONTWRITEBYTECODE=1 "$HERE/../fuzz/shorten.py" "$WORK/fake.last" "$WORK/fake-check" |
		tee "$WORK/guided"
	grep -q -x "again: KIW_INPUT='fake: 7;; 3' $WORK/fake-check" "$WORK/guided"
}

# replayed STATUS TARGET INPUT
replayed() {
	local status=0
	guide --input "$3" -- "$2" || status=$?
	[ "$status" = "$1" ] || { cat "$WORK/guided"; return 1; }
}

fake_tree
fake_bed
fake_target
# zombie_is_gone: a process that has ended does not run, though its parent has not reaped it.
zombie_is_gone() {
	local zombie status=0
	# It ends when its parent is no longer a shell, which would reap it.
	exec {HELD}< <(bash -c 'until grep -qx sleep /proc/$$/comm; do sleep 0.05; done &
		echo $!; exec sleep 60')
	local parent=$!
	read -r zombie <&"$HELD"
	wait_for 10 grep -q '^State:.Z' "/proc/$zombie/status" && kill -0 "$zombie" || status=1
	! runs "$zombie" && runs "$parent" || status=1
	kill "$parent"
	exec {HELD}<&-
	return "$status"
}

# A package that is unpacked into a scratch directory of the cache gives it the package's time. Whoever
# prunes the cache meanwhile leaves it alone.
pruned() {
	local KIW_CACHE=$WORK/pruned
	mkdir -p "$KIW_CACHE/tmp.in-use" && touch -d '2 days ago' "$KIW_CACHE/tmp.in-use" &&
		prune kernel && [ -d "$KIW_CACHE/tmp.in-use" ]
}

# The lists of a release cannot be had, as while its mirror is being updated. A later one has the
# kernel, too.
found_later() (
	# shellcheck source=scripts/vm/debian.sh
	. "$HERE/../vm/debian.sh"
	# shellcheck source=scripts/vm/stock.sh
	. "$HERE/../vm/stock.sh"
	apt_of() { echo "$1"; }
	fresh_lists() { [ "$1" != trixie ]; }
	newest_release() { [ "$1" != bookworm ] && echo "7.3-$3"; }
	[ "$(find_debian 7.3 s390x 2>"$WORK/found.said")" = "7.3-s390x sid" ] &&
		grep -q 'no package lists of trixie' "$WORK/found.said"
)

# An archive that does not answer is not asked again at once, but is later.
not_asked_again() (
	conf=$WORK/unasked/apt.conf
	# shellcheck source=scripts/vm/debian.sh
	. "$HERE/../vm/debian.sh"
	run_logged() { echo asked >>"$WORK/asked"; [ -e "$WORK/answers" ]; }
	mkdir -p "${conf%/*}"
	! fresh_lists "$conf" && ! fresh_lists "$conf" && [ "$(wc -l <"$WORK/asked")" = 1 ] || return 1
	: >"$WORK/answers"
	touch -d '11 minutes ago' "${conf%/*}/failed"
	fresh_lists "$conf" && fresh_lists "$conf" && [ "$(wc -l <"$WORK/asked")" = 2 ]
)

# Another process reads the list of archives while it is written again.
list_is_whole() (
	KIW_CACHE=$WORK/lists
	list=$KIW_CACHE/apt-trixie-amd64/sources.list
	# shellcheck source=scripts/vm/debian.sh
	. "$HERE/../vm/debian.sh"
	archive() { wc -l <"$list" >>"$WORK/list.seen"; echo http://archive; }
	mkdir -p "${list%/*}" && printf '%s\n' 1 2 3 >"$list"
	apt_of trixie amd64 && cat "$WORK/list.seen" && grep -c archive "$list" | grep -x 3 &&
		[ "$(sort -u "$WORK/list.seen")" = 3 ]
)

t_run "two tests pass" check_says good 2 0
t_run "a guest dies between two tests" said_by 'ended after it, status 125' between 2 1
t_run "a guest dies behind the last one" said_by 'ended after it, status 125' behind 2 1
t_run "a guest dies within a test" said_by 'did not survive it' within 2 1
t_run "a guest does not boot" said_by 'did not survive it' dead 0 2
t_run "a guest ends without a word" said_by 'ended after it, status 0' silent 2 1
t_run "a guest is given up" check_says given-up 2 0
t_run "the first failure is to end it" first_failure
t_run "the first failure is to end it, and there is none" until_failure good 2 0 001 002
t_run "the first failure is to end it, and kills the guest" until_failure within 2 1
t_run "the first failure is to end it, and the guest does not boot" until_failure dead 0 0
t_run "no time is left for the second test" in_time 6 late 1 0 1 1
t_run "no time is left when the guest has booted" in_time 6 late-at-once 0 0 2 1
t_run "no time is left when a test has killed the guest" in_time 6 late-and-dead 1 1 1 1
t_run "no time is left, and a test that ran has no result" in_time 6 late-and-lost 2 1 0 1
t_run "no time is left for a guest" in_time 0 good 0 0 2 0
t_run "a plan keeps the rows of tests without time" recorded_late
t_run "there is time for all" in_time 60 good 2 0 0 1
t_run "no time is left for the second test in the guest" late_in_guest
t_run "the test that is first depends on the commit" rotated 9 $(($(commit) % 3))
t_run "without a limit it does not" rotated "" 0
t_run "an empty result" said_by 'did not survive it' empty 2 1
t_run "a result that was not finished" said_by 'did not survive it' short 2 1
t_run "a test that ends early" said_by 'died, status 0' unplanned 2 1
t_run "a test without a case" said_by 'no case' nothing 1 1
t_run "a case that is skipped" check_says skipped 1 0 1
t_run "a case that is skipped for another reason" said_by 'not in selftests/skips' excused 1 1 1
t_run "the table of testing.rst is that of the plan" table_is_plan
t_run "the plan is that of the tests' heads" plan_is_of plan "$HERE/check"
t_run "the plan of make check-all is that of the tests' heads" made plan-all check-all
t_run "the plan of make check-ext is that of the tests' heads" made plan-ext check-ext
t_run "the plan of make check has numbers" all_numbers
t_run "the plan of its part on kiwarp-ext has numbers" ext_numbers
t_run "what make check says at its end" ends_in_short
t_run "the reasons to skip are those of the tests" reasons_are_listed
t_run "a kernel report" said_by 'kernel log has reports' bad 2 1
t_run "a test that leaves objects" said_by 'it left behind: a kiwarp$' untidy 2 1
t_run "a host is restored" cleaning 0 true
t_run "a host is not as it was" cleaning 3 "return 3"
t_run "restoring a host hangs" never_clean
t_run "a process that was not reaped does not run" zombie_is_gone
t_run "a scratch directory in use" pruned
t_run "a list of archives in use" list_is_whole
t_run "a release without package lists" found_later
t_run "an archive that does not answer" not_asked_again
t_run "modules that do not build" no_boot unbuilt
t_run "programs that do not build" no_boot no-programs
t_run "nothing that judges" unjudged
t_run "a seed is fixed" seeded 5040 -u KIW_SEED -u KIW_SOAK
t_run "a seed is given" seeded 77 KIW_SEED=77 KIW_SOAK=1
t_run "a soak has a seed of its own" seeded '[0-9]{10,}' -u KIW_SEED KIW_SOAK=1
t_run "a test for soaks on that kernel" with_head 1 6.12 "SOAK-ONLY: 6.12"
t_run "a test for soaks on the nearest kernel" with_head 1 7.3 "SOAK-ONLY: 6.12"
t_run "a test for soaks on another kernel" with_head 2 6.1 "SOAK-ONLY: 6.12"
t_run "a test for what a kernel counts as" with_head 2 uml-smp "KERNELS: 6.12"
t_run "a test for what a kernel counts as, but not for that kernel" with_head 1 uml-smp \
	"KERNELS: 6.12" "EXCEPT: uml-smp"
t_run "a failure on another link type" again_on_ext
t_run "all is as planned" plan_is_written "uml 001-first.sh 1 0" "uml 002-second.sh 1 0"
t_run "a case is missing" planned 2 1 "uml 001-first.sh 2 0" "uml 002-second.sh 1 0"
t_run "a case is skipped no more" planned 2 1 "uml 001-first.sh 1 0" "uml 002-second.sh 1 1"
t_run "a test that nobody planned" planned 2 1 "uml 001-first.sh 1 0"
t_run "a test that did not run" planned 2 1 "uml 001-first.sh 1 0" "uml 002-second.sh 1 0" \
	"uml 003-third.sh 1 0"
t_run "a plan that is given" by_plan "--kernel uml" 2 0 "6.1,uml 001-first.sh 1 0" \
	"uml 002-second.sh 1 0" "6.1 003-third.sh 1 0"
t_run "a plan that is given: a case is missing" by_plan "--kernel uml" 2 1 \
	"6.1,uml 001-first.sh 2 0" "uml 002-second.sh 1 0"
t_run "a plan that is given: a test that nobody planned" by_plan "--kernel uml" 2 1 \
	"6.1 001-first.sh 1 0" "uml 002-second.sh 1 0"
t_run "a plan that is given: a test that did not run" by_plan "--kernel uml" 2 1 \
	"uml 001-first.sh 1 0" "uml 002-second.sh 1 0" "6.1,uml 003-third.sh 1 0"
t_run "a plan that is given: some tests" by_plan "--kernel uml 002" 1 0 \
	"uml 001-first.sh 1 0" "uml 002-second.sh 1 0"
t_run "a plan that is given: one of some tests did not run" by_plan "--kernel uml 002 003" 1 1 \
	"uml 001-first.sh 1 0" "uml 002-second.sh 1 0" "uml 003-third.sh 1 0"
t_run "a row without numbers" not_recorded
t_run "a plan that is not there" no_plan
t_run "recording keeps what has not passed" records

t_run "a race of the driver" race_found "@kiw_one two" "other"
t_run "a race below the driver" race_found "one two @kiw_three" "other"
t_run "a race of the other side" race_found "one two" "other @kiw_other"
t_run "a race of others" race_left_out "one two" "other more"
t_run "a race of an interrupt on top of the driver" \
	race_left_out "one handle_softirqs @kiw_one" "other asm_sysvec_call_function @kiw_two"
t_run "a race of the driver in a softirq" race_found "@kiw_one handle_softirqs one" "other"
t_run "a race for the flags of a task" race_left_out "@kiw_one two" "kthread_data wq_worker_tick"
t_run "a race for the flags of a task, when CPUs share work" race_left_out "@kiw_one two" \
	"kthread_is_per_cpu can_migrate_task"
t_run "a race for the flags of a task, of the other side" race_left_out "kthread_data" "@kiw_one"
t_run "a race for the time" race_left_out "ktime_get_seconds @kiw_one" "timekeeping_advance"
t_run "another report within a race of others" race_interrupted
t_run "a race whose report is cut off" race_cut_off
t_run "a race among others" race_not_first
t_run "a socket released with its state" is_report "Attempt to release TCP socket in state 1 0000"
t_run "no memory" is_report "kworker/0:1: page allocation failure: order:0, mode:0x40820"
t_run "a report that is allowed" is_allowed "WARNING: CPU: 0 PID: 1 at x.c" "at x.c"
t_run "a line that is no report" is_no_report "kiwarp: loaded"
t_run "kmemleak is off" kmemleak_is_off
t_run "all pings" counted 10 -S 100 -C 10
t_run "three of ten pings" not_counted 3 -C 10 -S 100
t_run "no ping" not_counted 0 -C 5
t_run "pings without end" counted 3 -S 100
t_run "kmemleak has no object" no_object
t_run "nothing is allowed" any_object
t_run "an object" leaked 1 5760
t_run "an object that is allowed" leaked 0 576
t_run "a leaf, which is not allowed" leaked 1 576/06 576/00 576/3c
t_run "the fuzzer shortens an input" shortened fake-together '3; 7|7; 3'
t_run "the fuzzer shortens several inputs" shortened fake-after '7;; 3'
t_run "the fuzzer shortens what fails at the end" shortened fake-end 5
t_run "the fuzzer finds what does not fail again" not_repeated
t_run "what kills a guest is shortened outside" shortened_outside
t_run "the fuzzer runs a failure again" replayed 1 fake-after '2; 7;; 3; 4'
t_run "the fuzzer runs an input that is good" replayed 0 fake-after '3;; 7'
t_run "objects among those that are allowed" leaked 2 576 64 576 576 1576

t_run "the command's status" verdict_is 3 0 "bye" 3
t_run "a panic on the way down" verdict_is 125 0 "Kernel panic - not syncing" 0
t_run "no end after the command's" verdict_is 124 137 "bye" 0
t_run "no status" verdict_is 125 0 "bye"
t_run "a guest that powers off" ends_with 0 run
t_run "a guest that is killed at any stage" any_stage_of guest run
t_run "a guest that hangs behind its answer" ends_with 124 run LIMIT=3 FATE_guest=answered-hung
t_run "two guests that power off" ends_with 0 pair
t_run "a first guest that is killed at any stage" any_stage_of a pair
t_run "a second guest that is killed at any stage" any_stage_of b pair
t_run "three guests that power off" ends_with 0 pair THIRD=1
t_run "a third guest that is killed at any stage" any_stage_of c pair THIRD=1
t_run "a second guest that hangs behind its answer" \
	ends_with 124 pair B_ENDS=1 FATE_b=answered-hung
t_run "a pair without time for all tests" ends_with 4 pair STATUS_a=4
t_run "a second guest that hangs behind tests without time" \
	ends_with 124 pair B_ENDS=1 STATUS_a=4 FATE_b=answered-hung
t_run "a second guest that hangs before" ends_with 124 pair B_ENDS=1 FATE_b=running-hung
t_run "a third guest that hangs behind its answer" \
	ends_with 124 pair THIRD=1 B_ENDS=1 FATE_c=answered-hung

if [ "${1:-}" = --totals ]; then echo "$((T_COUNT - T_FAILED)) $T_FAILED 0" >"$2"; fi
done_testing
