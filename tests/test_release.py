"""What a release says of itself."""

import re
import tomllib
from pathlib import Path

import pytest

import sklearn_attention

ROOT = Path(__file__).parents[1]


def read(name):
    path = ROOT / name
    if not path.exists():
        pytest.skip(f"{name} is not part of what was installed")
    return path.read_text(encoding="utf-8")


def test_the_citation_is_of_this_version():
    version = re.search(r"^version: (.*)$", read("CITATION.cff"), re.M)[1]
    assert version == sklearn_attention.__version__


def test_pinned_versions_are_those_that_are_declared():
    """Every requirement is pinned, to a version that it admits."""
    from packaging.requirements import Requirement

    pins = dict(
        re.findall(r"^([\w.-]+)==(\S+)$", re.sub(r"_", "-", read("constraints.txt")), re.M)
    )
    pins = {name.lower(): version for name, version in pins.items()}
    project = tomllib.loads(read("pyproject.toml"))
    needed = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    for group in project["project"]["optional-dependencies"].values():
        needed += group
    for group in project["dependency-groups"].values():
        needed += [need for need in group if isinstance(need, str)]
    for requirement in map(Requirement, needed):
        if requirement.name != "sklearn-attention":
            version = pins[requirement.name.lower().replace("_", "-")]
            assert requirement.specifier.contains(version), requirement
