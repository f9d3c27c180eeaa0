"""Sound privacy accounting, usable on its own: needs no server and imports nothing but the native module.

Events say what is released; `epsilon` and `delta` bound what that costs, `calibrate` finds the noise. Neighbours are
two datasets of which one has a record made null. Every bound is proven for the event as it stands.

>>> from dpar import privacy
>>> dp_sgd = privacy.PoissonGaussian(sampling_rate=0.01, noise_stddev=1.0) * 1000
>>> round(privacy.epsilon(dp_sgd, delta=1e-5), 3)
1.828
>>> privacy.calibrate(privacy.Gaussian(), epsilon=1.0, delta=1e-5).noise > 3.7
True
"""
from __future__ import annotations

import dataclasses
import json
from typing import Any, ClassVar, Union

from dpar import _native


class _Repeatable:
    """`event * count` is the event, `count` times over."""

    field: ClassVar[str]

    def __mul__(self, count: int) -> Repetition:
        assert isinstance(self, _EVENTS)
        return Repetition(count=count, event=self)

    __rmul__ = __mul__


@dataclasses.dataclass(frozen=True)
class Gaussian(_Repeatable):
    """`count` Gaussian mechanisms of standard deviation `noise_stddev`.

    >>> round(epsilon(Gaussian(noise_stddev=2.0), delta=1e-5), 3)
    1.993
    """

    sensitivity: float = 1.0
    noise_stddev: float = 1.0
    count: int = 1
    field: ClassVar[str] = "gaussian"


@dataclasses.dataclass(frozen=True)
class Laplace(_Repeatable):
    """Laplace noise of scale `scale` on a number.

    >>> round(epsilon(Laplace(scale=2.0), delta=1e-9), 3)
    0.5
    """

    sensitivity: float = 1.0
    scale: float = 1.0
    field: ClassVar[str] = "laplace"


@dataclasses.dataclass(frozen=True)
class PoissonGaussian(_Repeatable):
    """A step of DP-SGD in which a record is in the batch with probability `sampling_rate`.

    >>> epsilon(PoissonGaussian(sampling_rate=0.5), delta=1e-5) < epsilon(Gaussian(), delta=1e-5)
    True
    """

    sampling_rate: float
    sensitivity: float = 1.0
    noise_stddev: float = 1.0
    field: ClassVar[str] = "poisson_gaussian"


@dataclasses.dataclass(frozen=True)
class RowMixture(_Repeatable):
    """A step of DP-SGD in which a node has `rows` rows, each in the batch with probability `sampling_rate`.

    >>> epsilon(RowMixture(rows=3, sampling_rate=0.1), 1e-5) > epsilon(PoissonGaussian(sampling_rate=0.1), 1e-5)
    True
    """

    rows: int
    sampling_rate: float
    sensitivity: float = 1.0
    noise_stddev: float = 1.0
    field: ClassVar[str] = "row_mixture"


@dataclasses.dataclass(frozen=True)
class RowChange(_Repeatable):
    """A step of DP-SGD over rows that read edges: a node's row vanishes, and `changed_rows` of its neighbours change.

    >>> epsilon(RowChange(changed_rows=0, sampling_rate=1.0, noise_stddev=5.0), 1e-5) < 1
    True
    """

    changed_rows: int
    sampling_rate: float
    sensitivity: float = 1.0
    noise_stddev: float = 1.0
    rounding: float = 0.0
    field: ClassVar[str] = "row_change"


@dataclasses.dataclass(frozen=True)
class BoundedRange(_Repeatable):
    """A selection whose privacy losses lie in an interval of length `range`, such as the exponential mechanism.

    >>> epsilon(BoundedRange(range=0.5), delta=1e-6) <= 0.5
    True
    """

    range: float
    field: ClassVar[str] = "bounded_range"


@dataclasses.dataclass(frozen=True)
class Composition(_Repeatable):
    """All of these events, each chosen in advance. `compose` makes one."""

    events: tuple[Event, ...] = ()
    field: ClassVar[str] = "composition"


@dataclasses.dataclass(frozen=True)
class Repetition(_Repeatable):
    """The same event, `count` times."""

    count: int
    event: Event
    field: ClassVar[str] = "repetition"


@dataclasses.dataclass(frozen=True)
class NodeSampling(_Repeatable):
    """Every record is kept with probability `sampling_rate`, once and secretly; `event` runs on what was kept.

    >>> epsilon(NodeSampling(0.1, Gaussian()), delta=1e-5) < epsilon(Gaussian(), delta=1e-5)
    True
    """

    sampling_rate: float
    event: Event
    field: ClassVar[str] = "node_sampling"


@dataclasses.dataclass(frozen=True)
class Stage(_Repeatable):
    """A part of a pipeline under its name; it costs what `event` costs."""

    name: str
    event: Event
    field: ClassVar[str] = "stage"


_EVENTS = (
    Gaussian,
    Laplace,
    PoissonGaussian,
    RowMixture,
    RowChange,
    BoundedRange,
    Composition,
    Repetition,
    NodeSampling,
    Stage,
)
_KINDS: dict[str, Any] = {getattr(kind, "field"): kind for kind in _EVENTS}
Event = Union[
    Gaussian,
    Laplace,
    PoissonGaussian,
    RowMixture,
    RowChange,
    BoundedRange,
    Composition,
    Repetition,
    NodeSampling,
    Stage,
]


