#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# selftest.sh [--totals FILE] [KERNEL]
# Checks the checks: a small good tree passes all of them, and each bad change to it
# fails exactly the check it is made for, with the right words. Prints KTAP.
# KERNEL: the one to build against (default 6.12). --totals: FILE gets the totals,
# "passed failed skipped", in one line.

set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
totals=
if [ "${1:-}" = --totals ]; then
	totals=$2
	shift 2
fi
kernel=${1:-6.12}
driver=drivers/infiniband/sw/kiwarp
licence="SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export KIW_LINT_CLEAN=$work/clean	# what other checks found clean is no result of these
total=0
failed=0
nothing=	# breaks words that the checks would find here

good_tree() {
	rm -rf "$work/tree"
	mkdir -p "$work/tree/scripts" "$work/tree/$driver/proto"
	# By link: what they hold is not part of the sample.
	ln -s "$top/scripts/lint" "$top/scripts/vm" "$work/tree/scripts"
	cd "$work/tree"
	printf '# %s\n' "$licence" >README
	cat >"$driver/proto/wire.h" <<-END
	/* $licence */
	#ifndef KIW_WIRE_H
	#define KIW_WIRE_H

	#include <linux/types.h>

	int kiw_wire_get(__be16 word);

	#endif
	END
	cat >"$driver/proto/wire.c" <<-END
	// $licence
	#include "wire.h"
	#include <asm/byteorder.h>

	/**
	 * kiw_wire_get() - the number in a word
	 * @word: as it came
	 *
	 * Return: the number.
	 */
	int kiw_wire_get(__be16 word)
	{
		return be16_to_cpu(word);
	}
	END
	cat >"$driver/main.c" <<-END
	// $licence
	#include <linux/module.h>

	MODULE_DESCRIPTION("Sample");
	MODULE_LICENSE("Dual BSD/GPL");
	END
	printf '# %s\nobj-m := kiw.o\nkiw-y := %s/main.o %s/proto/wire.o\n' \
		"$licence" "$driver" "$driver" >Kbuild
	printf '#!/bin/sh\n# %s\necho "$#"\n' "$licence" >scripts/sample
	printf '# %s\nprint()\n' "$licence" >scripts/sample.py
}

result() {
	total=$((total + 1))
	if [ "$1" = 0 ]; then
		echo "ok $total - $2"
	else
		echo "not ok $total - $2"
		sed 's/^/# /' "$work/out"
		failed=$((failed + 1))
	fi
}

# lint ARGUMENT... - of the sample tree; leaves its words in $work/out
lint() {
	"$work/tree/scripts/lint/check.sh" --kernel "$kernel" "$@" >"$work/out" 2>&1
}

# bad CHECK WORDS DESCRIPTION - the tree as it is now fails CHECK with WORDS
bad() {
	local rc=1

	if ! lint --only "^$1" && grep -q '^not ok 1 ' "$work/out" &&
		grep -qE "^# .*$2" "$work/out"; then
		rc=0
	fi
	result "$rc" "$1: $3"
	good_tree
}

add_to() {
	printf '%s\n' "${@:2}" >>"$work/tree/$1"
}

good_tree
rc=0
lint || rc=1
result "$rc" "a good tree passes everything"

add_to "$driver/main.c" 'int kiw_stray(void) { return 0; }'
bad "build" "no previous prototype" "a warning of W=1"
add_to "$driver/main.c" '#error stop here'
bad "build" "stop here" "an error"
add_to "$driver/main.c" 'static __be16 kiw_word = 1;'
bad "sparse" "incorrect type in initializer" "a number used as wire order"
add_to "$driver/main.c" '#include <linux/spinlock.h>' 'void kiw_l(spinlock_t *l) { spin_lock(l); }'
bad "sparse" "context imbalance" "a lock left held"
add_to "$driver/main.c" 'static __be16 kiw_word = 1;'
lint --only "^sparse" || :
bad "sparse" "incorrect type in initializer" "the same once more"
add_to "$driver/main.c" 'static __be16 kiw_word = (__force __be16)1;'
bad "no __force" "main.c:6: __force" "a forced cast"
add_to "$driver/main.c" 'static int a=1;'
bad "checkpatch" "main.c:6: ERROR:SPACING" "wrong spacing"
add_to "$driver/main.c" 'static int a=1;'
lint --only "^checkpatch" || :
bad "checkpatch" "main.c:6: ERROR:SPACING" "the same once more"
add_to "$driver/main.c" '#if LINUX_VERSION_CODE > 1' '#endif'
bad "checkpatch" "LINUX_VERSION_CODE" "a version outside of compat"
add_to "$driver/main.c" '/**' ' * f() - b' ' */' 'static int f(int a)' '{' '}'
bad "kernel-doc is" "'a' not described" "an argument left out"
add_to "$driver/main.c" '/**' ' * f() - b' ' */' 'static int f(void)' '{' '}'
bad "kernel-doc is" "No description found for return" "a return value left out"
add_to "$driver/main.c" 'struct kiw_qp *' 'kiw_f(void)' '{' '}'
bad "kernel-doc on" "kiw_f\(\) has no kernel-doc" "no block"
add_to "$driver/main.c" '/* kiw_f() - b */' 'int kiw_f(void)' '{' '}'
bad "kernel-doc on" "does not start with '/\*\*'" "a plain comment"
add_to "$driver/main.c" '/**' ' * kiw_g() - b' ' */' 'int kiw_f(void)' '{' '}'
bad "kernel-doc on" "does not start with ' \* kiw_f" "the block of another function"
add_to "$driver/main.c" '/**' ' * kiw_f - b' ' */' 'int kiw_f(void)' '{' '}'
bad "kernel-doc on" "does not start with ' \* kiw_f" "a name without parentheses"
add_to "$driver/proto/wire.c" 'static int put(void)' '{' '}'
bad "kernel-doc on" "wire.c:.*put\(\) does not begin with wire_" "a static function without its file's name"
mkdir -p "$work/tree/drivers/infiniband/ulp/kiwarp_ip"
add_to drivers/infiniband/ulp/kiwarp_ip/udp.c 'static int put(void)' '{' '}'
bad "kernel-doc on" "put\(\) does not begin with udp_" "likewise in kiwarp_ip"
add_to "$driver/main.c" 'struct kiw_x {' '	spinlock_t lock;' '};'
bad "kernel-doc on" "lock has no kernel-doc line" "a lock that protects what?"
add_to "$driver/main.c" '/**' ' * kiw_f() - b' ' *' ' * Context: socket lock held.' ' */' 'int kiw_f(void)' '{' '}'
bad "kernel-doc on" "does not assert it" "a promise without its assertion"
add_to "$driver/main.c" '/**' ' * kiw_f() - b' ' */' 'int kiw_f(void)' '{' '	kiw_sock_assert_held(0);' '}'
bad "kernel-doc on" "its kernel-doc does not say so" "an assertion of no promise"

