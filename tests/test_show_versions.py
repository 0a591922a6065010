"""The report about the installation."""

import importlib.metadata
import importlib.util

import numpy as np
import pytest

import sklearn_attention


def test_versions_are_those_that_are_installed(capsys):
    sklearn_attention.show_versions()
    lines = dict(
        line.strip().split(": ", 1)
        for line in capsys.readouterr().out.splitlines()
        if ": " in line
    )
    assert lines["sklearn-attention"] == importlib.metadata.version("sklearn-attention")
    assert lines["numpy"] == np.__version__
    assert lines["python"].startswith("3.")
    assert int(lines["threads"]) >= 1
    assert "GPU" in lines


def test_the_report_does_without_torch_and_names_what_is_missing(capsys, monkeypatch):
    find_spec, version = importlib.util.find_spec, importlib.metadata.version

    def missing(name):
        if name in ("torch", "skops"):
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "torch" else find_spec(name)
    )
    sklearn_attention.show_versions()
    report = capsys.readouterr().out
    assert "skops: not installed" in report
    assert "installed: no" in report


@pytest.mark.gpu
def test_the_gpu_is_named(capsys):
    sklearn_attention.show_versions()
    assert "none that torch can use" not in capsys.readouterr().out
