"""Options of the commands: those that several share, and those derived from declarations."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup

from spatialq.data.units import OF_FILE, as_text

if TYPE_CHECKING:
    from spatialq.functions.declaration import Parameter

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Device = Annotated[
    str, typer.Option(help="Where to compute: auto, cpu, gpu or one GPU such as gpu:1.")
]
Crs = Annotated[
    str | None, typer.Option(help="CRS of a file that does not name one, such as EPSG:25832.")
]
OverrideCrs = Annotated[
    bool, typer.Option("--override-crs", help="Take --crs also for a file that names another one.")
]
ToCrs = Annotated[
    str | None,
    typer.Option(help="CRS to reproject point clouds and grids to, such as EPSG:25832."),
]
Resolution = Annotated[
    float | None,
    typer.Option(
        help="Side of the cells of grids that are reprojected, in the unit of --to-crs; or spacing "
        "of points at which nodes of COPC and EPT are dense enough, in the unit of x and y."
    ),
]
IfcGeometry = Annotated[
    Literal["auto", "exact"],
    typer.Option(help="Meshes of building models: auto is fast, exact takes IfcOpenShell for all."),
]
MAX_ROWS = 100
Limit = Annotated[int, typer.Option(min=0, help="Maximum number of rows to print.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="File to write instead of printing, by its ending: spatialq formats lists them. Of "
        "any rows .parquet, .csv, .json, .xlsx; of points .las, .laz, .copc.laz, .ply, .e57, and "
        "metadata.json (Potree) or tileset.json (3D Tiles) in a folder; of geometries .gpkg, .fgb; "
        "of a grid .tif, .png; of GlobalIds .ifc, .ifczip.",
    ),
]
Bounds = Annotated[
    str | None,
    typer.Option(
        metavar="XMIN,YMIN,XMAX,YMAX",
        help="Read only the points in this box, in the unit of x and y; its border is included.",
    ),
]
Within = Annotated[
    str | None,
    typer.Option(
        help="Read only the points in the polygons of this file: GeoPackage, Shapefile, GeoJSON, "
        "FlatGeobuf, GeoParquet or DXF, in the CRS of the points or in that of --to-crs."
    ),
]
Scale = Annotated[
    str | None,
    typer.Option(
        help="Steps of x, y and z in .las, .laz and .copc.laz, such as 0.001 or 0.001,0.001,0.01, "
        "to which coordinates are rounded; by default those of the first file."
    ),
]
Offset = Annotated[
    str | None,
    typer.Option(metavar="X,Y,Z", help="From where these steps are counted."),
]
PointResolution = Annotated[
    str | None,
    typer.Option(
        "--resolution",
        help="Spacing of points at which the nodes of an octree (COPC, EPT) are dense enough, such "
        "as 50cm, or 2u for 2 units of x and y of the file: finer nodes are not read.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        help="Main memory to use, such as 2GB or 512MB; a number alone is in GiB. By default half "
        "of what is free. Larger arrays are in files beside the first output."
    ),
]


@dataclass(frozen=True)
class Coordinates:
    """In which CRS a command reads point clouds, and in which coordinates it writes points."""

    crs: Crs = None
    override_crs: OverrideCrs = False
    to_crs: ToCrs = None
    scale: Scale = None
    offset: Offset = None

    def of(self, command: str) -> dict[str, Any]:
        """Give the arguments of a workflow.

        Raises
        ------
        ValueError
            If something is no number that must be one.
        """
        steps: dict[str, Any] = {}
        for name in STEPS:
            found = _numbers(command, name, getattr(self, name), "numbers such as 0.001")
            steps[name] = found[0] if found and len(found) == 1 else found
        return {**vars(self), **steps}


@dataclass(frozen=True)
class Reading(Coordinates):
    """How a command reads and writes point clouds, and on which device it computes."""

    bounds: Bounds = None
    within: Within = None
    device: Device = "auto"

    def of(self, command: str) -> dict[str, Any]:
        """Give the arguments of a workflow.

        Raises
        ------
        ValueError
            As `Coordinates.of`.
        """
        return {**super().of(command), "bounds": bounds_of(command, self.bounds)}

    @property
    def refused_by_jobs(self) -> dict[str, Any]:
        """Give the options that jobs do not have, by flag."""
        names = ("crs", "override_crs", "to_crs", *STEPS, "within")
        return {f"--{name.replace('_', '-')}": getattr(self, name) for name in names}


@dataclass(frozen=True)
class GridReading:
    """How a command reads terrain grids."""

    nodata: Annotated[
        float | None, typer.Option(help="Value that means that a cell has no value.")
    ] = None
    band: Annotated[int, typer.Option(help="Band to read of a file with several.")] = 1
    crs: Crs = None
    to_crs: ToCrs = None
    resolution: Resolution = None


STEPS = ("scale", "offset")
SEPARATOR = ","
LISTS = {
    bool: "truth values such as true,false",
    float: "numbers such as 300,400,500",
    int: "whole numbers such as 3,4,5",
}
"""What a list of a type must be, with an example."""


@dataclass(frozen=True)
class ParametersOf:
    """The parameters of a function that a command has as options."""

    function: str
    only: tuple[str, ...]
    exclude: tuple[str, ...]
    of_file: bool

    def options(self, command: str) -> "list[DerivedOption]":
        """Make the options of a command."""
        from spatialq.functions.catalogue import catalogue
        from spatialq.functions.declaration import BOUNDS, COORDINATES  # they follow from the file

        return [
            DerivedOption(command, self.function, each, of_file=self.of_file)
            for each in catalogue()[self.function].parameters
            if each.name not in (*self.exclude, BOUNDS, *COORDINATES)
            and (not self.only or each.name in self.only)
        ]


@dataclass(frozen=True)
class DerivedOption:
    """An option of a command that stands for a parameter of a function."""

    command: str
    function: str
    parameter: "Parameter"
    of_file: bool
    """Whether a length may be in the unit of the command's file."""

    @property
    def signature(self) -> inspect.Parameter:
        """Give the option as typer reads it from a signature."""
        default, kind = self.parameter.default, self.parameter.type
        flag = f"--{self.parameter.name.replace('_', '-')}"
        if kind is bool and not self.parameter.is_list and default is not False:
            flag = f"{flag}/--no-{flag.removeprefix('--')}"
        if self.parameter.is_list or self.parameter.is_length:
            default, kind = None if default is None else self._text(default), str
        panel = f"Parameters of {self.function}"
        option = typer.Option(flag, help=self.help, rich_help_panel=panel)
        return inspect.Parameter(
            self.parameter.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[kind | None if default is None else kind, option],
        )

    @property
    def help(self) -> str:
        """Describe the option as the catalogue describes the parameter."""
        from rich.markup import escape

        from spatialq.functions.macros import description

        text = description(self.parameter)
        # on the command line, an option that is not given stands for NULL
        for in_sql, here in ((", or NULL)", ")"), (" or NULL)", ")"), ("NULL", "the default")):
            text = text.replace(in_sql, here)
        if self.parameter.is_length:
            units = ", or 2u for 2 units of x and y of the file" if self.of_file else ""
            text = f"{text} With its unit, such as 2m or 20ft{units}."
        if self.parameter.is_list:
            text = f"{text} Separated by commas."
        return escape(text)

    def value(self, given: Any) -> Any:
        """Convert what was given on the command line to a value of the parameter.

        Lengths stay texts where the workflow converts them, which knows the unit of the file.

        Raises
        ------
        ValueError
            If it is no list of values of the type, or no length.
        """
        if given is None:
            return None
        if self.parameter.is_length and not self.of_file:
            from spatialq.data.units import metres

            return metres(self.command, self.parameter.name, given)
        if not self.parameter.is_list:
            return given
        if self.parameter.type is str or self.parameter.is_length:
            return names(given)
        try:
            return tuple(map(self.parameter.type, given.split(SEPARATOR)))
        except ValueError:
            must = LISTS[self.parameter.type]
            message = f"{self.command}: {self.parameter.name} must be {must}, got {given!r}"
            raise ValueError(message) from None

    def _text(self, default: Any) -> str:
        """Write a default as the command line has it."""
        if self.parameter.is_list:
            return SEPARATOR.join(map(self._text_of_one, default))
        return self._text_of_one(default)

    def _text_of_one(self, value: Any) -> str:
        if self.parameter.is_length:
            return as_text(value) if self.parameter.in_metres else f"{value:g}{OF_FILE}"
        return f"{value:g}" if isinstance(value, float) else str(value)