# counter NAME DOCUMENTED TESTED - a list of one counter
counter() {
	mkdir -p "$work/tree/Documentation" "$work/tree/scripts/selftests"
	add_to "$driver/stats.h" "/* $licence */" '#define KIW_STATS_LIST(X)' "	X(ONE, \"$1\")"
	add_to Documentation/counters.rst ".. $licence" "\`\`$2\`\`"
	add_to scripts/selftests/one.sh "# $licence" "echo $3"
}

counter rx_one rx_two rx_one
bad "counters are" "stats.h:3: rx_one is not in Documentation/counters.rst" "one without a word"
counter rx_one rx_two rx_one
bad "counters are" "counters.rst:2: rx_two is no counter" "one that is gone"
counter rx_one rx_one rx_one_more
bad "counters are" "stats.h:3: rx_one is in no test" "one that is not tested"
counter rx_one rx_one "rx_other # rx_one"
bad "counters are" "stats.h:3: rx_one is in no test" "one that a comment of a test names"

# document TEXT WORDS DESCRIPTION - a document that says TEXT
document() {
	mkdir -p "$work/tree/Documentation"
	add_to Documentation/one.rst ".. $licence" "$1"
	bad "names in" "one.rst:2: .*$2" "$3"
}

document "\`\`kiw_wire_set()\`\`" "is no function" "a function that is gone"
document "\`\`main.c\`\`: \`\`kiw_wire_get()\`\`" "is not in .*main.c" "a function of another file"
mkdir -p "$work/tree/Documentation"
# shellcheck disable=SC2016 # literal backquotes
add_to Documentation/one.rst ".. $licence" '' 'Through the files' '=================' '' \
	'1. ``main.c`` has ``kiw_wire_get()``'
bad "names in" "one.rst:6: .*is not in .*main.c" "a function of another file, in the walk"
document "\`\`proto/wires.c\`\`" "is no file" "a file that is gone"
document "\`\`rx_wires\`\`" "is in no source" "a counter that is gone"
document "\`\`scripts/sample --fast\`\`" "no script has an option --fast" "an option that is gone"
document "see 999-sample.sh" "there is no test 999-sample" "a test that is gone"
document "\`\`make samples\`\`" "there is no 'make samples'" "a target that is gone"
mkdir -p "$work/tree/Documentation"
add_to Documentation/tracing.rst ".. $licence"
add_to "$driver/trace.h" "/* $licence */" 'TRACE_EVENT(kiw_wire,'
bad "names in" "trace.h:2: kiw_wire is not in Documentation/tracing.rst" "an event without a word"

# reference LINE - a reference whose section of trace events has that line
reference() {
	mkdir -p "$work/tree/Documentation"
	add_to Documentation/reference.rst ".. $licence" '' 'Trace events' '============' '' "    $1"
	add_to "$driver/trace.h" "/* $licence */" 'TRACE_EVENT(kiw_wire,'
}

