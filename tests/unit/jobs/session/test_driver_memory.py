"""How much memory a local Spark is given where nobody says it."""

import os

import pytest

from jobs.session.session import MEMORY_VARIABLE, default_driver_memory


@pytest.mark.parametrize(
    ("machine_gib", "processors", "given"),
    [
        (24, 2, "3072m"),
        (16, 4, "4096m"),
        (256, 32, "8192m"),
        (2, 2, "1024m"),
        (256, 1, "1536m"),
    ],
)
def test_a_quarter_of_the_machine_s_but_no_more_than_its_processors_use(monkeypatch, machine_gib, processors, given):
    page = 4096
    sizes = {"SC_PAGE_SIZE": page, "SC_PHYS_PAGES": (machine_gib << 30) // page}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    monkeypatch.delenv(MEMORY_VARIABLE, raising=False)
    assert default_driver_memory() == given
    monkeypatch.setenv(MEMORY_VARIABLE, "6g")
    assert default_driver_memory() == "6g"