def with_parameters(
    function: str,
    *,
    only: Sequence[str] = (),
    exclude: Sequence[str] = (),
    of_file: bool = True,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the parameters of a function as options, without naming them.

    The command gets the values of all as one dict `options`. Several functions are several
    decorators. The declarations are read when the command is called or its help is shown, see
    `CommandGroup`.

    Parameters
    ----------
    function : str
        A function of the catalogue.
    only, exclude : sequence of str
        The parameters that become options; by default all.
    of_file : bool
        Whether the workflow converts lengths such as '2mm', with the unit of the file that the
        command reads; else the command gets metres.
    """
    source = ParametersOf(function, tuple(only), tuple(exclude), of_file)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        command.sources = (source, *sources_of(command))  # type: ignore[attr-defined]
        return command

    return decorate


def sources_of(command: Callable[..., None]) -> tuple[ParametersOf, ...]:
    """Give the functions whose parameters are options of a command, as `with_parameters` says."""
    sources: tuple[ParametersOf, ...] = getattr(command, "sources", ())
    return sources


def register(app: typer.Typer, command: Callable[..., None]) -> None:
    """Make a function a command; `CommandGroup` adds the options that are derived."""
    app.command(cls=Command)(_with_options(command, []))


def _with_options(
    command: Callable[..., None], derived: "Sequence[DerivedOption]"
) -> Callable[..., None]:
    """Give a command with all options where it has arguments that stand for several.

    These are `options`, for those that are derived, and dataclasses, for their fields.
    """
    expected = inspect.signature(command).parameters.values()
    groups: dict[str, Any] = {
        each.name: each.annotation for each in expected if is_dataclass(each.annotation)
    }
    if not (groups or sources_of(command)):
        return command

    @wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in fields(group)})
        if sources_of(command):
            given["options"] = {
                each.parameter.name: each.value(given.pop(each.parameter.name)) for each in derived
            }
        command(**given)

    parameters: list[inspect.Parameter] = []
    for each in expected:
        if each.name == "options":
            parameters += [option.signature for option in derived]
        elif each.name in groups:
            parameters += [
                inspect.Parameter(
                    field.name, each.kind, default=field.default, annotation=field.type
                )
                for field in fields(groups[each.name])
            ]
        else:
            parameters.append(each)
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


class AsGiven:
    """How values of an option are converted: texts, and defaults of its type, stay as they are.

    Typer imports Pydantic to convert a value, which takes a seventh of a short command.
    """

    def coerce(self, value: object, param: Any, ctx: Any) -> Any:
        """Convert a value as typer does."""
        described = param.type_descriptor
        kind, is_list = described.annotation, param.multiple or param.nargs == -1
        if described.parameter_info.parser is None:
            if value is None or (type(value) is kind and kind in (str, int, float)):
                return () if value is None and is_list else value
            if kind == list[str] and isinstance(value, list | tuple):
                return list(value)
        param._runtime_param = None  # for which typer makes its own
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _as_given(options: list[Any]) -> list[Any]:
    for each in options:
        # other versions of typer do without Pydantic
        if "_runtime_param" in vars(each) and each._runtime_param is None:
            each._runtime_param = AsGiven()
    return options


class Command(TyperCommand):
    """A command whose options are converted as `AsGiven` does."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Give the options and arguments, with --help."""
        return _as_given(super().get_params(ctx))


class CommandGroup(TyperGroup):
    """Commands that get their derived options only when they are called or their help is shown.

    The list of the commands, and commands without such options, do not need the declarations.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """Give the options of all commands, with --help."""
        return _as_given(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command by name, complete with its options."""
        name, found, rest = super().resolve_command(ctx, args)
        if name is not None and found is not None and found.callback is not None:
            command = inspect.unwrap(found.callback)
            derived = [each for source in sources_of(command) for each in source.options(name)]
            if derived:
                single = typer.Typer(add_completion=False)
                single.command(name, cls=Command)(_with_options(command, derived))
                found = typer.main.get_command(single)
        return name, found, rest


def names(text: str) -> tuple[str, ...]:
    """Read names with commas between them."""
    return tuple(name.strip() for name in text.split(SEPARATOR))


def _numbers(command: str, name: str, given: str | None, must: str) -> tuple[float, ...] | None:
    """Read numbers with commas between them; how many, the workflow checks.

    Raises
    ------
    ValueError
        If they are no numbers.
    """
    if given is None:
        return None
    try:
        return tuple(map(float, given.split(SEPARATOR)))
    except ValueError:
        message = f"{command}: --{name} must be {must}, got {given!r}"
        raise ValueError(message) from None


def bounds_of(command: str, given: str | None) -> tuple[float, ...] | None:
    """Read four numbers with commas between them, as `_numbers`."""
    must = "four numbers xmin,ymin,xmax,ymax such as 0,0,100,50"
    return _numbers(command, "bounds", given, must)
