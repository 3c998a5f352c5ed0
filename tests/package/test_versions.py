"""Versions are written in more than one place, and agree: the package, its metadata, the citation, the recipe."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest

import mercer

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "pyproject.toml").is_file(), reason="installed without the repository")
CALLED_OTHERWISE = {"matplotlib": "matplotlib-base"}  # without a window toolkit, in the channels of conda


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def text(name):
    return (ROOT / name).read_text()


def recipe_section(name):
    """The lower bounds that a section of the recipe has, by the names of packages."""
    section = re.search(rf"^  {name}:\n((?:    .*\n)+)", text("recipe/meta.yaml"), flags=re.MULTILINE)[1]
    return dict(re.findall(r"- ([\w-]+) >=([\w.]+)", section))


def bounds(requirements):
    """The lower bounds of requirements, by the names that the recipe has for packages."""
    found = (re.match(r"([\w-]+)>=([\w.]+)$", each).groups() for each in requirements)
    return {CALLED_OTHERWISE.get(name, name): least for name, least in found}


def test_the_version_is_the_same_everywhere(project):
    version = project["version"]
    assert mercer.__version__ == version
    assert re.findall(r"^version: (.*)$", text("CITATION.cff"), flags=re.MULTILINE) == [version]
    assert re.findall(r'set version = "(.*)"', text("recipe/meta.yaml")) == [version]


def test_the_recipe_asks_for_what_the_package_asks_for(project):
    python = {"python": project["requires-python"].removeprefix(">=")}
    optional = project["optional-dependencies"]
    assert recipe_section("run") == python | bounds(project["dependencies"]) | bounds(optional["app"])
    assert recipe_section("run_constrained") == bounds(optional["anndata"]) | bounds(optional["conic"])
    hatchling = tomllib.loads(text("pyproject.toml"))["build-system"]["requires"]
    assert recipe_section("host") == python | bounds(hatchling)
    assert project["license"] == re.search(r"license: (.*)", text("recipe/meta.yaml"))[1]
    assert project["description"] == re.search(r"summary: (.*)", text("recipe/meta.yaml"))[1]
    ((name, target),) = project["scripts"].items()
    assert f"- {name} = {target}" in text("recipe/meta.yaml")


def test_the_oldest_supported_python_is_the_first_of_the_classifiers(project):
    named = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    assert project["requires-python"] == f">={named[0]}"
    assert named == sorted(named, key=lambda each: int(each.partition(".")[2]))


def test_the_citation_has_what_the_format_asks_for(project):
    citation = text("CITATION.cff")
    keys = dict(re.findall(r"^([a-z-]+):(.*)$", citation, flags=re.MULTILINE))
    assert {"cff-version", "message", "title", "authors", "license", "references"} <= keys.keys()
    assert keys["cff-version"].strip() == "1.2.0"
    assert keys["license"].strip() == project["license"]
    assert f"- name: {project['authors'][0]['name']}" in citation
    assert re.findall(r"^  - ([\w -]+)$", citation, flags=re.MULTILINE) == project["keywords"]
    references = citation.partition("references:")[2].split("  - type: ")[1:]
    assert len(references) == 4
    assert all("    title: " in each and "    authors:\n" in each and "    year: " in each for each in references)


def test_the_oldest_environment_is_that_of_the_lower_bounds(project):
    lower_bounds = runpy.run_path(str(ROOT / ".ci" / "versions"))["lower_bounds"]
    found = lower_bounds(project, ("test", "anndata"))
    assert found["numpy"] == "2.1"
    assert found["cvxpy"] == "1.5", "an extra that another one asks for is followed"
    named = {re.match(r"[\w-]+", each)[0] for extra in ("test", "app", "conic", "dask", "anndata") for each in project["optional-dependencies"][extra]}  # fmt: skip
    assert set(found) == (named | {re.match(r"[\w-]+", each)[0] for each in project["dependencies"]}) - {"mercer"}


def test_every_bound_of_the_library_is_a_lower_one(project):
    optional = [
        each for extra in ("app", "conic", "dask", "anndata") for each in project["optional-dependencies"][extra]
    ]
    assert not [each for each in [*project["dependencies"], *optional] if re.search(r"[<=~!]", each.replace(">=", ""))]
