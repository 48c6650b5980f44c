"""Data sets on the real files, and what is said when a file is missing or wrong."""

import math
import pickle
import re
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from scipy.stats import kstest

from sklearn_asal.datasets import (
    _files,
    fluid_system,
    load_airfoil,
    load_airline,
    load_engine,
    load_fluid_system,
    load_lgbb,
    loaders,
    sample_fluid_trajectories,
)

from .settings import SETTINGS

LOADERS = {
    "lgbb": load_lgbb,
    "lgbb_unconstrained": partial(load_lgbb, safety=False),
    "airline": load_airline,
    "airfoil": load_airfoil,
    "engine": load_engine,
    "fluid_system": partial(load_fluid_system, 50),
}
# Rows, inputs, whether there is a safety.
SHAPES = {
    "lgbb": (862, 2, True),
    "lgbb_unconstrained": (880, 2, False),
    "airline": (144, 1, False),
    "airfoil": (1503, 5, False),
    "engine": (785, 3, True),
    "fluid_system": (50, 7, True),
}
FILES = {
    "lgbb": "lgbb_original.txt",
    "airline": "airline-passengers.csv",
    "airfoil": "airfoil_self_noise.dat",
    "engine": "engine2_normalized.xlsx",
    "fluid_system": "fluid_system_coefficients.csv",
}


# What the tests must not fetch from the internet.
DOWNLOADED = ("airline", "airfoil", "engine")


@pytest.fixture(params=list(LOADERS))
def name(request):
    return request.param


@pytest.fixture(scope="module")
def pool(data_home):
    return load_fluid_system(100_000, random_state=1, data_home=data_home)


def test_shapes_and_keys(name, data_home):
    n, d, safe = SHAPES[name]
    bunch = LOADERS[name](data_home=data_home)
    assert bunch.data.shape == (n, d)
    assert bunch.target.shape == bunch.raw_target.shape == (n,)
    assert bunch.bounds.shape == (d, 2)
    assert len(bunch.feature_names) == d
    assert len(bunch.target_names) == 1
    assert bunch.frame is None
    assert ("safety" in bunch) is safe
    assert "Source:" in bunch.DESCR
    assert "Licence:" in bunch.DESCR
    assert (bunch.data >= bunch.bounds[:, 0]).all()
    assert (bunch.data <= bunch.bounds[:, 1]).all()
    arrays = [bunch.data, bunch.target]
    if safe:
        assert bunch.safety.shape == bunch.raw_safety.shape == (n,)
        assert len(bunch.safety_names) == 1
        arrays.append(bunch.safety)
    returned = LOADERS[name](data_home=data_home, return_X_y=True)
    assert len(returned) == len(arrays)
    for array, expected in zip(returned, arrays, strict=True):
        assert array.dtype == np.float64
        assert np.isfinite(array).all()
        np.testing.assert_array_equal(array, expected)


def test_as_frame(name, data_home):
    pandas = pytest.importorskip("pandas")
    n, d, safe = SHAPES[name]
    bunch = LOADERS[name](data_home=data_home, as_frame=True)
    plain = LOADERS[name](data_home=data_home)
    assert bunch.frame.shape == (n, d + 1 + safe)
    assert list(bunch.data.columns) == bunch.feature_names
    assert bunch.target.name == bunch.target_names[0]
    pandas.testing.assert_frame_equal(bunch.frame[bunch.feature_names], bunch.data)
    np.testing.assert_array_equal(bunch.frame[bunch.target_names[0]], plain.target)
    if safe:
        assert bunch.safety.name == bunch.safety_names[0]
        np.testing.assert_array_equal(bunch.frame[bunch.safety.name], plain.safety)
    assert isinstance(
        LOADERS[name](data_home=data_home, as_frame=True, return_X_y=True)[1], type(bunch.target)
    )


