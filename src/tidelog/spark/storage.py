"""Small files on whatever Spark stores things on: local disks, HDFS, object stores; through Hadoop's file systems."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Storage:
    """A folder, as Java sees it."""

    spark: SparkSession
    root: str

    def exists(self, name: str = "") -> bool:
        path, system = self._at(name)
        return bool(system.exists(path))

    def names(self) -> list[str]:
        """What is in the folder; nothing if it is not there."""
        path, system = self._at("")
        return [status.getPath().getName() for status in system.listStatus(path)] if system.exists(path) else []

    def delete(self, name: str) -> None:
        path, system = self._at(name)
        system.delete(path, True)

    def rename(self, name: str, to: str) -> None:
        """Give a file or a folder another name, in one step; there must be none of that name."""
        path, system = self._at(name)
        target, _ = self._at(to)
        system.mkdirs(target.getParent())
        if system.exists(target) or not system.rename(path, target):
            raise OSError(f"cannot rename {path} to {target}")

    def read_json(self, name: str) -> dict[str, Any] | None:
        """What `write_json` wrote; None if there is no such file."""
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
        """The whole file, or none of it."""
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
