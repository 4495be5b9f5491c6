#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# upstream.sh SOURCE DIR: DIR gets the driver as a patch series for the kernel whose source tree is
# SOURCE, Linux 6.12 or newer. SOURCE is only read. intree.py translates what is for other kernels.
# Each room is a patch, so that each can be read alone; the last patch makes the kernel build them,
# so that no kernel in between fails to build. Documentation/upstream.rst has more.
#
# The same trees give the same patches.

set -eu
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"

SW=drivers/infiniband/sw/kiwarp
ULP=drivers/infiniband/ulp/kiwarp_ip
HOOKS=(MAINTAINERS drivers/infiniband/Kconfig drivers/infiniband/sw/Makefile
	drivers/infiniband/ulp/Makefile)

# tree_git ARGS...: on the tree that the patches are made from, without the user's settings
tree_git() {
	HOME=$WORK GIT_CONFIG_NOSYSTEM=1 git -C "$WORK/tree" -c user.name="$NAME" \
		-c user.email="$EMAIL" "$@"
}

# patch_of SUBJECT BODY PATH...: a commit of these files and folders of the new tree
patch_of() {
	local path
	for path in "${@:3}"; do
		mkdir -p "$WORK/tree/$(dirname "$path")"
		cp -r "$WORK/new/$path" "$WORK/tree/$(dirname "$path")"
	done
	tree_git add -A
	tree_git commit -q -s -m "$1" -m "$(fmt -w 72 <<<"$2")"
}

# room NAME WHAT BODY
room() {
	patch_of "RDMA/kiwarp: Add $2" "$3" "$SW/$1"
}

# beside FOLDER: prints the files of a module that are in none of its folders
beside() {
	(cd "$WORK/new" && find "$1" -maxdepth 1 -type f)
}

kiwarp_patches() {
	local -a files
	patch_of "RDMA/kiwarp: Add the user ABI" \
		"The layout is version 1 of the ABI of siw: rdma-core's siw provider drives both." \
		include/uapi/rdma/kiwarp-abi.h
	room proto "the protocols" \
		"MPA, DDP and RDMAP (RFC 5040, 5041, 5044, 6581) as bytes and numbers. Nothing here
allocates memory, takes a lock or knows a socket. The state machines of
queue pairs and endpoints are tables."
	room mem "memory regions" \
		"The STag table, pinned and fast-registered memory, dma-bufs. A lookup takes no lock:
it runs in an SRCU read-side critical section of the table."
	room queue "queues" \
		"Work requests in the driver's own format, completion queues, shared receive queues,
and the lists of outstanding work."
	room sock "streams over TCP" \
		"The only files that know TCP. Data is read in place from the receive queue, and sent
with MSG_SPLICE_PAGES."
	room qp "queue pairs" \
		"The object, its state, the lookup by number, and the rule who may name one."
	room tx "the transmit engine" \
		"FPDUs are built in batches that fill TCP segments. Payload is copied, and the bytes
that were checksummed are the bytes that are sent."
	room rx "the receive engine" \
		"An FPDU is verified before any of it takes effect, and placed where its header says."
	room run "what runs the engines" \
		"The poster, the doorbell of processes, the tasklet and the work item of a queue pair."
	room cm "connections" \
		"The provider side of iw_cm: endpoints, listeners, MPA startup."
	room verbs "the verbs" \
		"ib_device_ops, and the adapter between the rings that processes map and the queues."
	mapfile -t files < <(beside "$SW")
	patch_of "RDMA/kiwarp: Add the device" \
		"\"rdma link add\" makes a device, which goes with its network interface. Settings are
in sysfs, counters in rdma-statistic, events in tracefs." "${files[@]}"
	patch_of "RDMA/kiwarp: Add KUnit tests" \
		"They cover the protocols, the lists of outstanding work, reading from a receive queue,
and the layout of the user ABI. Each suite includes the file that it tests." "$SW/tests"
}

ip_patches() {
	local -a files
	mapfile -t files < <(beside "$ULP")
	patch_of "IB/kiwarp_ip: Add IP over connected mode for iWARP" \
		"A network interface that applies RFC 4755 to iWARP, with deviations. It uses the verbs
and rdma_cm, and no interface of a particular driver." "$ULP/proto" "${files[@]}"
	patch_of "IB/kiwarp_ip: Add KUnit tests" "They cover proto/, which has no side effects." \
		"$ULP/tests"
}

series() {
	kiwarp_patches
	ip_patches
	patch_of "Documentation: infiniband: Describe kiwarp" \
		"The documents that comments of the driver refer to." Documentation/infiniband/kiwarp
	patch_of "RDMA: Build kiwarp and kiwarp_ip" \
		"The files are complete now. This adds them to the configuration and to MAINTAINERS." \
		"${HOOKS[@]}"
}

# begin SOURCE: makes a repository with the files that the last patch changes
begin() {
	local hook
	mkdir -p "$WORK/tree"
	for hook in "${HOOKS[@]}"; do
		install -D -m 0644 "$1/$hook" "$WORK/tree/$hook"
	done
	tree_git init -q
	tree_git add -A
	tree_git commit -q -m base
	tree_git tag base
}

# cover: prints the text of the cover letter
cover() {
	local letter
	letter=("$1"/0000-*)
	sed -i -e 's/\*\*\* SUBJECT HERE \*\*\*/RDMA: Add kiwarp, a software iWARP device/' \
		-e "/\*\*\* BLURB HERE \*\*\*/{r $WORK/blurb
			d}" "${letter[0]}"
}

blurb() {
	cat <<-'END'
	kiwarp is an RDMA device in software: MPA, DDP and RDMAP over the kernel's
	TCP. It is an alternative to siw with the same user ABI, so that a stock
	rdma-core drives it.

	It differs from siw in how it is built. Protocol code is separate from
	what has side effects, and tested by KUnit. State machines are tables.
	There is no thread for each object: the poster and TCP's softirq do the
	work. Everything that a peer or a process can ask for is bounded, and has
	a counter.

	Each folder of the driver is a patch, from the bottom up. The last patch
	adds all of it to the configuration.
	END
}

main() {
	local source=${1:?usage: upstream.sh SOURCE DIR} dir=${2:?usage: upstream.sh SOURCE DIR} person
	source=$(cd "$source" && pwd)
	mkdir -p "$dir"
	dir=$(cd "$dir" && pwd)
	WORK=$(mktemp -d "${TMPDIR:-/tmp}/kiwarp-upstream.XXXXXX")
	trap 'rm -rf "$WORK"' EXIT
	person=$(sed -n 's/^M:\t//p' "$KIW_TOP/MAINTAINERS" | head -n 1)
	NAME=${person% <*}
	EMAIL=${person#*<}
	EMAIL=${EMAIL%>}
	# Of the source, so that the patches do not depend on the day
	GIT_AUTHOR_DATE=$(stat -c %Y "$source/Makefile")
	GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE
	export GIT_AUTHOR_DATE GIT_COMMITTER_DATE
	"$KIW_TOP/scripts/release/intree.py" "$KIW_TOP" "$source" "$WORK/new"
	begin "$source"
	series
	rm -f "$dir"/[0-9][0-9][0-9][0-9]-*.patch
	blurb >"$WORK/blurb"
	tree_git format-patch -q --cover-letter --signature='' -o "$dir" base..HEAD
	cover "$dir"
}

main "$@"
