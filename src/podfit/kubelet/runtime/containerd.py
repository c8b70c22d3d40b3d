"""A private containerd: started as a child, adopted by the next kubelet after a restart.

It is a child in a session of its own, with its own root, state and socket, so the system's containerd, if there is
one, is never touched, and Ctrl-C at the terminal reaches only us. It outlives a killed parent on purpose, as do the
containers; the next launcher on the same directory adopts it, and knows it by its command line, which names that
directory. (A file with its id could be missing: the parent may be killed between starting and writing.) When it dies it
is started again: the containers run on, and containerd finds them.

    DIR/                  config.toml, containerd.log, root/, opt/, cni/      kept
    /run/podfit-<hash>/   containerd.sock, state/, runc/     while it runs; a Unix path has 107 bytes at most
"""

import asyncio
import contextlib
import hashlib
import logging
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec

from podfit.core.clock import Clock
from podfit.kubelet.runtime.archives import Importer
from podfit.kubelet.runtime.shims import end_childless
from podfit.net.files import write_atomic
from podfit.net.processes import CNI_FOLDERS, start_ticks

log = logging.getLogger(__name__)

START_SECONDS = 30.0
STOP_SECONDS = 10.0
STEP = 0.01
RESTART_SECONDS = 0.2
CAP_SYS_RESOURCE = 24
PLUGIN_KEYS = ("conf_dir", "bin_dir")
SHIM_FOLDERS = (Path("/run/containerd/s"), Path("/run/containerd"))  # made by shims whatever the config; left if in use


class ContainerdFailed(Exception):
    """It did not start; the text ends with what it said last."""


class OtherPlugins(ContainerdFailed):
    """One runs already, for pods of other plugins."""


class _Process(msgspec.Struct, frozen=True):
    """The start time, in clock ticks, tells a process from a later one with the same id."""

    pid: int
    start: int


class Plugins(msgspec.Struct, frozen=True):
    """Where CNI configurations are, and the programs that they name."""

    configurations: Path
    programs: Path


class Places(msgspec.Struct, frozen=True):
    """Where a private containerd keeps its things. `tag` tells data directories apart on one machine."""

    root: Path

    @property
    def tag(self) -> str:
        return hashlib.sha256(str(self.root).encode()).hexdigest()[:10]

    @property
    def run(self) -> Path:
        return Path("/run") / f"podfit-{self.tag}"

    @property
    def socket(self) -> Path:
        return self.run / "containerd.sock"

    @property
    def log(self) -> Path:
        return self.root / "containerd.log"

    @property
    def config(self) -> Path:
        return self.root / "config.toml"

    @property
    def own_plugins(self) -> Plugins:
        """Configurations of our own making, for plugins of the distribution."""
        folder = next((folder for folder in CNI_FOLDERS if Path(folder, "ptp").exists()), CNI_FOLDERS[0])
        return Plugins(self.root / "cni", Path(folder))

    def known_plugins(self) -> Plugins | None:
        """Those that `_config` wrote for the last one that was started; None where that cannot be read."""
        try:
            lines = (line.strip().partition(" = ") for line in self.config.read_text().splitlines())
            said = {name: msgspec.json.decode(value, type=str) for name, _, value in lines if name in PLUGIN_KEYS}
            return Plugins(*(Path(said[name]) for name in PLUGIN_KEYS))
        except (OSError, ValueError, LookupError, msgspec.DecodeError):
            return None

    @property
    def arguments(self) -> tuple[str, ...]:
        return "--config", str(self.config)


