"""Fields of settings: bounds and choices are checked, and a field can be shared."""

from dataclasses import dataclass, fields

import pytest

from vpo.util.settings import check_settings, is_setting, setting, setting_like, setting_of


@dataclass(frozen=True, kw_only=True)
class Paint:
    name: str
    colour: str = setting("red", "colour of the paint", choices=("red", "blue"))
    litres: float = setting(1.0, "how much", metavar="L", above=0, most=10)
    layers: int | None = setting(None, "how many layers", shown="as many as needed", least=1)
    uses: list[str] = setting(list, "where to use it", choices=("wall", "door"))

    def __post_init__(self):
        check_settings(self)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"colour": "green"}, "colour must be one of red, blue, not 'green'"),
        ({"litres": 0}, "litres must be greater than 0 and at most 10, not 0"),
        ({"litres": float("nan")}, "litres must be greater than 0 and at most 10, not nan"),
        ({"litres": 10.5}, "litres must be greater than 0 and at most 10, not 10.5"),
        ({"layers": 0}, "layers must be 1 or more, not 0"),
        ({"layers": 1.5}, "layers must be an integer, not 1.5"),
        ({"uses": ["wall", "roof"]}, "uses must name wall, door, not 'roof'"),
        ({"name": 3}, "name must be text, not 3"),
    ],
)
def test_values_out_of_bounds_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Paint(**{"name": "a", **settings})


def test_bounds_are_allowed_and_defaults_are_new():
    paint = Paint(name="a", colour="blue", litres=10, layers=1, uses=["door"])
    assert (paint.litres, paint.layers) == (10, 1)
    assert Paint(name="a").uses is not Paint(name="b").uses


def test_a_field_is_shared_but_for_what_changes():
    @dataclass(frozen=True)
    class Varnish:
        colour: str = setting_like(Paint, "colour")
        layers: int = setting_like(Paint, "layers", default=2, shown=None)
        uses: list[str] = setting_like(Paint, "uses")

    colour, layers, uses = fields(Varnish)
    assert Varnish() == Varnish("red", 2, [])
    assert setting_of(colour) == setting_of(fields(Paint)[1])
    assert (setting_of(layers).help, setting_of(layers).shown) == ("how many layers", None)
    assert uses.default_factory is list
    assert [is_setting(each) for each in fields(Paint)] == [False, True, True, True, True]
