"""Values: what a dataclass would do, without its price at the start. Serves rule.lightStart."""

from __future__ import annotations

import pytest

from adapters.values import Value, as_dict, replace

pytestmark = pytest.mark.rule("rule.lightStart")


class Point(Value):
    x: int
    y: int = 0


class Named(Point):
    name: str


class Line(Value):
    ends: tuple[Point, ...]
    names: dict[str, Point]
    first: Point | None = None


class Counter(Value, frozen=False):
    count: int = 0


class Other(Value):
    x: int
    y: int = 0


def test_it_is_made_of_keywords_and_defaults() -> None:
    assert (Point(x=1).x, Point(x=1).y, Point(x=1, y=2).y) == (1, 0, 2)


@pytest.mark.parametrize(
    ("fields", "said"), [({}, "Point needs x"), ({"y": 1}, "Point needs x"), ({"x": 1, "z": 2}, "Point has no z")]
)
def test_what_is_missing_or_too_much_is_named(fields: dict[str, int], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        Point(**fields)


def test_nothing_is_taken_by_place() -> None:
    with pytest.raises(TypeError):
        Point(1)  # type: ignore[misc]


def test_it_cannot_be_changed() -> None:
    point = Point(x=1)
    with pytest.raises(AttributeError, match="Point can't be changed: x"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError, match="Point can't be changed: x"):
        del point.x
    assert point.x == 1


def test_one_that_says_so_can_be_changed_but_gets_no_new_names() -> None:
    counter, another = Counter(), Counter()
    counter.count += 1
    assert (counter.count, another.count) == (1, 0)
    with pytest.raises(AttributeError):
        counter.total = 1  # type: ignore[attr-defined]


def test_it_is_equal_by_class_and_fields() -> None:
    assert Point(x=1) == Point(x=1, y=0)
    assert hash(Point(x=1)) == hash(Point(x=1, y=0))
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Other(x=1)
    assert Point(x=1) != (1, 0)


def test_replace_changes_a_copy_and_refuses_what_is_no_field() -> None:
    point = Point(x=1, y=2)
    assert replace(point, y=3) == Point(x=1, y=3)
    assert point == Point(x=1, y=2)
    with pytest.raises(TypeError, match="Point has no z"):
        replace(point, z=3)


def test_as_dict_goes_into_what_it_holds() -> None:
    line = Line(ends=(Point(x=1), Point(x=2)), names={"a": Point(x=3)})
    point = {"x": 1, "y": 0}
    assert as_dict(line) == {"ends": (point, {"x": 2, "y": 0}), "names": {"a": {"x": 3, "y": 0}}, "first": None}


def test_a_value_goes_on_with_the_fields_of_another() -> None:
    named = Named(name="a", x=1)
    assert (Named.fields, named.y) == (("x", "y", "name"), 0)
    assert as_dict(named) == {"x": 1, "y": 0, "name": "a"}
    assert named != Point(x=1)


def test_it_says_what_it_is() -> None:
    assert repr(Point(x=1)) == "Point(x=1, y=0)"


def test_it_holds_its_fields_and_nothing_else() -> None:
    assert not hasattr(Point(x=1), "__dict__")
