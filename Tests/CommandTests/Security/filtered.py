"""Runs a program behind a filter of system calls, as a container or systemd would.

usage: filtered.py refuse ERRNO CALL,... PROGRAM ARGUMENT...   these calls fail with the error
       filtered.py unit FILE PROGRAM ARGUMENT...               others than the unit's end the process
"""

import ctypes
import os
import re
import struct
import subprocess
import sys

ALLOW, ERROR, KILL = 0x7FFF0000, 0x00050000, 0x80000000


def numbers():
    """Returns the numbers of system calls by name."""
    text = subprocess.run(
        ["cc", "-E", "-dM", "-include", "sys/syscall.h", "-xc", "/dev/null"], check=True,
        capture_output=True, text=True).stdout
    return {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)\n", text)}


def members(group):
    """Returns the calls of a systemd group, with those of the groups in it."""
    if not group.startswith("@"):
        return {group}
    text = subprocess.run(
        ["systemd-analyze", "syscall-filter", "--no-pager", group], check=True,
        capture_output=True, text=True).stdout
    lines = [line.strip() for line in text.splitlines()[1:]]
    return set().union(*(members(line) for line in lines if line and not line.startswith("#")))


def allowed(unit):
    calls = set()
    for value in re.findall(r"^SystemCallFilter=(.*)$", open(unit).read(), re.MULTILINE):
        group = set().union(*(members(name) for name in value.removeprefix("~").split()))
        calls = calls - group if value.startswith("~") else calls | group
    # SQLite gives its files to the folder's owner when it runs as root, which the service does not.
    return calls | members("@default") | ({"fchown"} if os.geteuid() == 0 else set())


def install(actions, default):
    """Sets the filter of this process: an action for each number of a call."""
    program = struct.pack("HBBI", 0x20, 0, 0, 0)
    for number, action in actions.items():
        program += struct.pack("HBBI", 0x15, 0, 1, number) + struct.pack("HBBI", 0x06, 0, 0, action)
    program += struct.pack("HBBI", 0x06, 0, 0, default)
    buffer = ctypes.create_string_buffer(program, len(program))
    filter = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)
    if libc.prctl(22, 2, ctypes.create_string_buffer(filter, len(filter)), 0, 0) != 0:
        sys.exit("the filter cannot be set")


known = numbers()
if sys.argv[1] == "refuse":
    error, calls, *command = sys.argv[2:]
    install({known[call]: ERROR | int(error) for call in calls.split(",")}, ALLOW)
else:
    unit, *command = sys.argv[2:]
    install({known[call]: ALLOW for call in allowed(unit) if call in known}, KILL)
os.execv(command[0], command)