@pytest.mark.parametrize("name", ["lgbb", "lgbb_unconstrained", "airline", "airfoil"])
def test_standardised(name, data_home):
    bunch = LOADERS[name](data_home=data_home)
    values = [(bunch.target, bunch.raw_target)]
    if "safety" in bunch:
        values.append((bunch.safety, bunch.raw_safety))
    for scaled, raw in values:
        assert scaled.mean() == pytest.approx(0, abs=1e-12)
        assert scaled.std() == pytest.approx(1)
        np.testing.assert_allclose(scaled * raw.std() + raw.mean(), raw)


def test_lgbb(data_home):
    bunch = load_lgbb(data_home=data_home)
    np.testing.assert_array_equal(bunch.bounds, [[0, 6], [-5, 30]])
    assert bunch.data.min(axis=0).tolist() == [0.2, -5]
    assert bunch.data.max(axis=0).tolist() == [6, 30]
    # Standardised, 61.7 % are safe as the paper says; of the raw moments only 27 % are >= 0.
    assert (bunch.safety >= 0).mean() == pytest.approx(0.617, abs=1e-3)
    assert (bunch.raw_safety >= 0).mean() == pytest.approx(0.268, abs=1e-3)
    # First row of the file: mach 0.2, alpha -5, lift -0.09536, pitch -0.02869.
    assert bunch.data[0].tolist() == [0.2, -5]
    assert bunch.raw_target[0] == -0.09536
    assert bunch.raw_safety[0] == -0.02869
    every = load_lgbb(data_home=data_home, safety=False)
    assert bunch.raw_safety.min() >= -0.1
    assert set(map(tuple, bunch.data)) <= set(map(tuple, every.data))
    unit = (bunch.data - bunch.bounds[:, 0]) / np.ptp(bunch.bounds, axis=1)
    centre = (abs(unit - 0.5) <= 0.1).all(axis=1)
    assert centre.sum() == 24
    assert (bunch.safety[centre] >= 0).all()


def test_airline(data_home):
    bunch = load_airline(data_home=data_home)
    assert bunch.data[0, 0] == 1949
    assert bunch.data[-1, 0] == pytest.approx(1960 + 11 / 12)
    np.testing.assert_allclose(np.diff(bunch.data[:, 0]), 1 / 12)
    assert bunch.raw_target[:3].tolist() == [112, 118, 132]


def test_airfoil(data_home):
    bunch = load_airfoil(data_home=data_home)
    np.testing.assert_allclose(bunch.data[0], [800, 0, 0.3048, 71.3, 0.00266337])
    assert bunch.raw_target[0] == 126.201
    np.testing.assert_array_equal(bunch.bounds[0], [200, 20000])


def test_airfoil_without_header(data_home, tmp_path):
    lines = (data_home / FILES["airfoil"]).read_text(encoding="utf-8").splitlines()
    (tmp_path / FILES["airfoil"]).write_text("\n".join(lines[1:]), encoding="utf-8")
    X, y = load_airfoil(data_home=tmp_path, return_X_y=True)
    expected = load_airfoil(data_home=data_home)
    np.testing.assert_array_equal(X, expected.data)
    np.testing.assert_array_equal(y, expected.target)


def test_engine(data_home):
    bunch = load_engine(data_home=data_home)
    # Standardised by Bosch with the n - 1 standard deviation.
    np.testing.assert_allclose(bunch.data.std(axis=0, ddof=1), 1)
    np.testing.assert_array_equal(bunch.target, bunch.raw_target)
    np.testing.assert_allclose(bunch.safety, -bunch.raw_safety - 0.2)
    assert (bunch.safety >= 0).mean() == pytest.approx(0.420, abs=1e-3)
    np.testing.assert_allclose(bunch.data[0], [-1.51872, 0.685018, 0.012719], atol=1e-6)
    assert bunch.safety[0] == pytest.approx(1.940437 - 0.2, abs=1e-6)
    # DESCR tells of the centre that has no safe row.
    unit = (bunch.data - bunch.bounds[:, 0]) / np.ptp(bunch.bounds, axis=1)
    distance = abs(unit - 0.5).max(axis=1)
    assert (distance <= 0.1).sum() == 12
    assert distance[bunch.safety >= 0].min() == pytest.approx(0.206, abs=1e-3)


