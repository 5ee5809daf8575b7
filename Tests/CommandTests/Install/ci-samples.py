"""Runs the jobs of docs/recipes/ci.md as their runners would.

Usage: ci-samples.py github|gitlab FOLDER

FOLDER is the repository: it has images.txt and the package. Prints the job's own output; ends with
the first status that is not 0.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "samples/ci"
RECIPE = [yaml.safe_load(block) for block in re.findall(
    r"```yaml\n(.*?)```", (ROOT / "docs/recipes/ci.md").read_text(), re.DOTALL)]


def github(folder):
    job = next(block["jobs"]["images"] for block in RECIPE if "jobs" in block)
    chosen = next(step["with"] for step in job["steps"] if step["uses"].startswith("./"))
    action = yaml.safe_load((SAMPLES / "action.yml").read_text())
    assert set(chosen) <= set(action["inputs"]), chosen
    inputs = {name: text.get("default") for name, text in action["inputs"].items()} | chosen
    files = {name: folder / name for name in ("GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    environment = dict(os.environ, RUNNER_TEMP=str(folder), GITHUB_ACTIONS="true", CI="true")
    for name, file in files.items():
        file.touch()
        environment[name] = str(file)
    assert action["runs"]["using"] == "composite"
    # The cache is saved also when the run fails, under the key that the next one restores.
    restore, *_, save = action["runs"]["steps"]
    assert restore["uses"].startswith("actions/cache/restore@"), restore
    assert save["uses"].startswith("actions/cache/save@") and save["if"] == "always()", save
    assert save["with"].items() <= restore["with"].items(), save
    assert save["with"]["key"].startswith(restore["with"]["restore-keys"]), save
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
    assert (folder / "results.xml").exists()
    print(outputs)


def gitlab(folder):
    recipe = next(block for block in RECIPE if "include" in block)
    template = yaml.safe_load((SAMPLES / recipe["include"]).read_text())
    job = template[recipe["images"]["extends"]]
    environment = dict(os.environ, CI_PROJECT_DIR=str(folder), CI="true")
    for name, value in (job["variables"] | recipe["images"]["variables"]).items():
        environment[name] = value.replace("$CI_PROJECT_DIR", str(folder))
    script = "\n".join(job["before_script"] + job["script"])
    # Libraries have other names in each release of Debian.
    installed = re.findall(r"apt-get install((?: -\S+)*)((?: \S+)*?);", script)
    assert [words.split() for _, words in installed] == [["curl"]], installed
    assert job["cache"]["when"] == "always"
    subprocess.run(["sh", "-ec", script], check=True, cwd=folder, env=environment)
    for path in job["cache"]["paths"] + [job["artifacts"]["reports"]["junit"]]:
        assert (folder / path).exists(), path


kind, target = sys.argv[1:]
{"github": github, "gitlab": gitlab}[kind](Path(target))
