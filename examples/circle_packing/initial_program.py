"""26 circles in the unit square, as large as they can be without overlap."""

# EVOLVE-BLOCK-START
COLUMNS, ROWS = 6, 5


def pack():
    """The circles as (x, y, radius): places of a grid, all of one size."""
    radius = 1 / (2 * COLUMNS)
    places = [((column + 0.5) / COLUMNS, (row + 0.5) / ROWS) for row in range(ROWS) for column in range(COLUMNS)]
    return [(x, y, radius) for x, y in places[:26]]


# EVOLVE-BLOCK-END
