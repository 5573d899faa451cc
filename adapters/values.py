"""Values: small frozen objects that say their fields as annotations, like dataclasses, and cost nothing at the start.

Owns `Value`, `replace` and `as_dict`. A dataclass is compiled anew, from text, in every process that imports it: 48 of
them and `dataclasses` itself took some 40 of the 106 ms that passed before Codex was started (CPython 3.11). Type
checkers know the fields by PEP 681. Standard library only. Serves rule.lightStart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_):
        return lambda made: made


@dataclass_transform(kw_only_default=True, frozen_default=True)
class _Fields(type):
    """Makes the annotated names of a class its slots, and what they are set to their defaults."""

    fields: tuple[str, ...]
    defaults: dict[str, Any]

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], *, frozen: bool = True) -> _Fields:
        own = tuple(namespace.get("__annotations__", ()))
        defaults = {field: namespace.pop(field) for field in own if field in namespace}
        if not frozen:
            namespace["__setattr__"] = object.__setattr__
        made = super().__new__(mcs, name, bases, {**namespace, "__slots__": own})
        above = [base for base in bases if isinstance(base, _Fields)]
        made.fields = (*(field for base in above for field in base.fields), *own)
        made.defaults = {field: value for base in above for field, value in base.defaults.items()} | defaults
        return made


class Value(metaclass=_Fields):
    """Made from keywords only; equal to another of its class with equal fields; can't be changed, unless its class
    says `frozen=False`. A default is one object for all that have it, so it must be one that can't be changed either.
    """

    if not TYPE_CHECKING:

        def __init__(self, **given):
            kind = type(self)
            values = {**kind.defaults, **given}
            for name in kind.fields:
                if name not in values:
                    raise TypeError(f"{kind.__name__} needs {name}")
                object.__setattr__(self, name, values[name])
            if len(values) > len(kind.fields):
                raise TypeError(f"{kind.__name__} has no {', '.join(values.keys() - set(kind.fields))}")

        def __setattr__(self, name, _value=None):
            raise AttributeError(f"{type(self).__name__} can't be changed: {name}")

        __delattr__ = __setattr__

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and _held(self) == _held(other)

    def __hash__(self) -> int:
        return hash(_held(self))

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self).fields)
        return f"{type(self).__name__}({said})"


V = TypeVar("V", bound=Value)


def replace(value: V, **changes: Any) -> V:
    """Another one of its class, with some fields changed. Raises TypeError for what is no field of it."""
    return type(value)(**{**dict(zip(type(value).fields, _held(value), strict=True)), **changes})


def as_dict(value: Value) -> dict[str, Any]:
    """Its fields by name; values in them, in tuples, lists and mappings too, become dicts as well."""
    return {name: _plain(getattr(value, name)) for name in type(value).fields}


def _plain(held: Any) -> Any:
    if isinstance(held, Value):
        return as_dict(held)
    if isinstance(held, (list, tuple)):
        return type(held)(map(_plain, held))
    return {key: _plain(inner) for key, inner in held.items()} if isinstance(held, dict) else held


def _held(value: Value) -> tuple[Any, ...]:
    return tuple(getattr(value, name) for name in type(value).fields)
