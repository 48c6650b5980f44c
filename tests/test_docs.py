"""The Python blocks of the README and of the docs run, one after the other, on stand-in data."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor

from sklearn_asal import AmortizedSafeQuerier

ROOT = Path(__file__).parents[1]


class Rig:
    """Outputs and safety measurements in the units that a page uses."""

    def __init__(self, low, high, y_loc, y_scale, safety):
        self.low, self.width = np.array(low), np.subtract(high, low)
        self.y_loc, self.y_scale, self.safety = y_loc, y_scale, safety

    def __call__(self, x):
        unit = (x - self.low) / self.width
        y = np.sin(4 * unit[:, 0]) * np.cos(3 * unit[:, 1])
        return self.y_loc + self.y_scale * y, self.safety(((unit - 0.5) ** 2).sum(axis=1))


PLAIN = Rig([0.0, -5.0], [6.0, 30.0], 0.0, 1.0, lambda away: 1 - 3 * away)
ENGINE = Rig([900.0, 0.0], [4000.0, 60.0], 4.2, 1.5, lambda away: 730 + 360 * away)
PAGES = {"README.md": PLAIN, "docs/index.md": PLAIN, "docs/guide.md": ENGINE}
PAGES |= {
    str(page.relative_to(ROOT)): ENGINE
    for page in sorted((ROOT / "docs" / "guide").glob("*.md"))
    if "```python" in page.read_text(encoding="utf-8")
}
# Sections of docs/integrations.md, and the packages that they need.
SECTIONS = {
    "scikit-learn: ActiveLearner": "sklearn",
    "scikit-activeml": "skactiveml",
    "modAL": "modAL",
    "BoTorch": "botorch",
    "Ax": "ax",
}


def names_of(rig):
    """What the blocks take for granted."""
    rng = np.random.default_rng(0)
    X = rig.low + rig.width * rng.uniform(0.4, 0.6, (5, 2))
    y, z = rig(X)
    names = {"X": X, "y": y, "z": z, "run_experiment": rig, "model": GaussianProcessRegressor()}
    querier = AmortizedSafeQuerier(
        bounds=np.column_stack([rig.low, rig.low + rig.width]),
        safety_threshold=850.0,
        safe_when="below",
    )
    names["querier"] = querier.fit(X, y, z) if rig is ENGINE else None
    names["X_candidates"] = rig.low + rig.width * rng.random((500, 2))
    for i in (1, 2):
        names |= {f"X_{i}": X, f"y_{i}": y, f"z_{i}": z}
    return names


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("page", PAGES)
def test_blocks_run(page, data_home, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # where logs go
    monkeypatch.setenv("SKLEARN_ASAL_DATA", str(data_home))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    run_blocks((ROOT / page).read_text(encoding="utf-8"), page, names_of(PAGES[page]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("section", SECTIONS)
def test_blocks_of_integrations_run(section):
    pytest.importorskip(SECTIONS[section])
    page = (ROOT / "docs/integrations.md").read_text(encoding="utf-8")
    parts = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", page, re.S | re.M))
    assert {name for name, text in parts.items() if "```python" in text} == set(SECTIONS)
    run_blocks(parts[section], section, names_of(PLAIN))


def run_blocks(text, name, names):
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    assert blocks
    for i, block in enumerate(blocks):
        exec(compile(block, f"{name}, block {i}", "exec"), names)


def headings(text):
    """Anchors of a page's headings, as GitHub and MyST make them."""
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    titles = re.findall(r"^#{1,4} (.*)", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_lead_somewhere():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    texts = {page.resolve(): page.read_text(encoding="utf-8") for page in pages}
    for page, text in texts.items():
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([\w\-]*)\)", text):
            if target.startswith("http"):
                continue
            there = (page.parent / target).resolve() if target else page
            assert there.exists(), f"{page}: {target}"
            assert not anchor or anchor in headings(texts[there]), f"{page}: {target}#{anchor}"