def to_json(event: Event) -> str:
    """The event in the words of certificates and ledgers.

    >>> to_json(Gaussian(noise_stddev=2.0))
    '{"gaussian": {"sensitivity": 1.0, "noise_stddev": 2.0, "count": 1}}'
    """
    return json.dumps(_to_dict(event))


def from_json(text: str) -> Event:
    """The event of a certificate's plan or of a ledger entry.

    >>> from_json('{"laplace": {"sensitivity": 1, "scale": 2}}')
    Laplace(sensitivity=1, scale=2)
    """
    _native.check_event(text)
    return _from_dict(json.loads(text))


def _to_dict(event: Event) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for part in dataclasses.fields(event):
        value = getattr(event, part.name)
        if part.name == "event":
            value = _to_dict(value)
        elif part.name == "events":
            value = [_to_dict(inner) for inner in value]
        fields[part.name] = value
    return {event.field: fields}


def _from_dict(tree: dict[str, Any]) -> Event:
    ((name, fields),) = tree.items()
    kind = _KINDS[name]
    if "event" in fields:
        fields = fields | {"event": _from_dict(fields["event"])}
    if "events" in fields:
        fields = fields | {"events": tuple(_from_dict(inner) for inner in fields["events"])}
    event = kind(**fields)
    assert isinstance(event, _EVENTS)
    return event


def epsilon(event: Event, delta: float) -> float:
    """The smallest proven epsilon of the event at this delta.

    >>> round(epsilon(Gaussian(noise_stddev=1.0), delta=1e-5), 6)
    4.377178
    """
    return _native.epsilon(to_json(event), delta)


def delta(event: Event, epsilon: float) -> float:
    """The smallest proven delta of the event at this epsilon.

    >>> delta(Gaussian(noise_stddev=1.0), epsilon=4.377179) <= 1e-5
    True
    """
    return _native.delta(to_json(event), epsilon)


def compose(*events: Event) -> Composition:
    """All of these together, each chosen in advance.

    >>> both = compose(Gaussian(noise_stddev=4.0), Laplace(scale=10.0))
    >>> epsilon(both, 1e-5) > epsilon(Gaussian(noise_stddev=4.0), 1e-5)
    True
    """
    return Composition(tuple(events))


@dataclasses.dataclass(frozen=True)
class Calibration:
    """`noise` multiplies all noise of the event that was asked about; `event` is the result."""

    noise: float
    event: Event


def calibrate(event: Event, *, epsilon: float, delta: float) -> Calibration:
    """The smallest noise that meets (epsilon, delta), scaling that of every mechanism alike.

    With events of noise 1, the factor is the noise multiplier.

    >>> steps = PoissonGaussian(sampling_rate=0.01) * 100
    >>> found = calibrate(steps, epsilon=1.0, delta=1e-5)
    >>> 0.999 < epsilon(found.event, 1e-5) <= 1.0
    True
    """
    noise, scaled = _native.calibrate(to_json(event), epsilon, delta)
    return Calibration(noise, _from_dict(json.loads(scaled)))


@dataclasses.dataclass(frozen=True)
class Stages:
    """Epsilons of a DPAR pipeline: of each stage as if it were alone, and of all of it."""

    appr_epsilon: float
    sgd_epsilon: float
    epsilon: float


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What a DPAR pipeline costs (`sound`, a bound) and what its paper claims (`published`, no bound)."""

    sound: Stages
    published: Stages
    event: Event


def compare(
    *,
    method: str,
    appr_noise: float,
    sampling_rate: float,
    noise_multiplier: float,
    steps: int,
    delta: float,
    seeds: int = 70,
    top_k: int = 2,
    value_noise: float = 0.0,
    max_occurrence: int = 1,
    node_sampling_rate: float = 1.0,
) -> Comparison:
    """A DPAR pipeline by sound accounting and as published: `dpar privacy compare` in Python.

    >>> both = compare(method="dpar-em0", appr_noise=40, sampling_rate=0.05, noise_multiplier=5, steps=200,
    ...                max_occurrence=3, delta=1e-3)
    >>> round(both.sound.epsilon, 3), round(both.published.epsilon, 3)
    (1.932, 5.665)
    """
    pipeline = _native.Pipeline(
        method=method,
        seeds=seeds,
        top_k=top_k,
        appr_noise=appr_noise,
        value_noise=value_noise,
        sampling_rate=sampling_rate,
        noise_multiplier=noise_multiplier,
        steps=steps,
        max_occurrence=max_occurrence,
        node_sampling_rate=node_sampling_rate,
    )
    claim = pipeline.published(delta)
    event = _from_dict(json.loads(pipeline.event()))
    inner = event.event if isinstance(event, NodeSampling) else event
    assert isinstance(inner, Composition)

    def alone(*parts: Event) -> float:
        stage: Event = compose(*parts)
        if node_sampling_rate != 1:
            stage = NodeSampling(node_sampling_rate, stage)
        return epsilon(stage, delta)

    # DP-SGD is the last part of the composition, and those before it are DP-APPR.
    sound = Stages(alone(*inner.events[:-1]), alone(inner.events[-1]), epsilon(event, delta))
    return Comparison(sound, Stages(claim["appr_epsilon"], claim["sgd_epsilon"], claim["epsilon"]), event)
