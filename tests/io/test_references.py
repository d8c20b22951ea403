"""Names of files in files."""

import pytest

from spatialq.io.references import OutsideError, in_folder


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../a",
        "b/../../a",
        "..",
        "http://127.0.0.1/a",
        "s3://bucket/a",
        "file:///a",
        "a\0",
    ],
)
def test_names_that_leave_the_folder(tmp_path, name):
    with pytest.raises(OutsideError, match="which is not in its folder"):
        in_folder(tmp_path, name)


def test_names_within_the_folder(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "link").symlink_to(tmp_path / "a")
    for name, path in (("a", "a"), ("b/../a", "a"), ("./b/c..d", "b/c..d"), ("b/link", "b/link")):
        assert in_folder(tmp_path, name) == tmp_path / path
    (tmp_path / "b" / "out").symlink_to("/etc")
    with pytest.raises(OutsideError, match="which is a link to something"):
        in_folder(tmp_path, "b/out/passwd")
