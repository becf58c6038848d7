"""The engines that workers keep, and pass on to each other; `test_spark_without_spark` runs jobs on several workers."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

from tidelog.engine.generated_tier import JoinTier
from tidelog.spark.worker.engine_cache import EngineCache, fetch_engine

PLACE = ("run", 0, 3)


@pytest.fixture(scope="module")
def workers() -> tuple[EngineCache, EngineCache]:
    return EngineCache(), EngineCache()


def test_an_engine_is_taken_once(workers: tuple[EngineCache, EngineCache]) -> None:
    one, _ = workers
    engine = object()
    token = one.make_token()
    one.keep(PLACE, token, engine)
    assert one.take(PLACE, token) is engine
    assert one.take(PLACE, token) is None


def test_an_outdated_engine_is_dropped(workers: tuple[EngineCache, EngineCache]) -> None:
    one, _ = workers
    one.keep(PLACE, one.make_token(), object())
    assert one.take(PLACE, "0" * 32) is None
    assert not one.places


@pytest.mark.skipif(sys.platform != "linux", reason="sockets without a file exist on Linux alone")
def test_a_worker_takes_the_engine_of_another_one(workers: tuple[EngineCache, EngineCache]) -> None:
    one, other = workers
    shared = np.arange(100_000)
    token = one.make_token()
    one.keep(PLACE, token, {"atoms": shared, "again": shared, "few": np.zeros((2, 0)), "name": "Alarm"})
    found = other.take(PLACE, token)
    assert found is not None
    assert found["name"] == "Alarm"
    assert found["few"].shape == (2, 0)
    assert found["atoms"] is found["again"]
    assert (found["atoms"] == shared).all()
    assert found["atoms"].flags.writeable
    found["atoms"][0] = 7
    assert shared[0] == 0
    assert not one.places
    assert other.take(PLACE, token) is None


def test_only_the_same_version_of_the_same_run_is_given(workers: tuple[EngineCache, EngineCache]) -> None:
    """A query that was started again may have other rules: it restores its engines from the state."""
    one, other = workers
    token = one.make_token()
    one.keep(PLACE, token, "engine")
    assert other.take(("another run", 0, 3), token) is None
    assert fetch_engine(PLACE, one.make_token()) is None
    assert fetch_engine(PLACE, "made by an older version") is None
    assert one.places == {PLACE}
    one.clear()
    assert other.take(PLACE, token) is None


def test_an_engine_that_cannot_be_sent_is_restored_elsewhere(workers: tuple[EngineCache, EngineCache]) -> None:
    one, other = workers
    token = one.make_token()
    one.keep(PLACE, token, lambda: None)
    assert other.take(PLACE, token) is None
    one.keep(PLACE, token, "engine")
    assert other.take(PLACE, token) == ("engine" if sys.platform == "linux" else None)


def test_generated_joins_stay_where_they_were_compiled() -> None:
    tier = JoinTier()
    tier._generated, tier._decided, tier._spent = (lambda: None), True, 10
    copy = pickle.loads(pickle.dumps(tier))
    assert (copy._generated, copy._decided, copy._spent) == (None, False, 10)
    tier._generated = None  # there are none for this program
    assert pickle.loads(pickle.dumps(tier))._decided
