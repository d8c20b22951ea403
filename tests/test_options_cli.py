"""Options of the commands that are derived from the declarations of functions."""

import inspect
import subprocess
import sys

import pytest
import typer

from spatialq.cli import main as cli
from spatialq.cli.options import DerivedOption, sources_of
from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import BOUNDS, COORDINATES, Parameter

WORKFLOWS = {
    "ground": "spatialq.workflows.ground.write_ground",
    "noise": "spatialq.workflows.point_choice.write_noise",
    "thin": "spatialq.workflows.point_choice.write_thinned",
    "planes": "spatialq.workflows.planes.write_planes",
    "clash": "spatialq.workflows.clash.find_clashes",
    "features": "spatialq.workflows.features.write_features",
    "terrain": "spatialq.workflows.terrain.write_terrain_products",
    "lod": "spatialq.workflows.lod.write_lod",
    "tiles": "spatialq.workflows.tiles.write_tiles",
    "seeds": "spatialq.cluster.run",
    "verdict": "spatialq.workflows.verdict.write_verdict",
}
IN_METRES = ("clash", "seeds")
"""Commands that convert lengths themselves."""
NO_OPTIONS = {
    "ground_surface": {
        "window_size", "overlap", "min_points", "cell_size", "ties", "overlap_y", "odd_sizes",
        "source", "thin",
    },  # of its seeds; `write_ground` makes the terrain from ground points
    "intersects_with": {"relations"},  # follows from --closer-than
    "coverage": {"scanner", "faces"},  # positions are given one by one
}  # fmt: skip
OTHERS = {
    "ground": (["--ground-only", "--crs", "EPSG:1", "--override-crs", "--memory", "1GiB"],
               {"ground_only": True, "crs": "EPSG:1", "override_crs": True, "memory": "1GiB"}),
    "planes": (["--up", "y", "--colour"], {"up": "y", "colour": True}),
    "noise": (["--drop-noise", "--crs", "EPSG:1", "--override-crs", "--bounds", "0,0,1,2"],
              {"drop_noise": True, "crs": "EPSG:1", "override_crs": True, "bounds": (0, 0, 1, 2)}),
    "thin": (["--memory", "2GB"], {"memory": "2GB"}),
    "clash": (["--closer-than", "5cm", "--exclude", "systems, duplicates"],
              {"closer_than": 0.05, "exclude": "systems, duplicates"}),
    "features": (["--nodata", "-9999", "--band", "2", "--show", "pca1, q1"],
                 {"nodata": -9999.0, "band": 2, "show": ("pca1", "q1")}),
    "terrain": (["-o", "a.tif", "--band", "2", "--show", "slope, tpi", "--interval", "5",
                 "--base", "1"],
                {"band": 2, "show": ("slope", "tpi"), "interval": 5.0, "base": 1.0}),
    "lod": (["--memory", "2GB"], {"memory": "2GB"}),
    "tiles": (["--memory", "2GB", "--crs", "EPSG:1", "--override-crs", "--bounds", "0,0,1,2",
               "--implicit"],
              {"memory": "2GB", "crs": "EPSG:1", "override_crs": True, "bounds": (0, 0, 1, 2),
               "implicit": True}),
    "seeds": (["--executor", "ray", "--workers", "3", "--tile-size", "500", "--resume"],
              {"executor": "ray", "workers": 3, "tile_size": "500", "resume": True}),
    "verdict": (["--register", "none", "--scanner", "1,2,3", "--scanner", "4,5,6"],
                {"register": "none", "scanners": [[1, 2, 3], [4, 5, 6]]}),
}  # fmt: skip


class CalledError(Exception):
    """Ends a command where its workflow is called."""


@pytest.fixture
def arguments_of(monkeypatch, tmp_path):
    """Give what the workflow of a command gets."""
    cloud = tmp_path / "a.xyz"  # there are commands that look into it for the unit of lengths
    cloud.write_text("x y z\n0 0 0\n1 1 1\n")

    def call(command, *flags):
        given = {}

        def workflow(*_, **options):
            given.update(options)
            raise CalledError

        monkeypatch.setattr(WORKFLOWS[command], workflow)
        monkeypatch.setattr(sys, "argv", ["spatialq", command, str(cloud), *flags])
        with pytest.raises(CalledError):
            cli.main()
        return given

    return call


