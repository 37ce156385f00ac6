"""maze: routes through a grid with two treasures that no single route can both collect (arXiv 2605.22817)."""

from vpo.tasks.maze.grid import Maze
from vpo.tasks.maze.task import MazeTask

__all__ = ["Maze", "MazeTask"]
