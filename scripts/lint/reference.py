#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Documentation/reference.rst lists what users can name: all of it, and nothing else.

In each of the sections below, the names are the literals of lines that begin with ``name`` and a
comma, or have nothing else.
The source has a name wherever one of the section's patterns matches.
"""

import re

import counters
import source

REFERENCE = "Documentation/reference.rst"
DRIVER = "drivers/infiniband/sw/kiwarp/"
IP_DRIVER = "drivers/infiniband/ulp/kiwarp_ip/"

# Heading: (file, pattern)...
SECTIONS = {
    "Link types": [(DRIVER + "netlink.c", r'\.type = "([\w-]+)"'),
                   (IP_DRIVER + "netlink.c", r'\.kind = "(\w+)"')],
    "Settings": [(DRIVER + "policy.c", r"module_param_cb\((\w+)"),
                 (DRIVER + "policy_sysfs.c", r"= POLICY_ATTR\((\w+)")],
    "Counters": [(DRIVER + "stats.h", r'^\s*X\(\w+,\s*"(\w+)"\)')],
    "Monitoring files": [(DRIVER + "monitor_sysfs.c", r"^MONITOR_COUNTER\((\w+),|= __ATTR\((\w+)")],
    "Details of resources": [(DRIVER + "verbs/verbs_res.c",
                              r'res_put_\w+\(&?table,\s*"(\w+)"')],
    "Trace events": [(DRIVER + "trace.h", r"^(?:TRACE_EVENT\(|DEFINE_EVENT\(\w+, )(\w+)")],
    "Settings of kiwarp_ip": [(IP_DRIVER + "sysfs.c",
                               r"^(?:STORE|static \w+_ATTR_RW)\((\w+)[^\n]*\);$")],
    "Counters of kiwarp_ip": [(IP_DRIVER + "stats.h", r'^\s*X\(\w+,\s*"(\w+)"\)')],
}
# A line of names: what follows the first is a comma or nothing
NAMES = re.compile(r"\s*``[\w-]+``(?:,|$)")
MANUAL = re.compile(r"man/(\w+)\.(\d)$")
SAMPLE = re.compile(r"packaging/samples/(.+)$")


def in_source(tree, patterns):
    """{name: where}"""
    found = {}
    for path, pattern in patterns:
        for match in re.finditer(pattern, tree.text(path), re.M) if path in tree.files else ():
            found.setdefault(next(filter(None, match.groups())), path)
    return found


def listed(lines, heading):
    """{name: line} of a section"""
    return {name: number for number, line in counters.section(lines, heading)
            if NAMES.match(line) for name in re.findall(r"``([\w-]+)``", line)}


def check(tree):
    if REFERENCE not in tree.files:
        return
    lines = tree.lines(REFERENCE)
    for heading, patterns in SECTIONS.items():
        wanted, found = in_source(tree, patterns), listed(lines, heading)
        for name in sorted(wanted.keys() - found.keys()):
            yield f"{wanted[name]}:1: {name} is not in {REFERENCE}, {heading}"
        for name in sorted(found.keys() - wanted.keys()):
            yield f"{REFERENCE}:{found[name]}: {name} is not in {patterns[0][0]}"
    named = set(re.findall("``[^`]+``", tree.text(REFERENCE)))
    for path in tree.files:
        page, sample = MANUAL.match(path), SAMPLE.match(path)
        name = page and f"{page[1]}({page[2]})" or sample and sample[1]
        if name and not {f"``{name}``", f"``{path}``"} & named:
            yield f"{path}:1: {name} is not in {REFERENCE}"


if __name__ == "__main__":
    source.run(check)
