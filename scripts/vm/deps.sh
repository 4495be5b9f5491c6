#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# deps.sh: installs the packages that make check, make demo and make lint need on Debian 12.
# Returns quickly if all are installed.

set -u
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/lib.sh"

PACKAGES=(
	# compiling kernels and modules
	build-essential bc bison flex libelf-dev libssl-dev kmod dwarves cpio
	rsync xz-utils zstd linux-source-6.1 linux-source-6.12
	# looking at the source
	sparse shellcheck codespell universal-ctags python3 perl git
	# guests
	qemu-system-x86 debootstrap debian-archive-keyring squashfs-tools
	# fuzzing, and programs for guests
	clang-14 libclang-rt-14-dev libibverbs-dev librdmacm-dev libfabric-dev
	# what went over the wire
	tshark
)

need_packages "${PACKAGES[@]}" || die "packages missing"
