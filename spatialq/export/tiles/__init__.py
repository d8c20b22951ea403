"""3D Tiles 1.1: point clouds and meshes as glTF, in a tree of tiles that viewers stream."""
