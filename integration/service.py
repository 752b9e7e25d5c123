"""A real flightsrv process on a free loopback port: shared by the tests, the demo and the benchmark."""

import json
import os
import pathlib
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = ROOT / "bin" / "flightsrv"
ADMIN = ROOT / "bin" / "flight-admin"
# Where a proxy is set, gRPC in C++ would ask it for a loopback address.
os.environ["no_grpc_proxy"] = "127.0.0.1"


def build() -> None:
    """Compile the server and the command line; Go's build cache makes a second call cheap."""
    subprocess.run(["go", "build", "-o", "bin/", "./cmd/flightsrv", "./cmd/flight-admin"], cwd=ROOT, check=True)


class Service:
    """One server over one warehouse. `start` returns when it answers; a warehouse may be started many times."""

    def __init__(self, warehouse, **settings):
        """`settings` are keys of the configuration file, such as limits={"first_message_timeout": "1s"}."""
        self.warehouse = pathlib.Path(warehouse)
        self.log = self.warehouse.with_name(self.warehouse.name + ".log")
        self.config = self.warehouse.with_name(self.warehouse.name + ".yaml")
        self.settings = {"admin_listen": ""} | settings
        self.process = None
        self.uri = None

    def start(self, patience: float = 120) -> "Service":
        # JSON is YAML, so the configuration needs no library.
        self.config.write_text(json.dumps(self.settings))
        ready = self.warehouse.with_name(self.warehouse.name + ".ready")
        ready.unlink(missing_ok=True)
        command = [BINARY, "--listen", "127.0.0.1:0", "--warehouse", self.warehouse]
        command += ["--config", self.config, "--ready-file", ready]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("CONTRAIL_")}
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        deadline = time.monotonic() + patience
        while not ready.exists():
            if not self.alive or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"flightsrv did not start:\n{self.log.read_text()[-4096:]}")
            time.sleep(0.005)
        self.uri = f"grpc://{ready.read_text().strip()}"
        return self

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def path(self, table: str) -> pathlib.Path:
        """The directory of a table of the namespace `default`."""
        return self.warehouse / "default" / table

    def peak_mb(self) -> float:
        """The server's highest resident size so far, in MB."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024

    def cpu_seconds(self) -> float:
        """The server's CPU time so far, user and system."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self, patience: float = 120) -> int:
        """SIGTERM: let running work finish. Returns the exit code."""
        if self.alive:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.kill()
        return self.process.returncode

    def kill(self) -> None:
        """SIGKILL: what a crash of the process leaves."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> "Service":
        return self.start()

    def __exit__(self, *_) -> None:
        self.stop()
