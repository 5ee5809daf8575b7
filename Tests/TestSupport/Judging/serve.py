"""Runs small programs one after the other, the judge of caches among them: starting an interpreter
and loading Pillow takes longer than most of what they do.

Each line of standard input is a request in JSON, with the folder in which the program runs:

    {"folder": F, "judge": [ARGUMENT...]}                           judge.py
    {"folder": F, "program": TEXT, "arguments": [ARGUMENT...]}      python3 -c TEXT ARGUMENT...

The answer is what it printed, its exit status as a line of its own, and a null byte. The server ends
with its standard input.
"""

import contextlib
import io
import json
import os
import sys
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import judge


def run(program, arguments):
    sys.argv = ["-c", *arguments]
    names = {"__name__": "__main__"}
    try:
        exec(compile(program, "program", "exec"), names)
    finally:
        # A function of the program would keep its open databases alive.
        names.clear()
    return 0


def answer(request):
    os.chdir(request["folder"])
    if "judge" in request:
        return judge.main(request["judge"])
    return run(request["program"], request["arguments"])


for line in sys.stdin:
    output = io.StringIO()
    mask = os.umask(0o022)
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            status = answer(json.loads(line))
        except Exception:  # the next request may be a better one
            traceback.print_exc()
            status = 1
    os.umask(mask)
    # Nobody's folder is kept from being unmounted.
    os.chdir("/")
    print(f"{output.getvalue()}{status}\n", end="\0", flush=True)