def test_fluid_pool_has_the_paper_s_moments(pool):
    assert (pool.safety >= 0).mean() == pytest.approx(0.616, abs=0.005)
    assert pool.target.mean() == pytest.approx(-0.157, abs=0.01)
    assert pool.target.std() == pytest.approx(0.841, abs=0.01)
    np.testing.assert_array_equal(pool.safety, -pool.target)
    np.testing.assert_array_equal(pool.safety >= 0, pool.raw_target <= 18)


def test_fluid_pressure_against_the_formula_of_the_file(data_home):
    text = (data_home / FILES["fluid_system"]).read_text(encoding="utf-8").splitlines()
    comments = dict(line[1:].split(":", 1) for line in text if line[0] == "#" and ":" in line)
    comments = {key.strip(): value for key, value in comments.items()}
    offset = [float(v) for v in comments["offset"].split()]
    width = [float(v) for v in comments["width"].split()]
    terms = [[float(v) for v in line.split(",")] for line in text if line[0] not in "#w"]
    assert len(terms) == 100
    X = sample_fluid_trajectories(5, random_state=0)
    expected = []
    for x in X.tolist():
        u = [(v - o) / w for v, o, w in zip([*x, 0.7, 0.7, 0.7], offset, width, strict=True)]
        total = 0.0
        for *weights, a, b in terms:
            angle = math.fsum(w * v for w, v in zip(weights, u, strict=True))
            total += a * math.cos(angle) + b * math.sin(angle)
        expected.append(float(comments["scale"]) * total + float(comments["shift"]))
    function = fluid_system(data_home=data_home)
    np.testing.assert_allclose(function.f(X), expected, rtol=1e-9)
    np.testing.assert_allclose(function.output(X), (np.array(expected) - 18) / 15, rtol=1e-8)
    np.testing.assert_allclose(function.safety(X), -function.output(X), rtol=1e-12)


def test_fluid_trajectories_keep_their_step_size(pool):
    X = pool.data
    assert (abs(np.diff(X[:, :4], axis=1)) <= 900).all()
    assert (abs(X[:, 4] - X[:, 5]) <= 18).all()
    assert (abs(X[:, 5] - X[:, 6]) <= 36).all()
    # Trajectories start uniformly, at the oldest time step.
    assert kstest(X[:20_000, 3], "uniform", (1000, 3000)).pvalue > 1e-3
    assert kstest(X[:20_000, 6], "uniform", (0, 60)).pvalue > 1e-3
    # One step later, uniform between the ends that the step size and the domain leave.
    before, now = X[:20_000, 3], X[:20_000, 2]
    low, high = np.maximum(1000, before - 900), np.minimum(before + 900, 4000)
    assert kstest((now - low) / (high - low), "uniform").pvalue > 1e-3


def test_fluid_function_in_chunks_and_as_a_task(data_home):
    function = fluid_system(data_home / FILES["fluid_system"])
    X = sample_fluid_trajectories(9_000, random_state=2)
    # Chunk by chunk or row by row, up to rounding in the matrix product.
    np.testing.assert_allclose(function.f(X)[::1500], function.f(X[::1500]), rtol=1e-10)
    X, _, z = function.initial_points(10, random_state=0, return_measurements=True)
    assert (z >= 0).all()
    unit = (X - function.bounds[:, 0]) / np.ptp(function.bounds, axis=1)
    assert (abs(unit - 0.5) <= 0.1 + 1e-12).all()
    twin = pickle.loads(pickle.dumps(function))
    np.testing.assert_array_equal(twin.output(X), function.output(X))


def test_fluid_noise_leaves_the_trajectories(data_home):
    clean = load_fluid_system(2000, data_home=data_home)
    noisy = load_fluid_system(2000, noise=0.1, data_home=data_home)
    np.testing.assert_array_equal(clean.data, noisy.data)
    assert (noisy.target - clean.target).std() == pytest.approx(0.1, rel=0.05)
    np.testing.assert_array_equal(noisy.safety, -noisy.target)
    np.testing.assert_allclose((noisy.raw_target - 18) / 15, noisy.target)


