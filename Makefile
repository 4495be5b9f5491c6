# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# For people; the kernel's make reads Kbuild. The work is done by that and by scripts/.

KERNELRELEASE ?= $(shell uname -r)
KERNELDIR ?= /lib/modules/$(KERNELRELEASE)/build
# Of a package: where the root of its file system is
DESTDIR ?=
INSTALL_MOD_PATH ?= $(DESTDIR)
# Below /lib/modules/RELEASE. Unless depmod is configured otherwise, modules in "updates" are
# preferred to those of the kernel.
INSTALL_MOD_DIR ?= updates
# Of "make install-tools"
UNIT_DIR ?= /usr/lib/systemd/system
DOC_NAME ?= kiwarp-tools

TOP := $(CURDIR)
KBUILD = $(MAKE) -C $(KERNELDIR) M=$(TOP)
KO := drivers/infiniband/sw/kiwarp/kiwarp.ko
# Built only if the kernel has rdma_cm
KO_IP := drivers/infiniband/ulp/kiwarp_ip/kiwarp_ip.ko
# The release of the kernel of KERNELDIR, which may differ from the one that runs. Modules get it
# from this header. On Debian 12 the kernel's `make kernelrelease` prints another release, so its
# modules_install is not used: it would install into a directory that modprobe does not search.
UTSRELEASE = $(KERNELDIR)/include/generated/utsrelease.h
RELEASE = $(or $(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' $(UTSRELEASE) 2>/dev/null),$(KERNELRELEASE))
INSTALLED = $(INSTALL_MOD_PATH)/lib/modules/$(RELEASE)/$(INSTALL_MOD_DIR)/
# What DKMS builds from
VERSION := $(shell cat VERSION)
DKMS_SRC = $(DESTDIR)/usr/src/kiwarp-$(VERSION)
# The keys for "make sign": by default those that DKMS makes
SIGN_KEY ?= /var/lib/dkms/mok.key
SIGN_CERT ?= /var/lib/dkms/mok.pub
SIGN_HASH ?= sha256
DEPMOD = depmod $(if $(INSTALL_MOD_PATH),-b $(INSTALL_MOD_PATH)) $(RELEASE)

all: modules

modules: | $(KERNELDIR)/Makefile
	+$(KBUILD) modules

clean: | $(KERNELDIR)/Makefile
	+$(KBUILD) clean

# Builds only if there is no kiwarp.ko, so that root leaves no files in the tree after "make"
install: $(KO)
	@set -- $$(modinfo -F vermagic $(KO)); if [ "$$1" != "$(RELEASE)" ]; then \
		echo "kiwarp.ko was built for $$1, not $(RELEASE): run 'make clean; make' first" >&2; \
		exit 1; \
	fi
	install -d $(INSTALLED)
	install -m 0644 $(KO) $(wildcard $(KO_IP)) $(INSTALLED)
	$(DEPMOD)

uninstall:
	rm -f $(INSTALLED)kiwarp.ko $(INSTALLED)kiwarp_ip.ko
	$(DEPMOD)

$(KO): | $(KERNELDIR)/Makefile
	+$(KBUILD) modules

# Signs what was built, for kernels that load signed modules only; before "make install"
sign: $(KO)
	@test -r $(SIGN_KEY) && test -r $(SIGN_CERT) || { \
		echo "cannot read $(SIGN_KEY) and $(SIGN_CERT): give SIGN_KEY= and SIGN_CERT=" >&2; \
		echo "(Documentation/operations.rst, Secure Boot)" >&2; exit 1; }
	for ko in $(wildcard drivers/infiniband/*/*/*.ko); do \
		$(KERNELDIR)/scripts/sign-file $(SIGN_HASH) $(SIGN_KEY) $(SIGN_CERT) $$ko || exit 1; \
	done

# The sources of the modules, without tests, where DKMS looks for them
install-dkms:
	install -d $(DKMS_SRC)
	cp -r --preserve=timestamps Kbuild Makefile LICENSE VERSION drivers include $(DKMS_SRC)
	find $(DKMS_SRC) -type f ! -name '*.[ch]' ! -name Kbuild ! -name Makefile ! -name LICENSE \
		! -name VERSION -delete
	find $(DKMS_SRC) -name '*.mod.c' -delete
	sed 's/#MODULE_VERSION#/$(VERSION)/' packaging/dkms.conf >$(DKMS_SRC)/dkms.conf

# What makes links last, the man pages, and samples
install-tools:
	install -D -m 0755 packaging/kiwarp-link $(DESTDIR)/usr/lib/kiwarp/kiwarp-link
	install -D -m 0644 -t $(DESTDIR)$(UNIT_DIR) packaging/systemd/kiwarp@.service
	install -D -m 0644 -t $(DESTDIR)/usr/share/man/man7 man/kiwarp.7 man/kiwarp_ip.7
	install -D -m 0644 -t $(DESTDIR)/usr/share/doc/$(DOC_NAME)/samples packaging/samples/*.conf \
		packaging/samples/*.py packaging/samples/*.yaml
	install -d $(DESTDIR)/etc/kiwarp

# Tarball and sums, and the packages, in dist/
dist:
	scripts/release/dist.sh

deb:
	scripts/release/deb.sh

# What takes too long for "make check": packages installed, used and purged in guests.
# DEBIAN=bookworm, PARTS="packages units", CASES=REGEX are a part of it.
check-release:
	scripts/release/check.sh $(if $(DEBIAN),--debian $(DEBIAN)) $(if $(CASES),--cases '$(CASES)') $(PARTS)

# The documents as HTML, in docs-out/
docs:
	scripts/docs/build.sh

# Against the header packages of Debian's releases, for three machines; KERNELS="REGEX..." are some
check-kernels:
	scripts/release/kernels.sh $(KERNELS)

# A few tests on Debian's kernels for three machines; MACHINES="6.1-s390x ..." are some
check-machines:
	scripts/release/machines.sh $(MACHINES)

lint:
	scripts/lint/check.sh

kunit:
	scripts/kunit/run.sh

# TESTS="130 wire": only the system tests whose names begin with one of these or whose folder is one
# of these, where "make check" runs them. MINUTES=N: no system test begins after that
check:
	$(if $(TESTS),scripts/selftests/check $(if $(MINUTES),--seconds '$(MINUTES)*60') $(TESTS),\
		scripts/check.sh $(if $(MINUTES),--minutes $(MINUTES)))

# The system tests on all kernels that they support, with the exceptions that
# Documentation/testing.rst, Kernels, lists: hours
check-all:
	scripts/selftests/check --all --plan scripts/selftests/plan-all

# The system tests of one guest on devices of the type kiwarp-ext, on these kernels as far as they
# support them, with the same exceptions: hours
check-ext:
	KIW_LINK_TYPE=kiwarp-ext scripts/selftests/check --kernel 6.12:2 --kernel uml-debug \
		--kernel 6.1 --kernel uml --plan scripts/selftests/plan-ext

# The kernel's own users of RDMA: NFS, iSER, NVMe and so on, on more kernels than 'make check' runs
# them on, and on pairs of guests of the three kernels without detectors.
ULP_TESTS = 31 32 33 34 35

check-ulp:
	scripts/selftests/check --kernel 6.12:2 --kernel 6.1 --kernel uml-debug --kernel uml \
		--plan scripts/selftests/plan-all $(ULP_TESTS)
	scripts/selftests/check --pair --kernel 6.12 --kernel 6.1 --kernel uml \
		--plan scripts/selftests/plan-all $(ULP_TESTS)

# FUZZ_SECONDS=n for each harness
fuzz:
	scripts/fuzz/run.sh

fuzz-forever:
	scripts/fuzz/run.sh --forever $(or $(HARNESS),$(error HARNESS=name of scripts/fuzz/name.c))

# Sessions of the wire peer, most of them changed at random, for FUZZ_SECONDS=n
fuzz-wire:
	KIW_SOAK=$(or $(FUZZ_SECONDS),600) scripts/selftests/check --kernel uml-debug 255

# Calls of uverbs and rdma_cm in random order against a model, for FUZZ_SECONDS=n, without coverage
fuzz-calls:
	KIW_SOAK=$(or $(FUZZ_SECONDS),600) scripts/selftests/check --kernel uml-debug 131

# Inputs on the wire, in the rings, and calls, guided by the code that they run, on both link types:
# FUZZ_SECONDS=n for each of the six. FUZZ="--kernel uml wire": options, see the head of the script
fuzz-guided:
	FUZZ_SECONDS=$(or $(FUZZ_SECONDS),600) scripts/fuzz/guided.sh $(FUZZ)

# What races, with two CPUs: under KASAN and lockdep, and under KCSAN
RACE_TESTS = 030 035 036 123 127 128 129 133 245 300

check-races:
	scripts/selftests/check --kernel uml-smp:2 --kernel smp-debug:2 --kernel uml-kcsan:2 \
		$(RACE_TESTS) 990

# Which lines and branches the tests execute. COVERAGE="--compare": options of the script
coverage:
	scripts/coverage/run.sh $(COVERAGE)

# Changes to the drivers that some test should notice: N of them, drawn with SEED; PART=i/n does every
# nth. MUTANTS="--files 'sw/kiwarp/cm/*'": more options, see the head of run.py
mutants:
	scripts/mutants/run.sh --number $(or $(N),20) --seed $(or $(SEED),1) --part $(or $(PART),1/1) $(MUTANTS)

# rdma-core's own tests, of Debian 12 and 13, on siw, kiwarp and kiwarp-ext
pyverbs:
	scripts/pyverbs/run.sh

# With the libraries and programs of Debian 13, on either link type
TRIXIE_TESTS = 100 110 120 121 123 125 126 128 145 147

check-trixie:
	KIW_ROOT=trixie scripts/selftests/check --kernel uml $(TRIXIE_TESTS)
	KIW_ROOT=trixie KIW_LINK_TYPE=kiwarp-ext scripts/selftests/check --kernel uml $(TRIXIE_TESTS)

# On devices of the type kiwarp-ext: sizes, random verbs, the attack on rdma_cm, one word to which
# all add, windows. The hostile rings of 245 are those of both types anyway.
EXT_SOAKS = 125 127 129 145 147

# SOAK_SECONDS=n for each of its tests that can run for any time
soak:
	KIW_SOAK=$(or $(SOAK_SECONDS),600) scripts/selftests/check --kernel uml-debug --kernel 6.12:2 \
		125 127 129 132 245 260 $(ULP_TESTS)
	KIW_SOAK=$(or $(SOAK_SECONDS),600) KIW_LINK_TYPE=kiwarp-ext scripts/selftests/check \
		--kernel uml-debug --kernel 6.12:2 $(EXT_SOAKS)
	KIW_SOAK=$(or $(SOAK_SECONDS),600) scripts/selftests/check --kernel uml-smp:2 --kernel smp-debug:2 \
		--kernel uml-kcsan:2 $(RACE_TESTS)
	KIW_SOAK=$(or $(SOAK_SECONDS),600) scripts/selftests/check --pair --kernel 6.1 --kernel 6.12 \
		$(ULP_TESTS)

# BENCH="--quick --rounds 3": options of the script, see its head
bench:
	scripts/bench/run.sh $(BENCH)

demo:
	scripts/demo.sh

help:
	@echo 'make               build kiwarp.ko and kiwarp_ip.ko for the running kernel'
	@echo 'make install       install them (as root), then: modprobe kiwarp'
	@echo 'make uninstall     remove them again (as root)'
	@echo 'make clean         remove what was built'
	@echo ''
	@echo 'make install-tools persistent links and man pages: see man/kiwarp.7'
	@echo 'make install-dkms  the sources to /usr/src, for dkms'
	@echo 'make sign          sign what was built, for Secure Boot: SIGN_KEY=, SIGN_CERT='
	@echo 'make deb           Debian packages, in dist/'
	@echo 'make dist          a tarball of the last commit and its sums, in dist/'
	@echo ''
	@echo 'make demo          see it work, in two throw-away virtual machines'
	@echo 'make check         lint, KUnit, fuzzing and system tests'
	@echo 'make check TESTS="130 wire"   only these system tests, by name or folder'
	@echo 'make check-all     the system tests on all kernels that they support: hours'
	@echo 'make check-ext     the system tests of one guest on devices of the type kiwarp-ext: hours'
	@echo 'make check-ulp     NFS, iSER, NVMe and so on only, on the kernels that have them'
	@echo 'make check-races   tests of races, on two CPUs with KASAN and lockdep, and with KCSAN'
	@echo 'make soak          random verbs, attacks, NFS and so on for SOAK_SECONDS (600) each'
	@echo 'make bench         throughput and cost, compared with siw, rxe and TCP'
	@echo 'make check-release the packages, installed and used in guests'
	@echo 'make check-kernels builds for the kernels of Debian 12 to experimental: x86, arm64, s390x'
	@echo 'make check-machines runs a few tests on kernels 6.1 to 7.3 of these machines'
	@echo 'make lint          static checks only'
	@echo 'make docs          the documents as HTML, in docs-out/'
	@echo 'make kunit         KUnit suites only, in about a minute'
	@echo 'make fuzz          the parsers under libFuzzer, a few seconds each'
	@echo 'make fuzz-forever HARNESS=mpa   one of them until it finds something'
	@echo 'make fuzz-wire     changed sessions on the wire, for FUZZ_SECONDS (600)'
	@echo 'make fuzz-calls    random system calls against a model, for FUZZ_SECONDS (600)'
	@echo 'make fuzz-guided   wire, rings and calls, guided by coverage, for FUZZ_SECONDS (600) each'
	@echo 'make coverage      lines and branches that the tests execute, as HTML too: hours'
	@echo 'make mutants N=20 SEED=1 PART=1/1   are changes to the drivers noticed by the tests?'
	@echo 'make pyverbs       the tests of rdma-core itself, on siw, kiwarp, kiwarp-ext'
	@echo 'make check-trixie  tests of verbs with the libraries and programs of Debian 13'
	@echo ''
	@echo 'Variables: KERNELRELEASE or KERNELDIR (another kernel), DESTDIR or'
	@echo 'INSTALL_MOD_PATH (another root), INSTALL_MOD_DIR (default: updates), KIWARP_TESTS=n'

# An order-only prerequisite, for a message that helps
$(KERNELDIR)/Makefile:
	@echo 'There are no kernel headers in $(KERNELDIR).' >&2
	@echo 'On Debian: apt install linux-headers-$(KERNELRELEASE)' >&2
	@false

.PHONY: all modules clean install uninstall sign install-dkms install-tools dist deb check-release docs lint kunit check check-all check-ext check-ulp check-races fuzz fuzz-forever fuzz-wire fuzz-calls fuzz-guided coverage mutants check-kernels check-machines pyverbs check-trixie soak bench demo help