# shellcheck disable=SC2016 # literal backquotes
reference '``kiw_wire``'
rc=0
lint --only "^the reference" || rc=1
result "$rc" "the reference: one that is right"
good_tree
# shellcheck disable=SC2016 # literal backquotes
reference 'Text with ``kiw_wire``'
bad "the reference" "trace.h:1: kiw_wire is not in .*reference.rst, Trace events" "a name left out"
# shellcheck disable=SC2016 # literal backquotes
reference '``kiw_wire``, ``kiw_cable``'
bad "the reference" "reference.rst:6: kiw_cable is not in .*trace.h" "a name that is gone"
# shellcheck disable=SC2016 # literal backquotes
reference '``kiw_wire``'
# shellcheck disable=SC2016 # literal backquotes
add_to Documentation/reference.rst '' 'Link types' '==========' '' '``kiw``'
add_to "$driver/netlink.c" "// $licence" '	.type = "kiw",' '	.type = "kiw-long",'
bad "the reference" "netlink.c:1: kiw-long is not in .*reference.rst, Link types" "a name with a hyphen"
# shellcheck disable=SC2016 # literal backquotes
reference '``kiw_wire``'
mkdir -p "$work/tree/packaging/samples"
add_to packaging/samples/kiw.conf "# $licence"
bad "the reference" "samples/kiw.conf:1: kiw.conf is not in .*reference.rst" "a sample left out"

# layer FILE INCLUDE WORDS DESCRIPTION
layer() {
	mkdir -p "$(dirname "$work/tree/$driver/$1")"
	add_to "$driver/$1" "#include $2"
	bad "layering of" "$3" "$4"
}

# header FILE - an empty one
header() {
	mkdir -p "$(dirname "$work/tree/$driver/$1")"
	touch "$work/tree/$driver/$1"
}

layer proto/wire.h '<linux/skbuff.h>' "bytes and numbers" "a kernel header in proto/"
header proto/ddp.h
layer proto/wire.h '"ddp.h"' "of layer 2" "an include that points up within proto/"
header trace.h
layer proto/ddp.c '"trace.h"' "of layer 3" "tracing in proto/"
layer mem/mr.c '<net/sock.h>' "neither the network" "net/ in mr"
layer sock/sock.h '<rdma/ib_verbs.h>' "ops table" "rdma/ in sock"
layer tx/tx.c '<rdma/iw_cm.h>' "engines know" "iw_cm in tx"
header tx/tx.h
layer cm/cm.c '"tx/tx.h"' "never its engines" "tx.h in cm"
layer verbs/verbs_qp.c '"proto/wire.h"' "never see bytes" "wire.h in the verbs"
header qp/qp.h
layer queue/cq.c '"qp/qp.h"' "of layer 4" "qp.h in cq"
layer sundry.c '<linux/types.h>' "not in the layer table" "a file without a layer"
header mem/mr.h
header mem/umem.h
layer mem/mr.c '"umem.h"' "before its own mem/mr.h" "own header not first"
header mem/umem.h
layer mem/mr.c '"mem/umem.h"' "as mem/umem.h, not as umem.h" "a path within a room"
header queue/cq.h
layer mem/mr.c '"../queue/cq.h"' "as ../queue/cq.h, not as queue/cq.h" "a path that goes up"
driver=drivers/infiniband/ulp/kiwarp_ip layer rx.c '"qp.h"' "no header of its module" "kiwarp's in kiwarp_ip"
good_tree
add_to "$driver/main.c" '#if KERNEL_VERSION(6, 2, 0)' '#endif'
bad "layering of" "in compat/ only" "a version outside of compat"

# calls FILE CALLER CALLEE - a function of FILE that calls one of another
calls() {
	mkdir -p "$(dirname "$work/tree/$driver/$1")"
	add_to "$driver/$1" "int $2(void)" '{' "	return $3();" '}'
}

calls qp/qp.c kiw_qp_fault kiw_tx_run
calls tx/tx.c kiw_tx_run kiw_none
bad "layering of" "qp/qp.c:3: calls kiw_tx_run\(\) of tx/tx: tx is above qp" "a call up"
calls tx/tx.c kiw_tx_run kiw_qp_fault
calls qp/qp.c kiw_qp_fault kiw_tx_run
bad "layering of" "qp/qp.c:3: calls kiw_tx_run\(\) of tx, in a circle of rooms: qp -> tx -> qp" "a circle of two rooms"
calls tx/tx.c kiw_tx_run kiw_rx_run
calls rx/rx_fpdu.c kiw_rx_frame kiw_qp_fault
calls rx/rx.c kiw_rx_run kiw_rx_frame
calls qp/qp.c kiw_qp_fault kiw_tx_run
bad "layering of" "circle of rooms: qp -> tx -> rx -> qp" "a circle through several files"
calls rx/rx.c kiw_rx_run kiw_rx_frame
calls rx/rx_fpdu.c kiw_rx_frame kiw_rx_run
bad "layering of" "circle of files: rx/rx -> rx/rx_fpdu -> rx/rx" "a circle inside a room"
calls mem/mr.h "static inline kiw_mr_use" kiw_mr_find
calls mem/mr_fast.c kiw_fast_map kiw_mr_use
calls mem/mr.c kiw_mr_find kiw_fast_map
bad "layering of" "mem/mr_fast.c:3: calls kiw_mr_find\(\) of mem/mr" "a circle through a header"
calls cm/cm_ep.c kiw_ep_step kiw_ep_accept
calls cm/cm_mpa.c kiw_ep_accept kiw_ep_step
header qp/qp.c
add_to "$driver/qp/qp.c" '/* kiw_tx_run() is no call */'
calls tx/tx.c kiw_tx_run kiw_qp_fault
rc=0
lint --only "^layering of" || rc=1
result "$rc" "layering of: a declared pair, and a comment"
good_tree

