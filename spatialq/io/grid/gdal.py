"""How GDAL opens a grid: with drivers of formats in which a file names no other file.

GDAL looks at the content of a file, whatever its name is. One that is a virtual dataset (VRT), a
web service or a catalogue would make it read any other file, or ask a server. The drivers below
read the file that is given, and files beside it that have its name with another ending.
"""

import mmap
import os
import re
import struct
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.errors import FileError
from spatialq.io.crs import files_named
from spatialq.runtime.arrays import Bytes
from spatialq.runtime.extras import require
from spatialq.runtime.forks import may_use_threads
from spatialq.runtime.threads import n_threads

DRIVERS = (
    "AAIGrid", "BMP", "BT", "BYN", "DTED", "EHdr", "ENVI", "GRASSASCIIGrid", "GRIB", "GS7BG",
    "GSAG", "GSBG", "GTX", "GTiff", "GXF", "HF2", "HFA", "ISG", "JP2OpenJPEG", "JPEG", "Leveller",
    "NGSGEOID", "NWT_GRD", "PCRaster", "PNG", "PNM", "SAGA", "SIGDEM", "SRTMHGT", "Terragen",
    "USGSDEM", "XYZ", "ZMap",
)  # fmt: skip
"""Names that GDAL gives the formats."""
VIRTUAL = ("VRT",)
"""For datasets that are written here."""
ELSEWHERE = "/vsi"
"""How names begin that GDAL takes for other file systems."""
TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
"""How a TIFF begins: no driver that follows other files takes a file with such bytes."""
ERDAS, OUTSOURCED = b"EHFA_HEADER_TAG", b"ExternalRasterDMS"
"""How an ERDAS file begins, and the name of its node whose text is the file with its cells."""
GEO_TEXTS, MOST_TAGS, LONGEST_TEXT = 34737, 1 << 16, 1 << 24
MASK = ".msk"
CRS_OF_XML = ("SRS", "Projection", "WKT")
"""Names of elements and attributes of an .aux.xml file of which GDAL makes a CRS."""
CRS_OF_ENVI = re.compile(r"coordinate.system.string[^}]*[^\n]*", re.IGNORECASE)
"""What is a CRS in the header of an ENVI file; GDAL reads the whole line of the brace."""
MOST_LISTED = 1000
"""Files of a folder in which GDAL looks for names that differ in case; of more it does not."""


@contextmanager
def opened(
    caller: str,
    path: Path,
    *,
    virtual: str | None = None,
    overviews: bool = True,
) -> Iterator[Any]:
    """Open a file, or a virtual dataset that was written for it.

    Parameters
    ----------
    caller : str
        Whose errors they are.
    path : Path
    virtual : str, optional
        The text of the virtual dataset.
    overviews : bool
        Whether GDAL may take parts at a lower resolution from an overview. One may be in any other
        file, which the file or those beside it name.

    Raises
    ------
    FileError
        If it cannot be read.
    """
    require("raster", caller, path)
    import rasterio
    from rasterio.io import DatasetReader

    # as an absolute path a name such as 'GTIFF_DIR:1:a.tif' or 'zip:a' is that of a file
    name = virtual or local_file(caller, path)
    options = {} if overviews else {"OVERVIEW_LEVEL": "NONE"}
    try:
        # An environment of its own: the caller may be any thread of DuckDB.
        with rasterio.Env(GDAL_NUM_THREADS=gdal_threads()), warnings.catch_warnings():
            # a grid without georeference is one in cells, which the reader says in its words
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
            with DatasetReader(name, driver=list(VIRTUAL if virtual else DRIVERS), **options) as it:
                yield it
    # rasterio decodes texts of the file as UTF-8
    except (rasterio.errors.RasterioError, UnicodeDecodeError) as error:
        raise FileError.of(caller, path, f"cannot be read by GDAL: {error}") from error


def gdal_threads() -> int:
    """Threads that GDAL may use: one in a fork, which does not have those that GDAL started."""
    return n_threads() if may_use_threads("rasterio") else 1


def local_file(caller: str, path: Path) -> Path:
    """Give the absolute path of a file as GDAL gets it.

    Raises
    ------
    FileError
        If GDAL would take its name for that of something else.
    """
    file = Path(os.fspath(path)).absolute()
    if str(file).startswith(ELSEWHERE):
        reason = f"GDAL takes names that begin with {ELSEWHERE} for no files: move it elsewhere"
        raise FileError.of(caller, path, reason)
    return file


def require_plain(caller: str, path: Path) -> None:
    """Reject a file beside which is one that would make GDAL open any other.

    Raises
    ------
    FileError
        If there is a mask that is no TIFF, which GDAL would open with any driver; if what is said
        of the CRS names a file, or an ERDAS file names one for its cells; or if a file beside it is
        a link to another folder than those of the grid and of what the grid links to.
    """
    file = local_file(caller, path)
    if _is_outsourced(file):
        reason = "names another file for its cells, which is not read; gdal_translate joins them"
        raise FileError.of(caller, path, reason)
    if named := files_named(_geo_texts(file).decode("latin-1")):
        raise FileError.of(caller, path, f"its CRS names the file '{named[0]}', which is not read")
    folders = {file.parent.resolve(), file.resolve().parent}
    for beside in _beside(file):
        if beside.resolve().parent not in folders:
            reason = f"'{beside.name}' beside it is a link to another folder, which is not read"
            raise FileError.of(caller, path, reason)
        ending = beside.suffix.lower()
        if ending != MASK and ending not in CRS_TEXTS:
            continue
        with beside.open("rb") as opened_file:
            head = opened_file.read(4 if ending == MASK else LONGEST_TEXT + 1)
        if ending == MASK:
            if head not in TIFF:
                raise FileError.of(caller, path, f"its mask '{beside.name}' is no TIFF")
        elif len(head) > LONGEST_TEXT:
            reason = f"'{beside.name}' beside it has more than {LONGEST_TEXT} bytes, the most read"
            raise FileError.of(caller, path, reason)
        elif named := files_named(CRS_TEXTS[ending](head.decode("latin-1"))):
            reason = f"'{beside.name}' beside it names the file '{named[0]}', which is not read"
            raise FileError.of(caller, path, reason)


