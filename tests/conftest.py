"""Property tests draw the same examples in every run; `make fuzz` is where new ones are looked for."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "tidelog", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tidelog")


@pytest.fixture(scope="session")
def kernels() -> None:
    """Compiled kernels in the cache, so that no command under test says that it compiles them."""
    import tidelog as tl

    tl.materialise(tl.Program.parse("A :- B."), tl.Dataset.parse("B@0")).render()
