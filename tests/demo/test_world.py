from spatialq.demo import write_world


def test_files_are_made_once(tmp_path):
    first = write_world(tmp_path, n_points=5_000)
    times = [path.stat().st_mtime_ns for path in first[:4]]
    second = write_world(tmp_path, n_points=5_000)
    assert times == [path.stat().st_mtime_ns for path in second[:4]]
    assert second.village.points == first.village.points
    assert second.house == first.house
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "house.ifc",
        "house.laz",
        "site.laz",
        "village.laz",
        "world.json",
    ]


def test_files_of_another_recipe_are_replaced(tmp_path):
    write_world(tmp_path, n_points=5_000)
    assert sum(write_world(tmp_path, n_points=6_000).village.points.values()) == 6_000


def test_a_spoilt_stamp_is_replaced(tmp_path):
    world = write_world(tmp_path, n_points=5_000)
    (tmp_path / "world.json").write_text("{")
    assert write_world(tmp_path, n_points=5_000).village.points == world.village.points