# ip_calls FILE CALLER CALLEE - likewise in kiwarp_ip
ip_calls() { driver=drivers/infiniband/ulp/kiwarp_ip calls "$@"; }

ip_calls tx.c kip_tx_run kip_control_start
ip_calls control.c kip_control_start kip_none
bad "layering of" "tx.c:3: calls kip_control_start\(\) of control: layer 4 is above layer 3" "a call up in kiwarp_ip"
ip_calls udp.c kip_udp_open kip_rx_packet
ip_calls rx.c kip_rx_packet kip_tx_run
ip_calls tx.c kip_tx_run kip_udp_open
bad "layering of" "circle of files: rx -> tx -> udp -> rx" "a circle in kiwarp_ip"

# rooms ROW... - the sample's files in an overview whose picture has those rows, and in a Kbuild
rooms() {
	local room

	mkdir -p "$work/tree/Documentation"
	printf '%s\n' ".. $licence" '' '::' '' "$@" >"$work/tree/Documentation/overview.rst"
	for room in mem queue sock qp tx rx run cm verbs; do header "$room/$room.h"; done
	printf 'kiwarp-y := %s\n' proto/wire.o main.o >"$work/tree/$driver/Kbuild"
}

picture=("    (beside)  main (the module)")
for room in verbs cm run rx tx qp sock queue mem; do picture+=("    $room/  $room"); done
picture+=("    proto/  wire" "            (the wire in numbers)")
rooms "${picture[@]}"
rc=0
lint --only "^rooms" || rc=1
result "$rc" "rooms: a picture that is right"
rooms "${picture[@]/\/  mem//  mem  gone}"
bad "rooms" "overview.rst:14: mem: gone is no file" "a file that is only in the picture"
rooms "${picture[@]}"
header cm/cm_more.h
bad "rooms" "cm: cm_more is not in the picture" "a file that is not in the picture"
rooms "${picture[@]:1}"
bad "rooms" "rows of the picture are not" "a row that is not in the picture"
rooms "${picture[@]}"
header loft/loft.h
bad "rooms" "a room without a place" "a folder that is not in the order"
rooms "${picture[@]}"
header mem/mem.c
bad "rooms" "mem/mem.c:1: is not built" "a source that Kbuild does not name"
rooms "${picture[@]}"
add_to "$driver/Kbuild" 'kiwarp-y += proto/gone.o'
bad "rooms" "proto/gone.o has no source" "a source that is only in Kbuild"
rooms "${picture[@]}"
header mem/mem.c
add_to "$driver/Kbuild" 'kiwarp-y += mem/mem.o'
bad "rooms" "mem/mem.o is behind what is above" "Kbuild out of order"
good_tree

# drawn PICTURE LINE... - a picture, which a document shows
drawn() {
	mkdir -p "$work/tree/Documentation/pictures"
	printf '%s\n' "// $licence" "${@:2}" >"$work/tree/Documentation/pictures/$1.dot"
	add_to Documentation/one.rst ".. $licence" ".. graphviz:: pictures/$1.dot"
}

# layers LINE... - with all rooms, of which tx calls qp, and those lines
layers() {
	local room nodes=()

	for room in proto mem queue sock qp tx rx run cm verbs; do
		nodes+=("	$room [label=\"$room/\"]")
	done
	calls qp/qp.c kiw_qp_fault kiw_none
	calls tx/tx.c kiw_tx_run kiw_qp_fault
	drawn layers "${nodes[@]}" "$@"
}

layers "	tx -> qp"
rc=0
lint --only "^pictures" || rc=1
result "$rc" "pictures: one that is right"
good_tree
layers
bad "pictures" "tx calls qp, and there is no arrow" "a call that is not drawn"
layers "	tx -> qp" "	rx -> qp"
bad "pictures" "layers.dot:13: rx does not call qp" "an arrow without a call"
layers "	tx -> qp"
calls rx/rx.c kiw_rx_run "kiw_tx_run() + kiw_qp_fault"
add_to Documentation/pictures/layers.dot "	rx -> tx" "	rx -> qp"
bad "pictures" "layers.dot:14: rx does not call qp, or other arrows" "an arrow that follows from others"
layers "	tx -> qp" '	loft [label="loft/"]'
bad "pictures" "layers.dot:13: loft is no room" "a room that is only drawn"
calls proto/cm_fsm.c kiw_cm_fsm kiw_none
add_to "$driver/proto/cm_fsm.c" '	[KIW_CMS_IDLE] = {' '		[KIW_CME_CONNECT] = GO(OPEN, 0),'
drawn startup '		i_IDLE -> i_OPEN [label="CONNECT"]' '		i_OPEN -> i_IDLE [label="CONNECT"]'
bad "pictures" "startup.dot:3: .* no step from OPEN to IDLE by CONNECT" "a step that is not in the table"
drawn one '	a [label="copied\nkiw_wire_set()"]'
bad "pictures" "one.dot:2: kiw_wire_set\(\) is no function" "a function that is gone"
drawn one '	a [label="copied"]'
rm "$work/tree/Documentation/one.rst"
bad "pictures" "one.dot:1: no document shows it" "a picture that is not shown"

