"""Spark's daemon for Python workers, with the libraries of our workers imported before they are forked.

Spark forks its Python workers from a daemon that imports hardly anything, so each worker imports PySpark, pandas, Arrow
and the engine for itself. `tidelog.spark.job.session` names this module as the daemon of local Sparks, with the setting
`spark.python.daemon.module`. It starts as `python -m tidelog.spark.worker.worker_daemon MODULE`, where MODULE is the
main module of the workers; Spark has others besides `pyspark.worker`, which it forks once and which need none of this.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module

_LIBRARIES = (
    "pyspark.worker",
    "pandas",
    "pyarrow.compute",
    "tidelog.spark.worker.answer_columns",
    "tidelog.spark.worker.fact_packer",
    "tidelog.spark.worker.stateful_operator",
)


def main() -> None:
    """Import the libraries, then fork workers until Spark ends."""
    if sys.argv[1:] == ["pyspark.worker"]:
        for name in _LIBRARIES:
            import_module(name)
        gc.freeze()  # a collection in a worker would otherwise copy the pages of all these objects
    import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    main()
