"""Start a Spark session on a fresh machine with nothing set up, without printing anything.

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
from typing import TYPE_CHECKING, Any

from tidelog.errors import Diagnostic, TidelogError
from tidelog.spark.job.connect import connect, is_connect_address
from tidelog.spark.job.java import is_pyspark_installed, prepare_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Settings that a streaming query with our operator needs when it starts.
STATE_STORE_SETTINGS: dict[str, str] = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}

#: Settings for fact DataFrames with watermarks of their own: one clock, that of the latest row.
CLOCK_SETTINGS: dict[str, str] = {"spark.sql.streaming.multipleWatermarkPolicy": "max"}

#: Send rows to Python in batches limited by their number, not their bytes. By default, Spark adds up the bytes of a
#: batch again with every row, which takes half of the time that Java spends on our rows.
ARROW_SETTINGS: dict[str, str] = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),
}

#: Default settings of our sessions.
_SETTINGS: dict[str, str] = {
    **STATE_STORE_SETTINGS,
    **ARROW_SETTINGS,
    "spark.sql.session.timeZone": "UTC",  # everywhere in tidelog, dates without a zone are UTC
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",  # the plan places the buckets; do not merge partitions
}

#: Options for the Java of a local Spark: its second compiler waits for ten times as many calls, and passes of loops, as
#: by default. A small job ends before most methods are that hot, and otherwise spends much of its time on compiling
#: them; a large job gets there in seconds.
COMPILER_OPTIONS = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)

#: The module that Spark forks Python workers from.
_DAEMON = "spark.python.daemon.module"

_LOCAL = ("local", "local-cluster")


def session(
    master: str | None = None,
    *,
    name: str = "tidelog",
    settings: Mapping[str, str] | None = None,
    log: str | Path | None = None,
) -> SparkSession:
    """Return the running session, or start a new one.

    `log` names a file for Spark's own warnings, and for what workers print; neither is shown otherwise. A master
    `sc://host:15002` is a server of Spark Connect.
    """
    spark_session = _import_spark_session()
    if master is not None and is_connect_address(master):
        _silence_pyspark()
        return connect(master, {**_SETTINGS, **(settings or {})})
    if _is_running():
        return spark_session.builder.getOrCreate()
    wanted = {**_SETTINGS, **(settings or {})}
    printed = None
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # else spark-submit has started Java, and has its own settings
        place = master or wanted.get("spark.master")
        printed = _set_environment(place, wanted, log)
        given = wanted.get("spark.driver.extraJavaOptions", "")
        wanted["spark.driver.extraJavaOptions"] = build_java_options(place, given, log)
    _silence_pyspark()
    builder = spark_session.builder.appName(name)
    for key, value in wanted.items():
        builder = builder.config(key, value)
    if master is not None:
        builder = builder.master(master)
    try:
        spark = builder.getOrCreate()
    except Exception as problem:
        raise _start_error(problem, master, printed) from None
    _preload_workers(spark)
    return spark


def _preload_workers(spark: SparkSession) -> None:
    """Let Python workers of a local Spark find their libraries imported, unless the user has chosen another daemon.

    Elsewhere this package may reach the workers only after their daemon has started. Spark reads the setting when it
    starts the first worker, so it can be set once the master is known.
    """
    context: Any = spark.sparkContext
    settings = context._jsc.sc().conf()
    if context.master.partition("[")[0] == "local" and not settings.contains(_DAEMON):
        settings.set(_DAEMON, "tidelog.spark.worker.worker_daemon")


def require_pyspark() -> None:
    """Raise TL801 if PySpark cannot be imported."""
    _import_spark_session()


def missing_settings(spark: SparkSession) -> dict[str, str]:
    """Return the settings that a session lacks for a streaming query."""
    return {key: value for key, value in STATE_STORE_SETTINGS.items() if spark.conf.get(key, None) != value}


def require_state_store(spark: SparkSession) -> None:
    """Raise TL811 if streaming queries of this session cannot keep state; Spark would only fail in the first batch.

    The setting is not changed here, since it would affect other streaming queries of the session, too. Some hosted
    Sparks have RocksDB state stores of their own.
    """
    provider = next(iter(STATE_STORE_SETTINGS))
    if "RocksDB" in (spark.conf.get(provider, None) or ""):
        return
    settings = "; ".join(f'spark.conf.set("{key}", "{value}")' for key, value in missing_settings(spark).items())
    raise TidelogError(
        Diagnostic(
            "TL811",
            "this Spark session does not keep the state of streams in RocksDB",
            help=f"before you start the query: {settings}",
        )
    )


@contextmanager
def query_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Apply settings to the queries that start in the block: a query keeps the settings at its start."""
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


def _import_spark_session() -> type[SparkSession]:
    try:
        from pyspark.sql import SparkSession
    except ImportError as problem:
        raise TidelogError(Diagnostic("TL801", f"PySpark cannot be imported: {problem}")) from None
    return SparkSession


def _is_running() -> bool:
    """Return whether there is a session already, in any thread."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None


def _set_environment(master: str | None, settings: Mapping[str, str], log: str | Path | None) -> Path:
    """Set the environment of Java and the Python workers, where it is not set; return the file that they print to."""
    own_python = "spark.pyspark.python" not in settings
    if own_python:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    local = master is not None and master.partition("[")[0] == "local"
    hide = local and own_python and os.environ["PYSPARK_PYTHON"] == sys.executable and is_pyspark_installed()
    home, printed = prepare_java_home(None if log is None else Path(log).absolute(), hide_spark_home=hide)
    os.environ["JAVA_HOME"] = str(home)
    if master is None or master.partition("[")[0] in _LOCAL:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # else Spark warns of names that lead to loopback
    if master is not None and master.startswith("local-cluster"):
        import pyspark

        os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    return printed


def _start_error(problem: Exception, master: str | None, printed: Path | None) -> TidelogError:
    """Return the error why Spark did not start, from the most informative source."""
    last = printed.read_text(errors="replace").strip().splitlines()[-1:] if printed and printed.exists() else []
    reason = last[0] if last else str(problem).strip().splitlines()[0]
    where = f" on {master}" if master else ""
    help = "a master is local[*], local[4], spark://host:7077, k8s://..., or yarn" if master else None
    return TidelogError(Diagnostic("TL801", f"Spark does not start{where}: {reason}", help=help))


def _silence_pyspark() -> None:
    """Stop PySpark from printing the errors that it raises, as JSON with two stack traces."""
    from pyspark.logger import PySparkLogger

    for logger in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(logger).disabled = True


def build_java_options(master: str | None, given: str, log: str | Path | None) -> str:
    """Build the options of the Java process that is started: ours, and those that the user has given.

    Of several values for an option of the compilers, Java takes the last one: the user's.
    """
    compilers = COMPILER_OPTIONS if master is None or master.partition("[")[0] in _LOCAL else ()
    return " ".join(filter(None, [*compilers, given, *_logging_options(log)]))


def _logging_options(log: str | Path | None) -> list[str]:
    """Return options for Java to log into a file, or nowhere, unless the user has a log4j2 file."""
    configured = os.environ.get("SPARK_CONF_DIR")
    if configured and (Path(configured) / "log4j2.properties").exists():
        return []
    ours = Path(str(files("tidelog.spark").joinpath("log4j2.properties")))
    options = [f"-Dlog4j2.configurationFile={ours.as_uri()}"]
    if log is not None:
        options += [f'"-Dtidelog.log={Path(log).absolute()}"', "-Dtidelog.level=warn"]
    return options
