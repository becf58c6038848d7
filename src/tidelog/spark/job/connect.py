"""Sessions of Spark Connect: Spark runs in a server, and this process has no Java and no `SparkContext`."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tidelog.errors import Diagnostic, TidelogError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PREFIX = "sc://"
_PORT = 15002
#: Seconds that a server may take to accept a connection. PySpark itself would try for ten minutes.
_PATIENCE = 10.0
_HELP = "an address is sc://host:15002; start a server with $SPARK_HOME/sbin/start-connect-server.sh"
#: Enough rows that Spark makes a partition of them for every core.
_ROWS = 100_000


def is_connect_address(master: str | None) -> bool:
    """Return whether an address is that of a Connect server, `sc://host:15002`."""
    return master is not None and master.startswith(_PREFIX)


def is_connect_session(spark: SparkSession) -> bool:
    """Return whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def connect(address: str, settings: Mapping[str, str]) -> SparkSession:
    """Return a session of the server at this address, with those of the settings that belong to a session."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    _require_server(address)
    try:
        spark: SparkSession = SparkSession.builder.remote(address).getOrCreate()
        for key, value in settings.items():
            if key.startswith("spark.sql."):
                spark.conf.set(key, value)
    except ImportError as problem:
        help = "pip install 'tidelog[connect]'"
        raise TidelogError(
            Diagnostic("TL801", f"a package for Spark Connect is missing: {problem}", help=help)
        ) from None
    except PySparkException as problem:
        message = str(problem).strip().splitlines()[0]
        raise TidelogError(Diagnostic("TL801", f"there is no session on {address}: {message}", help=_HELP)) from None
    return spark


def _require_server(address: str) -> None:
    """Raise TL801 if nothing accepts connections at the address."""
    try:
        place = urlsplit(address)
        host, port = place.hostname or "", place.port or _PORT
        socket.create_connection((host, port), _PATIENCE).close()
    except (OSError, ValueError) as problem:
        message = f"no Spark Connect server answers at {address}: {problem}"
        raise TidelogError(Diagnostic("TL801", message, help=_HELP)) from None


def cancel_all(spark: SparkSession) -> None:
    """Cancel what is running in a session."""
    if is_connect_session(spark):
        spark.interruptAll()
    else:
        spark.sparkContext.cancelAllJobs()


def count_cores(spark: SparkSession) -> int:
    """Return the number of cores that Spark plans with; a Connect server is asked for it with a small job."""
    if not is_connect_session(spark):
        return spark.sparkContext.defaultParallelism
    from pyspark.sql import functions as F  # noqa: N812

    return spark.range(_ROWS).select(F.spark_partition_id()).distinct().count()
