"""Paths for tests and benchmarks: the checkout, its examples, and the real traffic streams.

The traffic streams are not part of this repository. They are expected in the folder that the environment variable
`TIDELOG_DATA` names, by default `shared/data` beside the checkout; tests that need them are skipped without them.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "tidelog"
EXAMPLES = ROOT / "examples"
CASES = ROOT / "tests" / "behaviour"

TRAFFIC_DATA = Path(os.environ.get("TIDELOG_DATA", ROOT.parent / "shared" / "data"))
TRAFFIC_S1 = TRAFFIC_DATA / "traffic-S1.txt"
TRAFFIC_S2 = TRAFFIC_DATA / "traffic-S2.txt"
#: Why a test that needs them is skipped.
TRAFFIC_MISSING = "the real traffic streams are missing: set TIDELOG_DATA"
