#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""intree.py KIWARP SOURCE OUT: the driver as files of a kernel tree, without compat/.

KIWARP is this tree, SOURCE that of a kernel, which is only read. OUT gets the new files, and those
of SOURCE that name them: Kconfig, Makefiles, MAINTAINERS. upstream.sh makes patches of it.

The sources use compat/ where kernels differ. The rules below replace each use by what it means in
the kernel of SOURCE. Two headers of compat/ also have functions that no kernel has; they become
headers of the driver. A use of compat/ without a rule is an error.
"""

import re
import sys
from pathlib import Path

SW = "drivers/infiniband/sw/kiwarp/"
ULP = "drivers/infiniband/ulp/kiwarp_ip/"
UAPI = "include/uapi/rdma/kiwarp-abi.h"
DOCS = "Documentation/infiniband/kiwarp/"
OLDEST = (6, 12, 0)
COLUMNS = 100

# Headers of compat/ that stay: where, and what they are
HEADERS = {
    SW + "compat/dmabuf.h": (SW + "mem/dmabuf_vmap.h",
                             "Mapping a dma-buf whose exporter may lack memory."),
    SW + "compat/net.h": (SW + "sock/tcp.h",
                          "Calls of TCP that need more than one line; for the sock files only."),
}

SPDX = "SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause"


def rules(version):
    """(pattern, replacement) of each use of compat/ in the sources, for that kernel."""
    yield r'#include "compat/dmabuf\.h"', '#include "dmabuf_vmap.h"'
    yield (r'#include <rdma/ib_verbs\.h>\n\n#include "compat/verbs\.h"\n',
           "#include <rdma/ib_verbs.h>\n#include <rdma/uverbs_ioctl.h>\n")
    yield (r'#include <net/ipv6\.h>\n(#include <net/sock\.h>\n\n)#include "compat/net\.h"\n',
           r"#include <net/ipv6.h>\n\1" if version >= (7, 2) else
           r"#include <net/ipv6_stubs.h>\n#include <net/ipv6.h>\n\1")
    if version < (6, 15):
        yield r"#include <net/netdev_lock\.h>\n", ""
    yield r'\n\n#include "compat/\w+\.h"\n\n', "\n\n"
    yield r'#include "compat/\w+\.h"\n', ""
    yield r"kiw_compat_assign_str\((\w+), \w+\)", r"__assign_str(\1)"
    yield r"kiw_compat_timer_delete_sync", "timer_delete_sync"
    yield (r"\tkiw_compat_hrtimer_setup\((.*), (\w+), (\w+),\s+(\w+)\);",
           r"\thrtimer_setup(\1, \2, \3, \4);" if version >= (6, 13) else
           r"\thrtimer_init(\1, \3, \4);\n\tdb->timer.function = \2;")
    yield (r"KIW_COMPAT_IMPORT_DMA_BUF\(\)",
           'MODULE_IMPORT_NS("DMA_BUF")' if version >= (6, 13) else "MODULE_IMPORT_NS(DMA_BUF)")
    yield r"kiw_compat_dma_buf_vunmap", "dma_buf_vunmap_unlocked"
    yield r"kiw_compat_dma_buf_lock\(buf\)", "dma_resv_lock(buf->resv, NULL)"
    yield r"kiw_compat_dma_buf_unlock\(buf\)", "dma_resv_unlock(buf->resv)"
    yield r"KIW_COMPAT_UBUF_OPS\((\w+), (\w+)\)", (
        r"static const struct ubuf_info_ops \1 = {\n\t.complete = \2,\n}")
    yield r"kiw_compat_ubuf_set\(&(.+), (&\w+)\)", r"\1.ops = \2"
    yield r"kiw_compat_sk_no_task_frag\((\w+)\)", r"\1->sk_use_task_frag = false"
    yield r"kiw_compat_(?:create_cq|dmabuf)_arg", "struct uverbs_attr_bundle"
    yield r"kiw_compat_cq_udata\(arg\)", "arg ? &arg->driver_udata : NULL"
    yield r"kiw_compat_dmabuf_udata\(arg\)", "&arg->driver_udata"
    yield r"; compat/verbs\.h defines the kiw_compat_ types", ""
    yield r"\tkiw_compat_fill_res_srq\(.*\);\n", ""
    yield (r"(\t\.fill_res_qp_entry = .*\n)",
           r"\1\t.fill_res_srq_entry = kiw_fill_res_srq_entry,\n")
    yield r"\tkiw_compat_resize_cq\(.*\);\n", ""
    yield r"kiw_compat_cqe", "int" if version < (7, 2) else "unsigned int"
    resize = "resize_cq" if version < (7, 2) else "resize_user_cq"
    yield r"(\t\.create_cq = .*\n)", rf"\1\t.{resize} = kiw_resize_cq,\n"
    if version < (7, 2):
        yield r"ib_umem_get_va", "ib_umem_get"
    yield from registrations(version)
    if version < (6, 19):
        yield r"struct sockaddr_unsized \*", "struct sockaddr *"
    yield r"kip_compat_mc_", "ipv6_sock_mc_" if version >= (7, 2) else "ipv6_stub->ipv6_sock_mc_"
    if version < (6, 17):
        yield r"WQ_PERCPU \| ", ""
    yield r"system_percpu_wq", "system_percpu_wq" if version >= (6, 17) else "system_wq"
    yield r"kiw_compat_vma_flags", "vm_flags_set"
    yield r"kiw_compat_name_by_user", "ib_mark_name_assigned_by_user"
    yield r"\tif \(.* && !kiw_compat_cm_matches_netdev\(\)\) \{\n(?:\t\t.*\n)*\t\}\n", ""
    yield r"KIP_COMPAT_BIN_CONST ", "const " if version >= (6, 16) else ""
    yield (r"kip_compat_net_refs\(net\)",
           "refcount_read(&net->ns.__ns_ref)" if version >= (6, 18) else
           "refcount_read(&net->ns.count)")
    if version >= (6, 15):
        yield (r"(int netlink_newlink)\(struct net \*net, (struct net_device \*\w+), .*\n.*\)\n\{\n",
               r"\1(\2, struct rtnl_newlink_params *params,\n"
               "\t\t\t   struct netlink_ext_ack *extack)\n{\n"
               "\tstruct net *net = rtnl_newlink_link_net(params);\n"
               "\tstruct nlattr **tb = params->tb;\n")
    else:
        yield (r"(int netlink_newlink\(struct net \*net, struct net_device \*\w+, struct nlattr \*tb\[\],\n"
               r"\s+)struct netlink_ext_ack \*extack\)", r"\1struct nlattr *data[], struct netlink_ext_ack *extack)")
    yield (r"KIP_COMPAT_NEWLINK\(netlink_compat_newlink, netlink_newlink\)\n\n((?:.*\n)*?)(\t\.newlink = )netlink_compat_newlink,",
           r"\1\2netlink_newlink,")
    yield r"\bkiw_compat_(?=dma_buf_vmap|sk_charge_caller|send_bvec)", "kiw_"
    # A module of the tree has no version of its own
    yield r"MODULE_VERSION\(KIWARP_VERSION\);\n", ""
    yield r"Documentation/(?=[\w-]+\.rst)", DOCS
    if version < (6, 14):
        yield r"\tselect CRC32\n", "\tselect LIBCRC32C\n"


def registrations(version):
    """Rules for ib_device_ops.reg_user_mr and .reg_user_mr_dmabuf, which know DMA handles or not."""
    for macro, name, function, first, mine, last in (
            ("REG_USER_MR", "verbs_reg_user_mr", "kiw_reg_user_mr",
             "u64 start, u64 length", "u64 virt_addr, int access", "struct ib_udata *udata"),
            ("REG_DMABUF", "verbs_reg_dmabuf", "kiw_reg_user_mr_dmabuf",
             "u64 offset, u64 length", "u64 virt_addr, int fd, int access",
             "struct uverbs_attr_bundle *attrs")):
        use = rf"KIW_COMPAT_{macro}\({name}, {function}\)\n"
        if version < (6, 17):
            yield use + r"\n", ""
            yield rf"(\t\.\w+ = ){name},", rf"\1{function},"
        else:
            head = f"static struct ib_mr *{name}("
            below = "\t" * (len(head) // 8) + " " * (len(head) % 8)
            names = ", ".join(re.findall(r"(\w+)(?:,|$)", f"{first}, {mine}, {last}"))
            yield use, (f"{head}struct ib_pd *pd, {first},\n{below}{mine},\n"
                        f"{below}struct ib_dmah *dmah, {last})\n{{\n"
                        "\tif (dmah)\n\t\treturn ERR_PTR(-EOPNOTSUPP);\n"
                        f"\treturn {function}(pd, {names});\n}}\n")


class Failed(Exception):
    """The translation is not possible; the message says why."""


def read(path):
    return path.read_text(encoding="utf-8")


def kernel_version(source):
    text = read(source / "Makefile")
    numbers = [re.search(rf"^{name} = (\d+)$", text, re.M)
               for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL")]
    if not all(numbers):
        raise Failed(f"{source} is no kernel's source")
    version = tuple(int(number[1]) for number in numbers)
    if version < OLDEST:
        raise Failed("the kernel has to be 6.12 or newer: compat/ is for older ones")
    return version


def has(name, version):
    """Does a kernel of that version have the interface of the probe, in a header that stays?"""
    last = {"KIW_HAS_NS_TOKENS": (6, 13), "KIW_HAS_RPS_IN_SOCK": (6, 9),
            "KIW_HAS_TCP_SENDPAGES": (6, 5)}
    return version < last.get(name, (99,))


def evaluate(text, version):
    """The text without the code for other kernels; other conditions stay."""
    out, stack = [], []     # a condition of ours: is this branch taken; of others: None
    for line in text.splitlines(keepends=True):
        test = re.match(r"#if(n?)def (KIW_HAS_\w+)$", line.rstrip())
        if test:
            stack.append(has(test[2], version) != (test[1] == "n"))
            continue
        if line.startswith("#if"):
            stack.append(None)
        elif line.startswith("#else") and stack[-1] is not None:
            stack[-1] = not stack[-1]
            continue
        elif line.startswith("#endif") and stack.pop() is not None:
            continue
        if False not in stack:
            out.append(line)
    return re.sub(r"\n{3,}", "\n\n", "".join(out))


def drop_macros(text):
    """The text without the macros and the one-line function that the rules replace."""
    text = re.sub(r"(/\*(?:(?!\*/)[\s\S])*\*/\n)?(?:#define \w+\(.*\n)+\n", "", text)
    return re.sub(r"/\*(?:(?!\*/)[\s\S])*\*/\nstatic inline void kiw_compat_sk_no_task_frag\(.*\n"
                  r"\{\n(?:\t.*\n)*\}\n\n", "", text)


def header(text, path, what, version):
    """A header of compat/ that becomes one of the driver."""
    guard = "KIW_" + re.sub(r"\W", "_", Path(path).name).upper()
    text = drop_macros(evaluate(text, version))
    text = re.sub(r"\bKIW_COMPAT_\w+_H\b", guard, text)
    return re.sub(r"^/\*.*\*/\n/\*.*\*/\n", f"/* {SPDX} */\n/* {what} */\n", text)


def align(text):
    """Aligns continuation lines with the open parenthesis of a function that was renamed."""
    out, shift = [], 0
    for line in text.split("\n"):
        if shift:
            width = len(line.expandtabs(8)) - len(line.lstrip()) - shift
            line = "\t" * (width // 8) + " " * (width % 8) + line.lstrip()
        match = re.search(r"\bkiw_(compat_)(?:dma_buf_vmap|sk_charge_caller|send_bvec)\(", line)
        if match and line.count("(") > line.count(")"):
            shift = len(match[1])
        elif ")" in line:
            shift = 0
        out.append(line)
    return "\n".join(out)


def fit(text):
    """Wraps comments whose lines have become too long."""
    out, todo = [], text.split("\n")[::-1]
    while todo:
        line = todo.pop()
        whole = re.fullmatch(r"(\s*)/\* (.*) \*/", line)
        start = re.match(r"\s*\* ", line)
        if len(line.expandtabs(8)) <= COLUMNS or not (whole or start):
            out.append(line)
        elif whole:
            todo += [whole[1] + " */", f"{whole[1]} * {whole[2]}", whole[1] + "/*"]
        else:
            at = line.rindex(" ", start.end(), COLUMNS - 7 * line.count("\t"))
            out.append(line[:at])
            rest = start[0] + line[at + 1:]
            if re.match(re.escape(start[0]) + r"[^@\s]", todo[-1]):
                rest += " " + todo.pop()[start.end():]
            todo.append(rest)
    return "\n".join(out)


def translate(text, path, version, used):
    text = align(text)
    for number, (pattern, replacement) in enumerate(rules(version)):
        text, count = re.subn(pattern, replacement, text)
        if count:
            used.add(number)
    left = re.search(r".*compat.*|.*COMPAT.*|.*KIW_(?:KERNEL_SINCE|HAS_).*", text)
    if left:
        raise Failed(f"{path}: no rule for: {left[0].strip()}")
    return fit(text) if path.endswith((".c", ".h")) else text


def makefile(text, module, symbol):
    """A Kbuild of this tree as a Makefile of the kernel's."""
    text = re.sub(r"^(# SPDX.*\n)(?:#.*\n)*", r"\1#" + f"\n# {module}.ko\n", text)
    text = re.sub(r"obj-\$\(if .*?\) \+=", f"obj-$({symbol}) +=", text, count=1)
    return re.sub(r"ccflags-\$\(if .*?\) \+=", "ccflags-y +=", text)


