"""A Spark session that works on a fresh machine with nothing set up, and says nothing while it starts.

Without a master it is whatever Spark itself is configured for, which is `local[*]` on a machine that has no
configuration. What the user set (in the environment, in Spark's files, by spark-submit) stays as it is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from tidelog.errors import Diagnostic, TidelogError
from tidelog.spark.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What a streaming query with our operator needs; Spark takes it when the query starts.
STATE: dict[str, str] = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}

#: How rows go to Python: in batches of so many, whatever their bytes. By default Spark adds up the bytes of a batch
#: again with every row, which takes half of the time that Java spends on rows for us.
ROWS: dict[str, str] = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),
}

#: What every session of ours has, unless it is told otherwise.
_SETTINGS: dict[str, str] = {
    **STATE,
    **ROWS,
    "spark.sql.session.timeZone": "UTC",  # as dates without a zone are read everywhere in tidelog
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",  # buckets are laid out by the plan; partitions are not to be merged
}

_LOCAL = ("local", "local-cluster")


def session(
    master: str | None = None,
    *,
    name: str = "tidelog",
    settings: Mapping[str, str] | None = None,
    log: str | Path | None = None,
) -> SparkSession:
    """The session that runs already, or a new one.

    `log` names a file for Spark's own warnings, and for what workers print; neither is shown otherwise.
    """
    spark_session = _import()
    if _running():
        return spark_session.builder.getOrCreate()
    wanted = {**_SETTINGS, **(settings or {})}
    printed = None
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # else spark-submit has started Java, and has its own settings
        printed = _environment(master or wanted.get("spark.master"), wanted, log)
        wanted["spark.driver.extraJavaOptions"] = " ".join(
            [wanted.get("spark.driver.extraJavaOptions", ""), *_logging(log)]
        ).strip()
    _hush()
    builder = spark_session.builder.appName(name)
    for key, value in wanted.items():
        builder = builder.config(key, value)
    if master is not None:
        builder = builder.master(master)
    try:
        return builder.getOrCreate()
    except Exception as problem:
        raise _not_started(problem, master, printed) from None


def lacking(spark: SparkSession) -> dict[str, str]:
    """What a session made by somebody else lacks for a streaming query of ours."""
    return {key: value for key, value in STATE.items() if spark.conf.get(key, None) != value}


@contextmanager
def query_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings for the queries that start meanwhile: a query keeps those that its session had when it started."""
    before = {key: spark.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, kept in before.items():
            if kept is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, kept)


def _import() -> type[SparkSession]:
    try:
        from pyspark.sql import SparkSession
    except ImportError as problem:
        raise TidelogError(
            Diagnostic("TL801", f"PySpark cannot be imported: {problem}", help="pip install 'tidelog[spark]'")
        ) from None
    return SparkSession


def _running() -> bool:
    """Whether there is a session already, in whatever thread; it is left as it is."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None


def _environment(master: str | None, settings: Mapping[str, str], log: str | Path | None) -> Path:
    """What Java and the Python workers find in their environment; what is set already stays. Where they print to."""
    home, printed = java_home(None if log is None else Path(log).absolute())
    os.environ["JAVA_HOME"] = str(home)
    if "spark.pyspark.python" not in settings:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master is None or master.partition("[")[0] in _LOCAL:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # else Spark warns of names that lead to loopback
    if master is not None and master.startswith("local-cluster"):
        import pyspark

        os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    return printed


def _not_started(problem: Exception, master: str | None, printed: Path | None) -> TidelogError:
    """Why Spark did not start, in the words of whoever knows."""
    last = printed.read_text(errors="replace").strip().splitlines()[-1:] if printed and printed.exists() else []
    reason = last[0] if last else str(problem).strip().splitlines()[0]
    where = f" on {master}" if master else ""
    help = "a master is local[*], local[4], spark://host:7077, k8s://..., or yarn" if master else None
    return TidelogError(Diagnostic("TL801", f"Spark does not start{where}: {reason}", help=help))


def _hush() -> None:
    """PySpark prints what it raises, too, as JSON with two stacks; it is enough that it raises."""
    from pyspark.logger import PySparkLogger

    for logger in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(logger).disabled = True


def _logging(log: str | Path | None) -> list[str]:
    """Options for Java by which Spark logs into a file, or nowhere; somebody's own log4j2 file stays in force."""
    configured = os.environ.get("SPARK_CONF_DIR")
    if configured and (Path(configured) / "log4j2.properties").exists():
        return []
    ours = Path(str(files("tidelog.spark").joinpath("log4j2.properties")))
    options = [f"-Dlog4j2.configurationFile={ours.as_uri()}"]
    if log is not None:
        options += [f'"-Dtidelog.log={Path(log).absolute()}"', "-Dtidelog.level=warn"]
    return options
