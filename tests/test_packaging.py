"""The setuptools plugin: a package with schemas is built with its stubs."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("setuptools")

PROJECT = """
[build-system]
requires = ["setuptools", "capnwire"]
build-backend = "setuptools.build_meta"
[project]
name = "wares"
version = "1"
[tool.setuptools.packages.find]
where = ["src"]
[tool.capnwire]
schemas = ["src/**/*.capnp"]
"""
PERSON = """@0xbf5147bb5cf7b8e1;
struct Person { name @0 :Text; color @1 :import "parts/color.capnp".Color; }
"""
COLOR = "@0xbf5147bb5cf7b8e2;\nenum Color { red @0; }\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    points = importlib.metadata.entry_points(group="setuptools.finalize_distribution_options")
    if not any(point.name == "capnwire" for point in points):
        pytest.skip("capnwire is not installed with its entry points")
    package = tmp_path / "src" / "wares"
    (package / "parts").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "parts" / "__init__.py").write_text("")
    (package / "person.capnp").write_text(PERSON)
    (package / "parts" / "color.capnp").write_text(COLOR)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    return tmp_path


def build(project: Path, what: str = "build_wheel") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c",
         f"from setuptools import build_meta; print(build_meta.{what}('dist'))"],
        cwd=project, capture_output=True, text=True, check=False,
    )


def wheel_names(project: Path) -> set[str]:
    (wheel,) = (project / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_a_wheel_has_schemas_and_stubs(project: Path) -> None:
    (project / "dist").mkdir()
    done = build(project)
    assert done.returncode == 0, done.stderr
    assert wheel_names(project) == {
        "wares/__init__.py", "wares/person.capnp", "wares/person_capnp.pyi",
        "wares/parts/__init__.py", "wares/parts/color.capnp", "wares/parts/color_capnp.pyi",
    }
    (wheel,) = (project / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        stub = archive.read("wares/person_capnp.pyi").decode()
    assert "import wares.parts.color_capnp as" in stub
    assert "class Person(" in stub


def test_stubs_of_bundled_schemas_go_into_the_package(project: Path) -> None:
    (project / "dist").mkdir()
    schema = project / "src" / "wares" / "person.capnp"
    schema.write_text(
        PERSON.replace("color @1", 'node @2 :import "/capnp/schema.capnp".Node; color @1')
    )
    done = build(project)
    assert done.returncode == 0, done.stderr
    assert "wares/capnwire_std/schema_capnp.pyi" in wheel_names(project)
    done = build(project, "build_editable")
    assert done.returncode == 0, done.stderr
    assert (schema.parent / "capnwire_std" / "schema_capnp.pyi").exists()


def test_modules_are_built_when_asked_for(project: Path) -> None:
    (project / "dist").mkdir()
    with (project / "pyproject.toml").open("a") as file:
        file.write("modules = true\n")
    done = build(project)
    assert done.returncode == 0, done.stderr
    assert "wares/person_capnp.py" in wheel_names(project)


def test_an_editable_install_has_its_stubs_beside_the_schemas(project: Path) -> None:
    (project / "dist").mkdir()
    done = build(project, "build_editable")
    assert done.returncode == 0, done.stderr
    assert (project / "src" / "wares" / "person_capnp.pyi").exists()


def test_a_wrong_schema_or_setting_stops_the_build(project: Path) -> None:
    (project / "dist").mkdir()
    (project / "src" / "wares" / "person.capnp").write_text("struct {")
    done = build(project)
    assert done.returncode
    assert "wares/person.capnp:1:" in done.stderr
    with (project / "pyproject.toml").open("a") as file:
        file.write("shemas = []\n")
    done = build(project)
    assert done.returncode
    assert "shemas" in done.stderr


def test_projects_without_the_table_are_left_alone(project: Path) -> None:
    (project / "dist").mkdir()
    text = PROJECT.replace("[tool.capnwire]\n", "[tool.other]\n")
    (project / "pyproject.toml").write_text(text)
    assert build(project).returncode == 0
    assert not any(name.endswith(".pyi") for name in wheel_names(project))
