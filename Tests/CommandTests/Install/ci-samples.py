"""Runs the steps of the CI samples as their runners would.

Usage: ci-samples.py github|gitlab FOLDER PACKAGE LIST

Prints the sample's own output; ends with the first status that is not 0.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

SAMPLES = Path(__file__).resolve().parents[3] / "samples/ci"


def github(folder, package, flags):
    action = yaml.safe_load((SAMPLES / "action.yml").read_text())
    inputs = {name: text.get("default") for name, text in action["inputs"].items()}
    inputs.update(package=package, list=flags)
    files = {name: folder / name for name in ("GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    environment = dict(os.environ, RUNNER_TEMP=str(folder), GITHUB_ACTIONS="true", CI="true")
    for name, file in files.items():
        file.touch()
        environment[name] = str(file)
    assert action["runs"]["using"] == "composite"
    steps = [step for step in action["runs"]["steps"] if "run" in step]
    assert len(steps) == 2 and all(step["shell"] == "bash" for step in steps)
    for step in steps:
        given = {name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: inputs[found[1]], text)
                 for name, text in step["env"].items()}
        path = ":".join(files["GITHUB_PATH"].read_text().split() + [environment["PATH"]])
        # The shell of a step with `shell: bash`.
        subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], check=True,
            cwd=folder, env=dict(environment, **given, PATH=path))
    outputs = files["GITHUB_OUTPUT"].read_text()
    for name, output in action["outputs"].items():
        assert output["value"] == f"${{{{ steps.run.outputs.{name} }}}}"
        assert f"{name}=" in outputs, outputs
    print(outputs)


def gitlab(folder, package, flags):
    job = yaml.safe_load((SAMPLES / "prefetch.gitlab-ci.yml").read_text())[".prefetch"]
    environment = dict(os.environ, CI_PROJECT_DIR=str(folder), CI="true")
    for name, value in dict(
            job["variables"], PREFETCH_PACKAGE=package, PREFETCH_LIST=flags).items():
        environment[name] = value.replace("$CI_PROJECT_DIR", str(folder))
    script = "\n".join(job["before_script"] + job["script"])
    subprocess.run(["sh", "-ec", script], check=True, cwd=folder, env=environment)
    for path in job["cache"]["paths"] + [job["artifacts"]["reports"]["junit"]]:
        assert (folder / path).exists(), path


kind, target, *arguments = sys.argv[1:]
{"github": github, "gitlab": gitlab}[kind](Path(target), *arguments)