ln -s "$top/scripts/release" "$work/tree/scripts"
cp -r "$top"/{drivers,include,kunit,Documentation,MAINTAINERS} "$work/tree"
add_to "$driver/main.c" 'kiw_compat_more();'
bad "series" "main.c: no rule for: kiw_compat_more" "a use of compat/ without a rule"

# floor ROW - of a coverage that was recorded
floor() {
	mkdir -p "$work/tree/scripts/coverage"
	mkdir -p "$work/tree/Documentation"
	add_to scripts/coverage/floor "# $licence" '# Commit: none' '# Date: 2026-01-01' '# Of: KUnit' "$1"
	"$top/scripts/coverage/page.py" "$work/tree/scripts/coverage/floor" \
		>"$work/tree/Documentation/coverage.rst"
}

floor "$driver/main.c 10 9 4 4 90 100"
rc=0
{ lint --only "^coverage" &&
	grep -q '^# 90.0 % of lines, 100.0 % of branches, [1-9]' "$work/out"; } || rc=1
result "$rc" "coverage: its age is said"
good_tree
floor "$driver/main.c 10 8 4 4 90 100"
bad "coverage" "main.c is below its floor" "figures that are too low"
floor "$driver/gone.c 10 9 4 4 90 100"
bad "coverage" "there is no .*gone.c" "a file that is gone"
floor "$driver/main.c 10 9 4 4 90 100"
sed -i 's/ 9\/10/10\/10/' "$work/tree/Documentation/coverage.rst"
bad "coverage" "coverage.rst:1: is not what" "a page with other figures than those recorded"

# unrecorded MISSING DESCRIPTION WHAT... - a measurement of WHAT gives no record
unrecorded() {
	local rc=1 missing=$1 about=$2
	mkdir -p "$work/measured"
	printf '%s\n' "${@:3}" >"$work/measured/of"
	"$top/scripts/coverage/run.sh" --out "$work/measured" --report --record >"$work/out" 2>&1 ||
		{ grep -q -e "missing: $missing" "$work/out" && grep -q "not recorded" "$work/out" && rc=0; }
	result "$rc" "coverage: $about"
}

pairs=$(sed -n 's/^PAIRS=(\(.*\))$/pairs: \1/p' "$top/scripts/coverage/run.sh")
unrecorded KUnit "no record without KUnit" "all system tests" "$pairs"
unrecorded "$pairs" "no record without pairs" KUnit "all system tests (with failures)"
unrecorded "$pairs" "no record with other pairs" KUnit "all system tests" "pairs: 015"
unrecorded "all system tests" "no record of single tests" KUnit "120 220" "$pairs"
unrecorded "parts 2/2 of" "no record without a part" KUnit "system tests, part 1/2" "$pairs"
unrecorded "parts 2/3 of" "no record of parts of different numbers" KUnit "$pairs" \
	"system tests, part 1/3" "system tests, part 3/3" "system tests, part 2/4"

# map LINE - of the tests of mutants; there is one test
map() {
	mkdir -p "$work/tree/scripts/mutants" "$work/tree/scripts/selftests/group"
	add_to scripts/mutants/map "# $licence" "$1"
	add_to scripts/selftests/group/100-one.sh "# $licence" '# KERNELS: uml'
}

map "sw/kiwarp/main.c 100"
bad "mutants" "wire.c:1: no tests" "a file without tests"
map "sw/kiwarp/* 101"
bad "mutants" "map:2: 0 tests are 101" "a test that is gone"
map "sw/kiwarp/* 100@uml-debug"
bad "mutants" "map:2: 100 does not run on uml-debug" "a kernel that a test is not for"
map "sw/kiwarp/gone.c 100"
bad "mutants" "map:2: no file is sw/kiwarp/gone.c" "tests of nothing"
map "locks:sw/kiwarp/* 100"
bad "mutants" "map:2: no operator is locks" "an operator that is gone"

# chosen WANTED EXECUTE MAP ABOUT - tests of a mutant of line 8, whose function has code in lines 4 and 7
chosen() {
	local rc=0
	PYTHONPATH=$top/scripts/mutants python3 - "$work/reach" "$@" >"$work/out" 2>&1 <<-END || rc=1
	import json, sys
	from pathlib import Path
	import operators, reach
	file, wanted, execute, tests = Path(sys.argv[1]), *(arg.split() for arg in sys.argv[2:5])
	text = "\n\nint f(void)\n{\n\tint a;\n\n\ta = 1;\n\tg(a);\n}\n"
	mutant = lambda text: [m for [m, *_] in operators.mutants("a.c", text) if m.operator == "call"][0]
	lines = {4: ["100", "120", "130"], 7: execute}
	file.write_text(json.dumps({"tests": ["100", "120", "130", "kunit"], "files": {
	    "a.c": reach.table(text, lines)}}))
	tests = [("uml", name) for name in tests]
	known = reach.Reach(file, [(None, "*", ["130", "140@uml-debug"])])
	for kept in text, "int before;\n" + text:
	    found = known.choose(tests, mutant(kept), kept)
	    assert found == [("uml", name) for name in wanted], found
	smp = [("uml-kcsan:2", "120")]
	assert known.choose(smp, mutant(text), text) == smp
	changed = text.replace("f(void)", "f(int b)")
	assert known.choose(tests, mutant(changed), changed) == tests
	END
	result "$rc" "mutants: $4"
}