class Containerd:
    """`start` adopts or launches; `watch` keeps it alive until cancelled; `stop` ends it. Without `plugins` those of
    the last one count, else our own: who takes pods down has to ask whoever gave them their addresses.
    """

    def __init__(self, root: Path, *, sandbox_image: str, clock: Clock, plugins: Plugins | None = None) -> None:
        self.places = Places(root)
        self._plugins = plugins
        self._sandbox_image = sandbox_image
        self._clock = clock
        self._process: _Process | None = None
        self._begun = False  # and not waited for yet
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    @property
    def importer(self) -> "Importer":
        return Importer(shutil.which("ctr") or "ctr", self.places.socket)

    def begin(self) -> None:
        """Adopt it or launch it, without waiting for it. Raises ContainerdFailed."""
        self._process = _running(self.places.arguments)
        if self._process is None:
            self._launch()
        else:
            self._check_plugins()
        self._begun = True

    def _check_plugins(self) -> None:
        """One that runs reads the configurations that it was started with."""
        before = self.places.known_plugins()
        if self._plugins and before and before.configurations != self._plugins.configurations:
            raise OtherPlugins(f"its containerd runs with the CNI configurations of {before.configurations}")

    async def start(self) -> None:
        """Returns when the socket takes connections. Raises ContainerdFailed."""
        if not self._begun:
            self.begin()
        self._begun = False
        await self._answering()

    async def watch(self, restarted: Callable[[], None]) -> None:
        """`restarted` is called when there is another process, with another `pid`."""
        while True:
            await self._clock.sleep(RESTART_SECONDS)
            before = self.pid
            try:
                await self.revive()
            except (ContainerdFailed, OSError) as error:  # the node is unhealthy for as long as it does not answer
                log.warning("containerd does not start, trying again error=%s", error)
                continue
            if self.pid != before:
                restarted()

    async def revive(self) -> None:
        """Start it again if it has died; also one that was adopted while it was dying."""
        if not self._alive():
            log.warning("containerd died and is started again pid=%d", self.pid)
            self._launch()
            await self._answering()

    async def stop(self) -> None:
        """End it, by its id, and remove what it had under /run. Containers must be gone."""
        process = self._process or _running(self.places.arguments)
        if process is not None and self._alive_process(process):
            os.kill(process.pid, signal.SIGTERM)
            deadline = self._clock.monotonic() + STOP_SECONDS
            while self._alive_process(process) and self._clock.monotonic() < deadline:
                await self._clock.sleep(STEP)
            if self._alive_process(process):
                os.kill(process.pid, signal.SIGKILL)
        self._process = None
        end_childless(self.places.socket)
        shutil.rmtree(self.places.run, ignore_errors=True)
        for directory in SHIM_FOLDERS:
            with contextlib.suppress(OSError):
                directory.rmdir()

    def _launch(self) -> None:
        places = self.places
        for directory in (places.root, places.run, places.root / "cni"):
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        plugins = self._plugins or places.known_plugins() or places.own_plugins
        write_atomic(places.config, _config(places, self._sandbox_image, plugins).encode())
        program = shutil.which("containerd")
        if program is None:
            raise ContainerdFailed("containerd is not installed")
        if self._child is not None:
            self._child.wait()
        with places.log.open("ab") as output:
            self._child = subprocess.Popen(
                [program, *places.arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd="/",
            )
        self._process = _Process(self._child.pid, start_ticks(self._child.pid) or 0)

    async def _answering(self) -> None:
        deadline = self._clock.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_unix_connection(self.places.socket)
                writer.close()
                return
            if not self._alive() or self._clock.monotonic() > deadline:
                raise ContainerdFailed(f"containerd does not answer on {self.places.socket}: {self._last_words()}")
            await asyncio.sleep(STEP)

    def _alive(self) -> bool:
        return self._process is not None and self._alive_process(self._process)

    def _alive_process(self, process: _Process) -> bool:
        if self._child is not None and self._child.pid == process.pid:
            return self._child.poll() is None
        return start_ticks(process.pid) == process.start

    def _last_words(self) -> str:
        try:
            return self.places.log.read_text(errors="replace").strip().splitlines()[-1]
        except (OSError, IndexError):
            return "it said nothing"


def _running(arguments: tuple[str, ...]) -> _Process | None:
    """Our user's containerd with these arguments, left running by an earlier process of ours."""
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            program, *given = (directory / "cmdline").read_bytes().rstrip(b"\0").decode(errors="replace").split("\0")
            ours = directory.stat().st_uid == os.geteuid()
        except OSError:
            continue
        pid = int(directory.name)
        if ours and tuple(given) == arguments and Path(program).name == "containerd" and (start := start_ticks(pid)):
            return _Process(pid, start)
    return None


def can_lower_oom_score() -> bool:
    """Whether this process may make another one less likely to be killed; containers inherit it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> CAP_SYS_RESOURCE & 1)
    return False


def _config(places: Places, sandbox_image: str, plugins: Plugins) -> str:
    """Version 2, which containerd 1.6 reads and 2.x migrates on load."""
    restrict = str(not can_lower_oom_score()).lower()
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""version = 2
root = {_quoted(places.root / "root")}
state = "{places.run}/state"
oom_score = 0
[grpc]
  address = "{places.socket}"
[ttrpc]
  address = "{places.socket}.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = {_quoted(places.root / "opt")}
[plugins."io.containerd.nri.v1.nri"]
  disable = true
[{cri}]
  sandbox_image = "{sandbox_image}"
  disable_apparmor = {str(not Path("/sys/module/apparmor").exists()).lower()}
  restrict_oom_score_adj = {restrict}
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  netns_mounts_under_state_dir = true
  [{cri}.cni]
    bin_dir = {_quoted(plugins.programs)}
    conf_dir = {_quoted(plugins.configurations)}
  [{cri}.containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [{cri}.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [{cri}.containerd.runtimes.runc.options]
        BinaryName = "{shutil.which("runc") or "runc"}"
        Root = "{places.run}/runc"
        SystemdCgroup = false
"""


def _quoted(path: Path) -> str:
    """A TOML string; its escapes are JSON's."""
    return msgspec.json.encode(str(path)).decode()