def kconfig(text):
    return re.sub(r"^(# SPDX.*\n)(?:#.*\n)*\n", r"\1", text)


def tests_makefile(folder, module, suites):
    lines = [f"# {SPDX}", "#", f"# {module}.ko: every suite in one module. A suite includes the source",
             "# that it tests, so that static functions are visible there.", "",
             f"obj-$(CONFIG_{folder}_KUNIT_TEST) += {module}.o", "", "ccflags-y += -I$(src)/..", "",
             f"{module}-y := module.o"]
    return "\n".join(lines + [f"{module}-y += {suite}.o" for suite in suites]) + "\n"


KUNITCONFIG = """CONFIG_KUNIT=y
CONFIG_NET=y
CONFIG_INET=y
CONFIG_PCI=y
CONFIG_INFINIBAND=y
CONFIG_INFINIBAND_ADDR_TRANS=y
"""


class Tree:
    """The tree in OUT."""

    def __init__(self, kiwarp, source, out):
        self.kiwarp, self.source, self.out = kiwarp, source, out
        self.version = kernel_version(source)
        self.used = set()

    def write(self, name, text):
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def put(self, name, text):
        """Writes a file; translates its uses of compat/ and its names of documents."""
        self.write(name, translate(text, name, self.version, self.used))

    def sources(self):
        for folder in (SW, ULP):
            for path in sorted((self.kiwarp / folder).rglob("*")):
                name = path.relative_to(self.kiwarp).as_posix()
                if path.suffix in (".c", ".h") and not path.name.endswith(".mod.c"):
                    if not name.startswith(folder + "compat/"):
                        self.put(name, self.with_headers(name, read(path)))
        for name, (new, what) in HEADERS.items():
            self.put(new, header(read(self.kiwarp / name), new, what, self.version))
        self.put(UAPI, read(self.kiwarp / UAPI))

    @staticmethod
    def with_headers(name, text):
        """Sources of sock/ include the new header behind their own."""
        if name.startswith(SW + "sock/") and '#include "compat/net.h"' in text:
            text = text.replace('#include "compat/net.h"\n', "")
            text = text.replace('#include "sock.h"\n', '#include "sock.h"\n#include "tcp.h"\n', 1)
        return text

    def build_files(self):
        for folder, module, symbol in ((SW, "kiwarp", "CONFIG_RDMA_KIWARP"),
                                       (ULP, "kiwarp_ip", "CONFIG_RDMA_KIWARP_IP")):
            self.put(folder + "Makefile", makefile(read(self.kiwarp / folder / "Kbuild"),
                                                   module, symbol))
            self.put(folder + "Kconfig", kconfig(read(self.kiwarp / folder / "Kconfig")))

    def tests(self):
        kunit = self.kiwarp / "kunit"
        suites = sorted(path.stem for path in kunit.glob("*_kunit.c"))
        for folder, module, config, own in (
                (SW, "kiwarp_kunit", "RDMA_KIWARP",
                 [name for name in suites if not name.startswith("kip_")]),
                (ULP, "kiwarp_ip_kunit", "RDMA_KIWARP_IP",
                 [name for name in suites if name.startswith("kip_")])):
            tests = folder + "tests/"
            for name in own:
                self.put(f"{tests}{name}.c", read(kunit / f"{name}.c"))
            self.put(tests + "util.h", read(kunit / "util.h"))
            self.put(tests + "module.c", read(kunit / "module.c").replace(
                "kiwarp_kunit", module).replace("kiwarp's", module.partition("_kunit")[0] + "'s"))
            self.put(tests + "Makefile", tests_makefile(config, module, own))
            self.put(tests + ".kunitconfig", KUNITCONFIG + f"CONFIG_{config}_KUNIT_TEST=y\n")
        self.put(f"{SW}tests/rings.h", read(kunit / "rings.h"))
        for path in sorted((kunit / "vectors").glob("*.h")):
            self.put(f"{SW}tests/vectors/{path.name}", read(path))

    def documents(self):
        """Writes the documents that comments name, and an index of them."""
        text = "".join(read(path) for path in self.out.rglob("*.[ch]"))
        names = sorted(set(re.findall(re.escape(DOCS) + r"([\w-]+)\.rst", text)))
        for name in names:
            text = read(self.kiwarp / f"Documentation/{name}.rst")
            text = re.sub(r"^\.\. graphviz:: ", ".. kernel-figure:: ", text, flags=re.M)
            self.write(f"{DOCS}{name}.rst", text)
            for picture in re.findall(r"^\.\. kernel-figure:: (\S+)$", text, re.M):
                self.write(DOCS + picture, read(self.kiwarp / f"Documentation/{picture}"))
        self.write(DOCS + "index.rst", f".. {SPDX}\n\n======\nkiwarp\n======\n\n.. toctree::\n\n"
                   + "".join(f"   {name}\n" for name in names))

    def insert(self, name, anchor, line):
        """LINE goes before the first line of a file of SOURCE that matches ANCHOR."""
        text = read(self.source / name)
        new, count = re.subn(rf"^(?={anchor})", line.replace("\\", r"\\"), text, count=1, flags=re.M)
        if not count:
            raise Failed(f"{name} of this kernel has no line {anchor}")
        self.write(name, new)

    def hooks(self):
        infiniband = "drivers/infiniband/"
        self.insert(infiniband + "Kconfig", r'source "drivers/infiniband/sw/rxe/Kconfig"',
                    f'source "{SW}Kconfig"\n')
        text = read(self.out / infiniband / "Kconfig")
        anchor = 'source "drivers/infiniband/ulp/rtrs/Kconfig"\n'
        if anchor not in text:
            raise Failed(f"{infiniband}Kconfig of this kernel does not name rtrs")
        self.write(infiniband + "Kconfig", text.replace(anchor, f'source "{ULP}Kconfig"\n' + anchor))
        self.insert(infiniband + "sw/Makefile", r"obj-\$\(CONFIG_RDMA_RXE\)",
                    "obj-$(CONFIG_RDMA_KIWARP)\t\t+= kiwarp/\n"
                    "obj-$(CONFIG_RDMA_KIWARP_KUNIT_TEST)\t+= kiwarp/tests/\n")
        self.insert(infiniband + "ulp/Makefile", r"obj-\$\(CONFIG_INFINIBAND_RTRS\)",
                    "obj-$(CONFIG_RDMA_KIWARP_IP)\t\t+= kiwarp_ip/\n"
                    "obj-$(CONFIG_RDMA_KIWARP_IP_KUNIT_TEST)\t+= kiwarp_ip/tests/\n")
        self.maintainers()

    def maintainers(self):
        ours = read(self.kiwarp / "MAINTAINERS")
        person = re.search(r"^M:\t.*\n", ours, re.M)[0]
        entry = ("KIWARP SOFTWARE IWARP DRIVER\n" + person + "L:\tlinux-rdma@vger.kernel.org\n"
                 "S:\tMaintained\n" + f"F:\t{DOCS}\nF:\t{SW}\nF:\t{ULP}\nF:\t{UAPI}\n\n")
        text = read(self.source / "MAINTAINERS")
        before = [heading.start() for heading in re.finditer(r"^K(?!:\t).*\n(?=[A-Z]:\t)", text, re.M)
                  if heading[0] < "KIWARP"]
        if not before:
            raise Failed("MAINTAINERS of this kernel has no entry before KIWARP")
        at = text.index("\n\n", before[-1]) + 2
        self.write("MAINTAINERS", text[:at] + entry + text[at:])

    def fill(self):
        self.sources()
        self.build_files()
        self.tests()
        self.documents()
        self.hooks()
        for number, (pattern, _) in enumerate(rules(self.version)):
            if number not in self.used:
                raise Failed(f"no source has what this rule is for: {pattern}")


def main():
    if len(sys.argv) != 4:
        sys.exit(f"usage: {Path(sys.argv[0]).name} KIWARP SOURCE OUT")
    try:
        Tree(*map(Path, sys.argv[1:])).fill()
    except (Failed, OSError) as error:
        sys.exit(f"intree.py: {error}")


if __name__ == "__main__":
    main()