chosen "100" "100 130" "100 120" "tests that do not execute a line are left out"
chosen "kunit 999" "" "100 kunit 999" "KUnit and new tests are not left out"
chosen "kunit 130" "130" "100 kunit" "another test that executes the line"
chosen "" "" "100" "no test executes the line"

rc=0
PYTHONPATH=$top/scripts/mutants python3 - >"$work/out" 2>&1 <<-END || rc=1
	import operators, record
	text = "int f(void)\n{\n\tg();\n}\n\nint h(void)\n{\n\tg();\n}\n"
	rows = {m.identity(): {"line": m.line(text)} for [m, *_] in operators.mutants("a.c", text)}
	assert len(rows) == 2, rows
	changed = "int more;\n\n" + text.replace("h(void)", "h(int a)")
	found = record.of_present(rows, {"a.c": changed})
	assert [row["line"] for row in found.values()] == [5], found
	assert not record.of_present(rows, {"b.c": text})
END
result "$rc" "mutants: those of functions that have not changed are known"

# mutants FLOOR LINE... - what became of mutants, as recorded
mutants() {
	map "sw/kiwarp/* 100"
	mkdir -p "$work/tree/Documentation"
	add_to scripts/mutants/record '# Commit: none' '# Date: 2026-01-01' '# Seed: 1' "# Floor: $1" "${@:2}"
	PYTHONPATH=$top/scripts/mutants python3 -c 'import record, sys
print(record.page(open(sys.argv[1]).read()), end="")' "$work/tree/scripts/mutants/record" \
		>"$work/tree/Documentation/mutants.rst"
}

killed="killed call sw/kiwarp/main.c:1 0123456789 uml 100"
survived="survived call sw/kiwarp/main.c:2 1123456789"
# counts PATTERN ABOUT - what the check says of a record with nothing wrong
counts() {
	local rc=0
	{ lint --only "^mutants" >/dev/null || :; grep -q "$1" "$work/out" &&
		! grep -q 'scripts/mutants/record:\|mutants.rst:' "$work/out"; } || rc=1
	result "$rc" "mutants: $2"
	good_tree
}

mutants 50 "$killed" "$survived" "= it does nothing"
counts '^# 50.0 % of 2 mutants killed, [1-9]' "their age is said"
mutants 100 "$killed" "$survived" "= Equivalent: it does nothing"
counts '^# 100.0 % of 1 mutants killed' "what is equivalent does not count"
mutants 51 "$killed" "$survived" "= it does nothing"
bad "mutants" "50.0 % killed, the floor is 51 %" "too few mutants killed"
mutants 50 "$killed" "$survived"
bad "mutants" "no answer to 1123456789" "a survivor without an answer"
mutants 50 "$killed" "$survived" "= it does nothing" "what is this"
bad "mutants" "record:8: not a mutant" "a record that cannot be read"
mutants 50 "$killed"
add_to Documentation/mutants.rst more
bad "mutants" "mutants.rst:1: is not what the record says" "a page with other mutants"

# passes CHECK DESCRIPTION - the tree as it is now passes CHECK
passes() {
	local rc=0

	lint --only "^$1" || rc=1
	result "$rc" "$1: $2"
	good_tree
}

# tested LINE... - of the table of commands; the documents have one command
tested() {
	mkdir -p "$work/tree"/{Documentation,man,scripts/{release,selftests/group}}
	add_to README.md "<!-- $licence -->" '' "    rdma link show"
	add_to Documentation/operations.rst ".. $licence"
	add_to man/kiwarp.7 ".\\\" $licence"
	add_to man/kiwarp_ip.7 ".\\\" $licence"
	add_to scripts/release/check.sh "# $licence" 'case_of "a case" documented "links"'
	add_to scripts/release/installed "# $licence"
	add_to scripts/selftests/group/100-one.sh "# $licence"
	add_to scripts/selftests/commands "# $licence" "$@"
}

tested "100-one: rdma link show"
passes "commands of" "one that has its test"
tested "release, links: rdma link show"
passes "commands of" "one that a release's case runs"
tested "same, a case: rdma link show"
passes "commands of" "one that a release's case resembles"
tested
bad "commands of" "README.md:1: not in .*commands: rdma link show" "one that is not in the table"
tested "a: rdma link show" "a: rdma link gone"
bad "commands of" "commands:3: in no document: rdma link gone" "one that is in no document"
tested "101-gone: rdma link show"
bad "commands of" "commands:2: there is no 101-gone" "one whose test is gone"
tested "release, a case: rdma link show"
bad "commands of" "commands:2: there is no release, a case" "one that no release's case runs"
tested "same, links: rdma link show"
bad "commands of" "commands:2: there is no same, links" "one that no release's case resembles"
tested "a: rdma link show" "no: rdma link show"
bad "commands of" "commands:3: twice: rdma link show" "one that is there twice"

