"""An engine for this run, where none answers and `dockerd` is installed; base images, pulled or made. Needs root for both.

The engine's images stay in a folder (`TRAWL_ENGINE_DIR`, /var/tmp/trawl-engine), so the next run begins with them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .engine import EARLIER, EARLIER_IMAGE, IMAGES, ROOT, Failed, docker, wait

PULL_S = 90.0
_FOLDER = Path(os.environ.get("TRAWL_ENGINE_DIR", "/var/tmp/trawl-engine"))


def _answers() -> bool:
    try:
        return not subprocess.run(("docker", "info"), capture_output=True, check=False, timeout=60).returncode
    except subprocess.TimeoutExpired:
        return False


@contextmanager
def running() -> Iterator[None]:
    """With an engine, where one answers or can be started; it ends with the block."""
    startable = not os.geteuid() and shutil.which("docker") and shutil.which("dockerd")
    if not startable or _answers():
        yield
        return
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="trawl-engine-", dir="/run") as state, (_FOLDER / "log").open("wb") as log:
        address = f"unix://{state}/socket"
        folders = ("--data-root", str(_FOLDER / "data"), "--exec-root", f"{state}/exec", "--pidfile", f"{state}/pid")
        words = ("dockerd", *folders, "-H", address, "--log-driver", "local")
        process = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
        before = os.environ.get("DOCKER_HOST")
        os.environ["DOCKER_HOST"] = address
        try:
            with suppress(Failed):  # `missing` says that none answers; why stands in its log
                wait(lambda: _answers() or process.poll() is not None, "the engine answers", 60)
            yield
        finally:
            process.terminate()
            process.wait(60)
            _unmount(state)
            os.environ.pop("DOCKER_HOST")
            if before is not None:
                os.environ["DOCKER_HOST"] = before


def _unmount(folder: str) -> None:
    """What the engine leaves mounted there: a network namespace at least."""
    mounted = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for place in reversed([each for each in mounted if each.startswith(f"{folder}/")]):
        subprocess.run(("umount", "--lazy", place), check=True)


def base_images() -> None:
    """Pull what is not here; make stand-ins where no registry is in reach. Raises Failed."""
    for image in IMAGES:
        if docker("images", "-q", image).strip():
            continue
        try:
            docker("pull", "-q", image, limit_s=PULL_S)
        except (Failed, subprocess.TimeoutExpired):
            _stand_ins()
            return


def build_arguments() -> tuple[str, ...]:
    """What `docker build` needs here besides."""
    return ("--network=host",)


def earlier_image() -> bool:
    """Build the image of an earlier commit by its own Dockerfile, unless it is here; False where the clone lacks the commit."""
    if docker("images", "-q", EARLIER_IMAGE).strip():
        return True
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(("git", "-C", str(ROOT), "archive", EARLIER), capture_output=True, check=False)
        if archive.returncode:
            return False
        subprocess.run(("tar", "-x", "-C", folder), input=archive.stdout, check=True)
        revision = ("--build-arg", f"REVISION={EARLIER}")
        docker("build", *build_arguments(), *revision, "-t", EARLIER_IMAGE, folder, limit_s=1800)
    return True


def _stand_ins() -> None:
    if os.geteuid() or shutil.which("mmdebstrap") is None:
        raise Failed(f"no image {IMAGES[0]} can be pulled, and stand-ins are made by root with Debian's mmdebstrap")
    done = subprocess.run(("bash", str(Path(__file__).with_name("base_images.sh"))), capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"base_images.sh: {done.stderr.strip()[-300:]}")
