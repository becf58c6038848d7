"""Small files on any storage that Spark supports (local disks, HDFS, object stores), through Hadoop's file systems."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class HadoopFolder:
    """A folder on a Hadoop file system."""

    spark: SparkSession
    root: str

    def exists(self, name: str = "") -> bool:
        path, system = self._at(name)
        return bool(system.exists(path))

    def names(self) -> list[str]:
        """Return the names in the folder; none if it does not exist."""
        path, system = self._at("")
        return [status.getPath().getName() for status in system.listStatus(path)] if system.exists(path) else []

    def delete(self, name: str) -> None:
        path, system = self._at(name)
        system.delete(path, True)

    def rename(self, name: str, to: str) -> None:
        """Rename a file or folder in one step; raise OSError if the new name exists."""
        path, system = self._at(name)
        target, _ = self._at(to)
        system.mkdirs(target.getParent())
        if system.exists(target) or not system.rename(path, target):
            raise OSError(f"cannot rename {path} to {target}")

    def read_json(self, name: str) -> dict[str, Any] | None:
        """Read a file that `write_json` wrote; None if it does not exist."""
        path, system = self._at(name)
        if not system.exists(path):
            return None
        stream = system.open(path)
        try:
            text = self._java().org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        finally:
            stream.close()
        found = json.loads(text)
        return found if isinstance(found, dict) else None

    def write_json(self, name: str, value: dict[str, Any]) -> None:
        """Write a file, whole or not at all."""
        staged, system = self._at(f"_{name}.staged")
        stream = system.create(staged, True)
        try:
            stream.write(bytearray(json.dumps(value, ensure_ascii=False, indent=1).encode()))
        finally:
            stream.close()
        path, _ = self._at(name)
        system.delete(path, False)
        if not system.rename(staged, path):
            raise OSError(f"cannot write {path}")

    def _at(self, name: str) -> tuple[Any, Any]:
        path = self._java().org.apache.hadoop.fs.Path(f"{self.root}/{name}" if name else self.root)
        return path, path.getFileSystem(self.spark.sparkContext._jsc.hadoopConfiguration())

    def _java(self) -> Any:
        return self.spark.sparkContext._jvm