# packages - what packages and manuals have of a version, a setting, and a kernel
packages() {
	mkdir -p "$work/tree"/{debian,packaging/{rpm,arch,samples},man,scripts/release,"$driver/compat"}
	add_to VERSION 1.2.3
	add_to debian/changelog 'kiwarp (1.2.3) unstable; urgency=low'
	add_to packaging/rpm/kiwarp.spec 'Version: 1.2.3'
	add_to packaging/arch/PKGBUILD 'pkgver=1.2.3'
	add_to man/kiwarp.7 '.TH KIWARP 7 2026-01-01 "kiwarp 1.2.3" "Linux"' '.BR crc " = y|n (y)"'
	add_to man/kiwarp_ip.7 '.TH KIWARP_IP 7 2026-01-01 "kiwarp 1.2.3" "Linux"'
	add_to "$driver/policy_sysfs.c" 'static struct policy_attr crc_attr = POLICY_ATTR(crc, CRC);'
	add_to packaging/samples/eth0.conf '#crc = y'
	add_to packaging/kiwarp-link 'SETTINGS="crc"'
	add_to packaging/dkms.conf 'BUILD_EXCLUSIVE_KERNEL="^6\.12[.-]"'
	add_to scripts/release/machines.sh 'KERNELS=(6.12 6.12-arm64)'
	add_to "$driver/compat/Kbuild" 'kiwarp-oldest := 6.12' 'kiwarp-newest := 6.12'
}

packages
passes "packages are" "one version, one setting, one kernel"
packages
echo 1.2.4 >"$work/tree/VERSION"
bad "packages are" "kiwarp.spec:1: version 1.2.3, VERSION has 1.2.4" "a version that was left behind"
packages
add_to "$driver/policy_sysfs.c" 'static struct policy_attr rtr_attr = POLICY_ATTR(rtr, RTR);'
bad "packages are" "eth0.conf:1: rtr is not in .*eth0.conf" "a setting that the sample lacks"
packages
add_to man/kiwarp.7 '.BR gone " = y|n (y)"'
bad "packages are" "kiwarp.7:1: gone is no setting of .*policy_sysfs.c" "a setting that is gone"
packages
add_to scripts/release/machines.sh 'KERNELS=(6.12 7.3)'
sed -i 1d "$work/tree/scripts/release/machines.sh"
bad "packages are" "dkms.conf:1: skips 7.3, which .*machines.sh tests" "a kernel that DKMS skips"
packages
sed -i 's/12\[/12?[/' "$work/tree/packaging/dkms.conf"
bad "packages are" "dkms.conf:1: builds for 6.1, which .* does not test" "a kernel without tests"
packages
sed -i 's/newest := .*/newest := 7.3/' "$work/tree/$driver/compat/Kbuild"
bad "packages are" "dkms.conf:1: skips 7.3, which .*Kbuild names" "the newest kernel is skipped"

# refusing EXPRESSION - the driver's own refusals, changed by sed
refusing() {
	mkdir -p "$work/tree/$driver/compat"
	sed "$1" "$top/$driver/compat/Kbuild" >"$work/tree/$driver/compat/Kbuild"
}

refusing ''
passes "kernels that" "as they are"
refusing 's/^kiwarp-oldest := .*/kiwarp-oldest := 5.10/'
bad "kernels that" "Linux 5.15 is not refused" "one that is too old"
refusing 's/^kiwarp-newest := .*/kiwarp-newest := 6.18/'
bad "kernels that" "cannot be built for Linux 7.0: this version knows" "a good one is refused"
refusing 's/ ARM CSKY/ CSKY/'
bad "kernels that" "Linux 6.12 CONFIG_ARM=y is not refused" "caches that alias"
refusing 's/kiwarp cannot be built/stop/'
bad "kernels that" "Linux 2.6 is not refused: .*stop for Linux 2.6" "a refusal in other words"

# commit SUBJECT BODY... - of the tree, which becomes a repository
commit() {
	git -C "$work/tree" init -q
	git -C "$work/tree" -c user.name=A -c user.email=a@b.example commit -q --allow-empty \
		-m "$1" -m "$(printf '%s\n' "${@:2}")"
}
signed='Signed-off-by: A <a@b.example>'

commit "kiwarp: rx: do it" "For a reason." "" "Fixes: 0123456789ab (\"kiwarp: rx: do\")" "$signed"
passes "commits" "a good one"
commit "kiwarp: rx: do what takes sixty-one characters to say it all," "For a reason." "" "$signed"
bad "commits" "more than 60 characters" "a long subject"
commit "rx: do it" "For a reason." "" "$signed"
bad "commits" 'not "kiwarp: area: do what"' "no area"
commit "kiwarp: rx: do it" "$signed"
bad "commits" "no body" "no reason"
commit "kiwarp: rx: do it" "For a reason."
bad "commits" "no Signed-off-by" "not signed off"
commit "kiwarp: rx: do it" "For a reason." "" "Fixes: 0123" "$signed"
bad "commits" "bad Fixes:" "what it fixes is not clear"

