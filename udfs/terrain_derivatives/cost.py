"""How much work a call of `terrain_derivatives` is: bytes and steps, no machine constants."""

from spatialq.functions.declaration import Size, Work

BYTES_IN, BYTES_OUT = 8, 11 * 8


def work(size: Size, _: object) -> Work:
    """Count the cells."""
    return Work(
        bytes_in=BYTES_IN * size.rows,
        bytes_out=BYTES_OUT * size.rows,
        steps={"cells": size.rows},
        bytes_kernel=(BYTES_IN + BYTES_OUT) * size.rows,
    )
