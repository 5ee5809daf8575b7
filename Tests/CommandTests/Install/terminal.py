"""Presses Tab in a real shell on a terminal, and prints what the terminal shows.

Usage: terminal.py SHELL SCRIPT < LINES

Reads a JSON array of command lines, and prints a JSON array with a text for each: the line with
its completion, or the candidates. A line that is not completed within 120 seconds ends the program
with status 1 and its name.
"""

import json
import os
import pty
import re
import select
import sys
import time

DEADLINE_SECONDS = 120
KILL_LINE = "\x15"
PROMPT = "ready> "
SHELLS = {
    "bash": (["/bin/bash", "--norc", "--noprofile", "-i"], [
        "source /usr/share/bash-completion/bash_completion", "source {script}",
        "bind 'set show-all-if-ambiguous on'", "bind 'set page-completions off'",
        "bind 'set completion-query-items 0'", "bind 'set bell-style none'", "PS1='rea''dy> '",
    ]),
    "zsh": (["/bin/zsh", "-f", "-i"], [
        "autoload -U compinit", "compinit -D -u", "source {script}", "compdef _prefetch prefetch",
        "LISTMAX=0", "unsetopt beep promptsp", "PS1='rea''dy> '",
    ]),
    "fish": (["/usr/bin/fish", "--no-config", "-i"], [
        "source {script}", "set -g fish_autosuggestion_enabled 0", "function fish_prompt; echo -n 'rea''dy> '; end",
    ]),
}
# Escape sequences and the like, which change the look only.
ESCAPES = re.compile(r"\x1b(\[[0-9;?>=]*[a-zA-Z]|\][^\x07]*\x07|[()].|[=>])|[\x07\x0f\x0e]")


class Terminal:
    def __init__(self, arguments):
        self.process, self.descriptor = pty.fork()
        if self.process == 0:
            os.execve(arguments[0], arguments, dict(os.environ, TERM="xterm", COLUMNS="200"))
        self.count = 0

    def type(self, keys):
        os.write(self.descriptor, keys.encode())

    def read_until_done(self, name):
        """Types a command with a marker as output, waits for the next prompt, and returns
        everything shown before the marker.
        """
        self.count += 1
        self.type(f'echo fin""ished{self.count}.\n')
        marker = f"finished{self.count}."
        text, shown = "", b""
        end = time.monotonic() + DEADLINE_SECONDS
        # Keys that arrive before the prompt are the terminal driver's, not the shell's.
        while marker not in text or PROMPT not in text.split(marker)[-1]:
            ready, _, _ = select.select(
                [self.descriptor], [], [], max(0, end - time.monotonic()))
            if not ready:
                sys.exit(f"{name!r} was not completed in {DEADLINE_SECONDS} s: {text[-500:]!r}")
            shown += os.read(self.descriptor, 65536)
            text = ESCAPES.sub("", shown.decode(errors="replace"))
        return text.split(marker)[0]


def main():
    shell, script = sys.argv[1:]
    arguments, setup = SHELLS[shell]
    terminal = Terminal(arguments)
    for command in setup:
        terminal.type(command.format(script=script) + "\n")
    terminal.read_until_done("the start of the shell")
    shown = []
    for line in json.load(sys.stdin):
        terminal.type(line + "\t" + KILL_LINE)
        shown.append(terminal.read_until_done(line))
    terminal.type("exit\n")
    os.close(terminal.descriptor)
    os.waitpid(terminal.process, 0)
    json.dump(shown, sys.stdout)


main()