@pytest.mark.parametrize("name", list(FILES))
def test_missing_file(name, tmp_path):
    options = {"download_if_missing": False} if name in DOWNLOADED else {}
    with pytest.raises(FileNotFoundError) as caught:
        LOADERS[name](data_home=tmp_path, **options)
    message = str(caught.value)
    for part in (FILES[name], str(tmp_path), "data_home", "SKLEARN_ASAL_DATA", "Where to get"):
        assert part in message
    assert "not downloaded for you" in message
    if name == "lgbb":
        assert "Surrogates" in message
        assert "lgbb.tar.gz" in message
        assert "passed on" in message
    if name == "engine":
        assert "CC BY-SA 4.0" in message


@pytest.fixture
def server(data_home, tmp_path, monkeypatch):
    """The three sources on this machine, in the folder that is returned; counts requests."""
    pytest.importorskip("pooch")
    folder = tmp_path / "server"
    folder.mkdir()
    for name in DOWNLOADED:
        content = (data_home / FILES[name]).read_bytes()
        if name == "airfoil":  # UCI's own file has no header, and lines end as in Windows
            content = content.partition(b"\n")[2].replace(b"\n", b"\r\n")
        (folder / FILES[name]).write_bytes(content)

    class Handler(SimpleHTTPRequestHandler):
        requests = 0

        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(folder))

        def log_message(self, *arguments):
            Handler.requests += 1

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name in DOWNLOADED:
            attribute = f"_{name.upper()}_REMOTE"
            url = f"http://127.0.0.1:{server.server_port}/{FILES[name]}"
            remote = getattr(loaders, attribute)._replace(url=url)
            monkeypatch.setattr(loaders, attribute, remote)
        yield folder, Handler
        server.shutdown()


@pytest.mark.parametrize("name", DOWNLOADED)
def test_download(name, server, data_home, tmp_path):
    folder, handler = server
    home = tmp_path / "new" / "home"
    first = LOADERS[name](data_home=home)
    np.testing.assert_array_equal(first.data, LOADERS[name](data_home=data_home).data)
    assert [path.name for path in home.iterdir()] == [FILES[name]]
    assert (home / FILES[name]).read_bytes() == (folder / FILES[name]).read_bytes()
    # From then on, and where the file has been all along, nobody is asked.
    assert handler.requests == 1
    LOADERS[name](data_home=home)
    assert handler.requests == 1


@pytest.mark.parametrize("name", DOWNLOADED)
def test_another_file_is_not_kept(name, server, tmp_path):
    folder, _ = server
    with (folder / FILES[name]).open("ab") as file:
        file.write(b"\n")
    home = tmp_path / "home"
    with pytest.raises(OSError, match=r"is not the file that was expected.*SHA-256") as caught:
        LOADERS[name](data_home=home)
    assert str(home / FILES[name]) in str(caught.value)
    assert list(home.iterdir()) == []


def test_nothing_is_downloaded_unless_wanted(server, tmp_path):
    with pytest.raises(FileNotFoundError, match="not downloaded for you"):
        load_airline(data_home=tmp_path, download_if_missing=False)
    with pytest.raises(FileNotFoundError, match="not downloaded for you"):
        load_lgbb(data_home=tmp_path)
    assert server[1].requests == 0


@pytest.mark.parametrize("name", DOWNLOADED)
def test_offline(name, tmp_path, monkeypatch):
    pytest.importorskip("pooch")
    remote = _files.Remote(f"http://127.0.0.1:9/{FILES[name]}", "0" * 64)
    monkeypatch.setattr(loaders, f"_{name.upper()}_REMOTE", remote)
    with pytest.raises(FileNotFoundError, match="could not be downloaded") as caught:
        LOADERS[name](data_home=tmp_path)
    for part in (FILES[name], remote.url, f"as {tmp_path / FILES[name]} by hand", "data_home"):
        assert part in str(caught.value)


def test_file_that_is_gone(server, tmp_path):
    (server[0] / FILES["airline"]).unlink()
    with pytest.raises(FileNotFoundError, match=r"could not be downloaded \(404"):
        load_airline(data_home=tmp_path)