def command_of(name):
    return next(each.callback for each in cli.app.registered_commands
                if each.callback.__name__ == name)  # fmt: skip


def parameters_of(name):
    functions = [source.function for source in sources_of(command_of(name))]
    return [
        each
        for function in functions
        for each in catalogue()[function].parameters
        if each.name not in (BOUNDS, *COORDINATES, *NO_OPTIONS.get(function, ()))
    ]


def other_value(parameter):
    """A value that is not the default, and how the command line has it."""
    value = {bool: True, int: 7, float: 0.25, str: (*parameter.choices, "x")[-1]}[parameter.type]
    text = str(value)
    if parameter.is_length:  # the workflow converts it, with the unit of the file
        value = text = f"{value}ft"
    if parameter.is_list:
        return (value, value), f"{text}, {text}"
    return value, text


def default_of(parameter):
    """The default of a parameter, lengths as texts with their unit."""
    if parameter.default is None or not parameter.is_length:
        return parameter.default
    if parameter.is_list:
        return tuple(map(text_of, parameter.default))
    if parameter.unit == "metres" and parameter.default < 0.1:
        return f"{1000 * parameter.default:g}mm"
    return text_of(parameter.default, "m" if parameter.unit == "metres" else "u")


def text_of(value, unit="u"):
    return f"{value:g}{unit}"


OUTPUT = {
    "ground": ("-o", "g.laz"),
    "noise": ("-o", "n.laz"),
    "thin": ("-o", "t.laz"),
    "seeds": ("-o", "out"),
    "tiles": ("-o", "tileset.json"),
}


def test_commands_with_derived_options_are_all_tested():
    names = [each.callback.__name__ for each in cli.app.registered_commands]
    assert {name for name in names if sources_of(command_of(name))} == set(WORKFLOWS)


@pytest.mark.parametrize("command", WORKFLOWS)
def test_every_parameter_is_an_option_with_the_declared_default(command, arguments_of):
    given = arguments_of(command, *OUTPUT.get(command, ()))
    default = (lambda each: each.default) if command in IN_METRES else default_of
    expected = {each.name: default(each) for each in parameters_of(command)}
    assert {name: given.get(name, "no option") for name in expected} == expected


@pytest.mark.parametrize("command", WORKFLOWS)
def test_every_option_reaches_the_workflow(command, arguments_of):
    flags, expected = [], {"device": "cpu"}
    for each in parameters_of(command):
        expected[each.name], text = other_value(each)
        assert expected[each.name] != default_of(each)
        if command in IN_METRES and each.is_length:
            expected[each.name] = pytest.approx(0.25 * 0.3048)
        flag = f"--{each.name.replace('_', '-')}"
        flags += [flag] if each.type is bool else [flag, text]
    more, others = OTHERS[command]
    expected |= others
    given = arguments_of(command, *OUTPUT.get(command, ()), *flags, *more, "--device", "cpu")
    assert {name: given[name] for name in expected} == expected


@pytest.mark.parametrize("command", WORKFLOWS)
def test_help_describes_every_option(command, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["spatialq", command, "--help"])
    monkeypatch.setenv("COLUMNS", "400")
    cli.main()
    text = capsys.readouterr().out
    for each in parameters_of(command):
        assert f"--{each.name.replace('_', '-')} " in text
        assert each.doc.split(" NULL ")[0] in text
    assert "NULL" not in text


def test_a_truth_value_that_is_true_by_default_can_be_switched_off():
    given = []
    parameter = Parameter("thin", bool, default=True, doc="Whether it is thin.")
    option = DerivedOption("f", "f", parameter, of_file=True)
    app = typer.Typer(add_completion=False)

    def f(**options):
        given.append(options["thin"])

    f.__signature__ = inspect.Signature([option.signature])
    app.command()(f)
    for flags in ([], ["--thin"], ["--no-thin"]):
        app(flags, standalone_mode=False)
    assert given == [True, True, False]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "is_imported"),
    [(["--help"], False), (["info", "--help"], False), (["lod", "--help"], True)],
)
def test_declarations_are_imported_when_they_are_needed(arguments, is_imported):
    code = (
        "import sys; from spatialq.cli.main import app; "
        f"app({arguments}, standalone_mode=False); "
        "print('spatialq.udfs' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.splitlines()[-1:] == [str(is_imported)], result.stderr
