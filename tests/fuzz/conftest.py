"""The hypothesis profile of these tests: a few of the same examples in each test run, or as many new ones as asked for by
KERNELWRIGHT_FUZZ_EXAMPLES."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

MORE = os.environ.get("KERNELWRIGHT_FUZZ_EXAMPLES")

settings.register_profile(
    "fuzz",
    max_examples=int(MORE or 50),
    deadline=None,
    derandomize=MORE is None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