def test_download_without_pooch(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r'pip install "sklearn-asal\[data\]"') as caught:
        load_airline(data_home=tmp_path)
    for part in (loaders._AIRLINE_REMOTE.url, str(tmp_path / FILES["airline"]), "by hand"):
        assert part in str(caught.value)


def test_missing_coefficients_at_a_given_path(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"mine\.csv is not in"):
        fluid_system(tmp_path / "mine.csv")


def test_folder_from_the_environment(data_home, tmp_path, monkeypatch):
    monkeypatch.setenv("SKLEARN_ASAL_DATA", str(data_home))
    assert len(load_airline().data) == 144
    # The argument goes before the environment.
    with pytest.raises(FileNotFoundError):
        load_airline(data_home=tmp_path, download_if_missing=False)
    monkeypatch.delenv("SKLEARN_ASAL_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="sklearn_asal_data") as caught:
        load_airline(download_if_missing=False)
    assert str(tmp_path / "sklearn_asal_data") in str(caught.value)


@pytest.mark.parametrize("name", ["lgbb", "airline", "airfoil", "fluid_system"])
def test_wrong_file(name, tmp_path):
    (tmp_path / FILES[name]).write_text("a b c\n1 2 x\n", encoding="utf-8")
    with pytest.raises(ValueError, match=FILES[name]):
        LOADERS[name](data_home=tmp_path)


@pytest.mark.parametrize("name", ["lgbb", "airline", "airfoil", "fluid_system"])
@pytest.mark.parametrize("number", ["nan", "inf", "-1e999"])
def test_numbers_that_are_not_finite(name, number, data_home, tmp_path):
    lines = (data_home / FILES[name]).read_text(encoding="utf-8").splitlines()
    lines[-1] = re.sub(r"[^,\s]+\s*$", number, lines[-1])
    (tmp_path / FILES[name]).write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ValueError, match=f"{FILES[name]} holds NaN or infinity"):
        LOADERS[name](data_home=tmp_path)


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_the_program_around_do_not_matter(setting, name, data_home):
    plain = LOADERS[name](data_home=data_home)
    with SETTINGS[setting]():
        bunch = LOADERS[name](data_home=data_home)
    for part in ("data", "target", "safety", "bounds", "raw_target", "raw_safety"):
        np.testing.assert_array_equal(bunch.get(part, 0), plain.get(part, 0))


@pytest.mark.parametrize(
    "rows",
    [
        [["engine_speed"], [], [1.0]],
        [
            ["engine_speed", "engine_load", "air_fuel_ratio", "engine_roughness_s"]
            + ["temperature_exhaust_manifold"],
            [None],
            [0.1, 0.2, None, 0.3, 0.4],
        ],
        [
            ["engine_speed", "engine_load", "air_fuel_ratio", "engine_roughness_s"]
            + ["temperature_exhaust_manifold"],
            [None],
            [0.1, 0.2, "nan", 0.3, 0.4],
        ],
    ],
    ids=["column", "cell", "nan"],
)
def test_wrong_workbook(rows, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    workbook = openpyxl.Workbook()
    workbook.active.title = "data"
    for row in rows:
        workbook.active.append(row)
    workbook.save(tmp_path / FILES["engine"])
    with pytest.raises(ValueError, match=r"engine2_normalized\.xlsx must have a sheet 'data'"):
        load_engine(data_home=tmp_path)


@pytest.mark.parametrize(
    ("module", "load"),
    [("openpyxl", load_engine), ("pandas", partial(load_airline, as_frame=True))],
)
def test_optional_packages(module, load, data_home, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf'{module} is needed.*"sklearn-asal\[data\]"'):
        load(data_home=data_home)


def test_bad_arguments(data_home):
    with pytest.raises(ValueError, match="n_samples == 0"):
        load_fluid_system(0, data_home=data_home)
    with pytest.raises(ValueError, match="noise == -1"):
        load_fluid_system(5, noise=-1, data_home=data_home)
    with pytest.raises(ValueError, match="n == -5"):
        sample_fluid_trajectories(-5)
