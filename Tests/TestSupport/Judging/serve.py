"""Runs judge.py and small programs in one process: starting an interpreter and importing Pillow takes
longer than most of them.

Each line of standard input is a JSON request with the folder in which the program runs:

    {"folder": F, "judge": [ARGUMENT...]}                           judge.py
    {"folder": F, "program": TEXT, "arguments": [ARGUMENT...]}      python3 -c TEXT ARGUMENT...

The response is the program's output, its exit status on a separate line, and a null byte. The server
exits at the end of standard input.
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
        # A function of the program would otherwise keep its databases open.
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
        except Exception:  # later requests may succeed
            traceback.print_exc()
            status = 1
    os.umask(mask)
    # A working directory would prevent its file system from being unmounted.
    os.chdir("/")
    print(f"{output.getvalue()}{status}\n", end="\0", flush=True)
