"""Run every native fuzz target of the module for a while, one a core: fuzz.py [duration, default 10s].

Targets are found, not listed, so a new one cannot be forgotten. A failing input stays in the package's testdata/fuzz,
where it is a regression test from then on.
"""

import concurrent.futures
import os
import subprocess
import sys


def targets() -> list[tuple[str, str]]:
    """Return (package, target) of every fuzz target, in the order in which Go lists them."""
    listed = subprocess.run(["go", "test", "-list", "^Fuzz", "./..."], capture_output=True, text=True)
    if listed.returncode:
        sys.exit(listed.stdout + listed.stderr)
    found, names = [], []
    for line in listed.stdout.splitlines():
        if line.startswith("Fuzz"):
            names.append(line.strip())
        elif line.startswith("ok"):
            found += [(line.split()[1], name) for name in names]
            names = []
    return found


def smoke(package: str, name: str, duration: str) -> bool:
    """Fuzz one target; True if no input failed."""
    command = ["go", "test", "-run", "^$", "-fuzz", f"^{name}$", "-fuzztime", duration]
    # Minimising large inputs would take all of the time.
    command += ["-fuzzminimizetime", "10x", "-parallel", "1", package]
    for _ in range(4):
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if run.returncode == 0:
            print(f"ok    {name} {package}", flush=True)
            return True
        # Go's fuzzer now and then reports its own deadline as a failure; only then are more tries fair.
        if "context deadline exceeded" not in run.stdout or "Failing input written" in run.stdout:
            break
    print(f"FAIL  {name} {package}\n{run.stdout}", flush=True)
    return False


def main() -> None:
    duration = sys.argv[1] if len(sys.argv) > 1 else "10s"
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda target: smoke(*target, duration), targets()))
    print(f"fuzz: {sum(results)} passed, {results.count(False)} failed")
    if not results or not all(results):
        sys.exit(1)


if __name__ == "__main__":
    main()
