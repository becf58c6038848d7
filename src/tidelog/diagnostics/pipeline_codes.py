"""TL8xx: pipelines on Spark."""

from __future__ import annotations

from tidelog.diagnostics.entry import DiagnosticEntry, Example

PIPELINE_CODES = (
    DiagnosticEntry(
        "TL801",
        "Spark, or a Java for it, is missing",
        Example(
            "situation",
            "`tidelog run` is started in an environment without PySpark or without Java.",
            "run `pip install 'tidelog[spark]'`, which brings both.",
        ),
        help="pip install 'tidelog[spark]'",
    ),
    DiagnosticEntry(
        "TL802",
        "a pipeline or schema file that is not TOML",
        Example("pipeline", "query = Alarm", 'query = "Alarm"'),
        help='a line is `key = "text"`, `key = 3`, `key = true` or `[table]`; text is in quotes',
    ),
    DiagnosticEntry(
        "TL803",
        "an unknown key in a pipeline or schema file",
        Example("pipeline", 'chekpoint = "run/checkpoint"', 'checkpoint = "run/checkpoint"'),
    ),
    DiagnosticEntry(
        "TL804",
        "a missing key in a pipeline or schema file",
        Example("pipeline", '[sinks.answers]\nformat = "json"', '[sinks.answers]\nformat = "json"\npath = "answers"'),
    ),
    DiagnosticEntry(
        "TL805",
        "a value of the wrong kind in a pipeline or schema file",
        Example("pipeline", 'buckets = "many"', "buckets = 4"),
    ),
    DiagnosticEntry(
        "TL806",
        "an unreadable source",
        Example(
            "situation",
            "the `path` of a source is a folder that does not exist.",
            "correct the path; relative paths start from the folder of the pipeline file.",
        ),
    ),
    DiagnosticEntry(
        "TL807",
        "an SQL query that does not fit its sources",
        Example(
            "situation",
            "a fact is defined by SELECT turbin FROM readings, and readings has a column turbine.",
            "select columns that the source has.",
        ),
    ),
    DiagnosticEntry(
        "TL808",
        "facts of a predicate that the rules do not have",
        Example(
            "pipeline",
            '[facts]\nSmok = "SELECT room FROM readings"',
            '[facts]\nSmoke = "SELECT room FROM readings"',
        ),
    ),
    DiagnosticEntry(
        "TL809",
        "a checkpoint or output of another pipeline",
        Example(
            "situation",
            "the query of a pipeline was changed, and its checkpoint is from before the change.",
            "begin again with another checkpoint.",
        ),
        law="a checkpoint continues with the rules, the query and the options that created it",
    ),
    DiagnosticEntry(
        "TL810",
        "a job that failed",
        Example(
            "situation",
            "a broker or a file system went away while the job was running.",
            "read the log that the message names, repair the cause and run the job again.",
        ),
    ),
    DiagnosticEntry(
        "TL811",
        "a Spark session that cannot keep the state of a stream",
        Example(
            "situation",
            "a streaming job is built in a Spark session whose state store is not RocksDB.",
            "set the settings that the message names before the query starts.",
        ),
        law="Spark's stateful operator for Python needs the RocksDB state store",
    ),
    DiagnosticEntry(
        "TL812",
        "a Java process that has ended",
        Example(
            "situation",
            "the system ran out of memory and killed the Java process of Spark in the middle of a job.",
            "give it more memory (`spark.driver.memory`), and run the job again.",
        ),
        law="Spark runs in a Java process beside tidelog, and a job ends with it",
    ),
    DiagnosticEntry(
        "TL813",
        "columns that Spark may not be asked for",
        Example(
            "situation",
            "`reason` is called in a function of a declarative pipeline, without the columns of its DataFrames.",
            'declare them: schemas={"Hot": "turbine STRING, time TIMESTAMP"}.',
        ),
        law="a function of a declarative pipeline may not analyse a DataFrame: its tables may not exist yet",
    ),
    DiagnosticEntry(
        "TL814",
        "a streaming pipeline on Spark Connect",
        Example(
            "situation",
            '`tidelog run --remote sc://host:15002` is given a pipeline file with mode = "stream".',
            "run it with `--master`, on the machines of the server.",
        ),
        law="a streaming pipeline writes its batches in the process that starts it, and over Spark Connect they are "
        "written by the server",
    ),
)