add_to "scripts/sample" "echo \$x"
bad "shellcheck" "SC2086" "an unquoted word"
add_to "scripts/sample" "echo \$x"
add_to ".shellcheckrc" "# $licence" "disable=SC2086,SC2154"
rc=0
lint --only "^shellcheck" || rc=1
result "$rc" "shellcheck: an unquoted word that the settings allow"
rm "$work/tree/.shellcheckrc"
bad "shellcheck" "SC2086" "no longer allow it"
# shellcheck disable=SC2016 # for the script
printf '#!/bin/bash\n# shellcheck source=scripts/words\n. scripts/words\necho "$word"\n' \
	>"$work/tree/scripts/says"
printf '#!/bin/bash\nexport word=1\n' >"$work/tree/scripts/words"
rc=0
lint --only "^shellcheck" || rc=1
result "$rc" "shellcheck: a word that another file sets"
printf '#!/bin/bash\n' >"$work/tree/scripts/words"
bad "shellcheck" "says:4:.*SC2154" "no longer sets it"
add_to "scripts/sample.py" 'print('
bad "python compiles" "SyntaxError" "half a call"
add_to "$driver/mr.h" '/* none */'
bad "SPDX" "mr.h:1: no SPDX" "no licence"
add_to "$driver/mr.h" '/* SPDX-License-Identifier: MIT */'
bad "SPDX" "licence is 'MIT'" "another licence"
mkdir -p "$work/tree/Documentation/kernel-faults"
# shellcheck disable=SC2016 # literal backquotes
echo '   * - ``kernel-faults/sample.patch``' >"$work/tree/Documentation/kernel-faults.rst"
cat >"$work/tree/Documentation/kernel-faults/sample.patch" <<-END
	--- a/drivers/infiniband/core/iwcm.c
	+++ b/drivers/infiniband/core/iwcm.c
	@@ -1,2 +1,1 @@
	 what is not
	-in that file
	END
bad "patches for the kernel" "sample.patch: .*FAILED" "a patch that does not apply"
add_to "README" "We reci${nothing}eve."
bad "codespell" "README:2" "a wrong spelling"
add_to "README" "TO${nothing}DO later"
bad "words" "README:2: TO" "a promise"
add_to "README" "see /${nothing}work/x"
bad "words" "machine path" "a machine path"
add_to "README" "see "
bad "words" "trailing whitespace" "a trailing blank"
add_to "README.md" "<!-- $licence -->" "$(printf 'word %.0s' {1..30})word"
bad "words" "154 columns" "a long line of prose"
add_to "README.md" "<!-- $licence -->" "- a list" "  $(printf 'word %.0s' {1..30})word"
bad "words" "156 columns" "a long line of prose in a list"
mkdir -p "$work/tree/Documentation"
add_to Documentation/one.rst ".. $licence" "term" "    $(printf 'word %.0s' {1..30})word"
bad "words" "one.rst:3: 158 columns" "a long line of a definition"
mkdir -p "$work/tree/Documentation"
add_to Documentation/one.rst ".. $licence" "It prints::" '' "    $(printf 'word %.0s' {1..30})word"
rc=0
lint --only "^words" || rc=1
result "$rc" "words: a long line that is quoted"
good_tree
mkdir -p "$work/tree/Documentation"
add_to Documentation/one.rst ".. $licence" '' '=====  ===  ===' '\      a heading' \
	'-----  --------' 'row    a    b' '=====  ===  ===' '1      two  three' '=====  ===  ===' '' \
	'some text'
rc=0
lint --only "^words" || rc=1
result "$rc" "words: a table"
good_tree
mkdir -p "$work/tree/Documentation"
add_to Documentation/one.rst ".. $licence" '' '=====  ===' 'row    a' '=====  ===' 'longer one' \
	'=====  ===' ''
bad "words" "one.rst:6: the text of a table crosses a column" "text that crosses a column"
mkdir -p "$work/tree/Documentation"
add_to Documentation/one.rst ".. $licence" '' '=====  ===' 'row    a' '====  ====' '1      2' \
	'=====  ===' ''
bad "words" "one.rst:5: the text of a table" "a border of other columns"
add_to MAINTAINERS "# $licence" "F:	MAINTAINERS" "F:	README" "F:	$driver/main.c"
bad "every file" "wire.h:1: no entry" "a file that nobody maintains"
add_to MAINTAINERS "# $licence" "F:	MAINTAINERS" "F:	README" "F:	drivers/" "F:	gone/"
bad "every file" "MAINTAINERS:5: no file is gone/" "an entry of nothing"

{
	printf 'void f(void)\n{\n'
	printf '\tg(%d);\n' {1..90}
	echo '}'
} >>"$work/tree/$driver/main.c"
rc=0
{ lint --only sizes && grep -q '^# ! *93 .* f()' "$work/out"; } || rc=1
result "$rc" "sizes: a long function is marked, and no failure"

echo "1..$total"
[ -z "$totals" ] || echo "$((total - failed)) $failed 0" >"$totals"
echo "$((total - failed)) passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