def _crs_of_xml(text: str) -> str:
    """Give what may be a CRS in an .aux.xml file.

    Of each name it is all from the first element to the end of the last one: a comment within it
    may have what looks like its end. GDAL takes attributes for elements, and has any case.
    """
    found = []
    for name in CRS_OF_XML:
        begin = re.search(rf"<\s*{name}\b", text, re.IGNORECASE)
        ends = [each.end() for each in re.finditer(rf"/\s*{name}\b", text, re.IGNORECASE)]
        if begin is not None:
            found.append(text[begin.start() : ends[-1] if ends else None])
        values = rf"\b{name}\s*=\s*(\"[^\"]*|'[^']*|\S+)"
        found += re.findall(values, text, re.IGNORECASE)
    return unescape("\n".join(found))


def _crs_of_header(text: str) -> str:
    return "\n".join(CRS_OF_ENVI.findall(text))


CRS_TEXTS: dict[str, Callable[[str], str]] = {
    ".xml": _crs_of_xml,
    ".prj": unescape,
    ".hdr": _crs_of_header,
}
"""What gives the CRS in the text of a file beside a grid, by its ending."""


def _is_outsourced(file: Path) -> bool:
    with file.open("rb") as opened_file:
        if opened_file.read(len(ERDAS)) != ERDAS:
            return False
        with mmap.mmap(opened_file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(OUTSOURCED) >= 0


def is_masked(dataset: Any, band: int) -> bool:
    """Whether missing cells are marked by a mask, in the file or in one beside it."""
    from rasterio.enums import MaskFlags

    return MaskFlags.per_dataset in dataset.mask_flag_enums[band - 1]


def thinned_mask(
    dataset: Any,
    band: int,
    window: tuple[tuple[int, int], tuple[int, int]],
    out_shape: tuple[int, int],
) -> Bytes:
    """Read every so many cells of a mask, those that GDAL takes, without overviews.

    Those of a mask may be in any other file, and GDAL has no option that leaves them out.
    """
    (top, bottom), (left, right) = window
    rows, columns = (
        first + ((np.arange(n) + 0.5) * (stop - first) / n).astype(int)
        for n, first, stop in zip(out_shape, (top, left), (bottom, right), strict=True)
    )
    mask = np.empty(out_shape, np.uint8)
    for i, row in enumerate(rows.tolist()):
        line = dataset.read_masks(band, window=((row, row + 1), (left, right)))
        mask[i] = line[0, columns - left]
    return mask


def _geo_texts(file: Path) -> bytes:
    """Read the texts of the GeoTIFF keys of a TIFF: GDAL makes a CRS of one of them."""
    with file.open("rb") as opened_file:
        head = opened_file.read(16)
        if head[:4] not in TIFF:
            return b""
        is_big, order = head[:4] in TIFF[2:], "<" if head[:2] == b"II" else ">"
        entry = struct.Struct(f"{order}HHQQ" if is_big else f"{order}HHII")
        try:
            opened_file.seek(struct.unpack_from(f"{order}{'8xQ' if is_big else '4xI'}", head)[0])
            number = struct.Struct(f"{order}{'Q' if is_big else 'H'}")
            (entries,) = number.unpack(opened_file.read(number.size))
            listed = opened_file.read(entry.size * min(entries, MOST_TAGS))
            listed = listed[: len(listed) // entry.size * entry.size]
            for tag, _, length, begin in entry.iter_unpack(listed):
                if tag == GEO_TEXTS:
                    opened_file.seek(begin)
                    return opened_file.read(min(length, LONGEST_TEXT))
        except (struct.error, OSError, OverflowError):
            pass  # GDAL says what is wrong
    return b""


def _beside(file: Path) -> list[Path]:
    """Give the files beside a file that GDAL may read with it."""
    ending = file.suffix[1:]
    worlds = {f".{each}" for each in (f"{ending[:1]}{ending[-1:]}w", f"{ending}w", "tfw", "wld")}
    wanted = {f"{file.name}{end}" for end in (MASK, ".aux.xml", ".aux", ".hdr", ".wld")}
    wanted |= {f"{file.stem}{end}" for end in (".prj", ".hdr", ".aux", ".tab", *worlds)}
    names = wanted | {f"{Path(name).stem}{Path(name).suffix.upper()}" for name in wanted}
    alike = {name.lower() for name in wanted}
    with os.scandir(file.parent) as listed:
        names.update(
            each.name for each in islice(listed, MOST_LISTED + 1) if each.name.lower() in alike
        )
    return [other for name in sorted(names) if (other := file.with_name(name)).is_file()]
