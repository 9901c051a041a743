"""Real lines of every layout and every wrapper of logs, by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LAYOUT_SAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "bracketed_level_context": (
        "[2021-03-02 09:12:44,001] INFO {} [KafkaServer id=1] started (kafka.server.KafkaServer)",
        "[2021-03-02 09:12:44,001] INFO {client=a, node=b} starting (kafka.server.KafkaServer)",
    ),
    "bracketed_level_thread": ("[2021-03-02 09:12:44,001] INFO [main] starting (kafka.server.KafkaServer)",),
    "bracketed_thread_level": ("[2021-03-02 09:12:44,001] [main] INFO starting (kafka.server.KafkaServer)",),
    "bracketed_all": (
        "[2021-03-02 09:12:44,001] [INFO ] [main] [kafka.server.KafkaServer] - [KafkaServer id=1] started",
        "[2021-03-02 09:12:44,001] [INFO] [kafka.server.KafkaServer] starting",
    ),
    "bracketed_bracketed_level": (
        "[2021-03-02 09:12:44,001] [INFO ] [KafkaServer id=1] started (kafka.server.KafkaServer)",
    ),
    "bracketed_level_logger": ("[2021-03-02 09:12:44,001] INFO kafka.server.KafkaServer: starting",),
    "bracketed_level_short_logger": ("[2021-03-02 09:12:44,001] INFO KafkaServer: [KafkaServer id=1] started",),
    "bracketed": (
        "[2014-03-11 10:21:07,123] INFO [Kafka Server 1], started (kafka.server.KafkaServer)",
        "[2021-03-02T09:12:44.001Z] INFO [KafkaServer id=1] started (kafka.server.KafkaServer:66)",
        "[02 Mar 2021 09:12:44,001] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)",
        "[1614676364001] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)",
        "[09:12:44,001] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)",
    ),
    "bracketed_thread_at_end": (
        "[2021-03-02 09:12:44,001] INFO [KafkaServer id=1] started (kafka.server.KafkaServer) [main]",
    ),
    "thread_level_logger": (
        "2023-06-01 12:00:00,123 [main] INFO  kafka.server.KafkaServer - [KafkaServer id=1] started",
        "12:00:00.123 [main] INFO  k.server.KafkaServer - [KafkaServer id=1] started",
    ),
    "thread_level_short_logger": ("2023-06-01 12:00:00,123 [main] INFO  KafkaServer - [KafkaServer id=1] started",),
    "thread_level": ("2023-06-01 12:00:00,123 [main] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)",),
    "level_thread_place": ("2013-12-05 10:11:12,345 - INFO  [main:Logging$class@68] - starting",),
    "myid_level_thread_place": (
        "2021-03-02 09:12:44,001 [myid:1] - INFO  [main:o.a.z.s.ZooKeeperServer@123] - starting",
    ),
    "level_thread_logger": (
        "2018-05-23 10:21:07,123 INFO  [main] server.KafkaServer (Logging.scala:info(70)) - started",
    ),
    "level_logger_thread": (
        "2024-03-11 10:21:07,123 INFO  [kafka.server.KafkaServer] (main) [KafkaServer id=3] started",
    ),
    "level_bracketed_logger": ("2024-03-11 10:21:07,123 INFO [kafka.server.KafkaServer] [KafkaServer id=3] started",),
    "level_logger": (
        "2019-05-23 10:21:07,123 INFO kafka.server.KafkaServer: [KafkaServer id=3] started",
        "2014-03-11 10:21:07,123 TRACE state.change.logger: Controller 1 epoch 1 changed partition [t,0] state",
    ),
    "level_short_logger": ("2019-05-23 10:21:07,123 INFO KafkaServer: [KafkaServer id=3] started",),
    "level_thread": ("2019-05-23 10:21:07,123 INFO [main] starting (kafka.server.KafkaServer)",),
    "level": (
        "2014-03-11 10:21:07,123 INFO [Kafka Server 1], started (kafka.server.KafkaServer)",
        "2021-03-02T09:12:44.001+0200 INFO [KafkaServer id=1] started (kafka.server.KafkaServer:66)",
        "20210302T091244,001 INFO [KafkaServer id=1] started (kafka.server.KafkaServer)",
        "1614676364001 INFO [KafkaServer id=1] started (kafka.server.KafkaServer)",
        "2021/03/02 09:12:44.001 INFO [KafkaServer id=1] started (kafka.server.KafkaServer)",
    ),
    "level_thread_at_end": (
        "2019-11-21 10:21:07,123 INFO [KafkaServer id=3] started (kafka.server.KafkaServer) [main]",
    ),
    "level_first_logger": (
        "INFO  [2021-03-02 09:12:44,001] kafka.server.KafkaServer: [KafkaServer id=1] started",
        "[INFO ] 2021-03-02 09:12:44.001 [main] kafka.server.KafkaServer - [KafkaServer id=1] started",
    ),
    "level_first": (
        "INFO [2021-03-02 09:12:44,001] [KafkaServer id=1] started (kafka.server.KafkaServer)",
        "INFO 2021-03-02 09:12:44,001 [KafkaServer id=1] started (kafka.server.KafkaServer)",
    ),
    "json_log4j2": (
        '{"instant":{"epochSecond":1614676364,"nanoOfSecond":1000000},"thread":"main","level":"INFO",'
        '"loggerName":"kafka.server.KafkaServer","message":"[KafkaServer id=1] started","endOfBatch":false,'
        '"loggerFqcn":"org.apache.logging.slf4j.Log4jLogger","threadId":1,"threadPriority":5}',
        '{"timeMillis":1614676364001,"thread":"main","level":"ERROR","loggerName":"kafka.server.KafkaServer",'
        '"message":"[KafkaServer id=1] failed","thrown":{"commonElementCount":0,"message":"no",'
        '"name":"java.lang.IllegalStateException","extendedStackTrace":[{"class":"kafka.Kafka$",'
        '"method":"main","file":"Kafka.scala","line":109,"exact":true,"location":"?","version":"?"}]}}',
    ),
    "json_ecs": (
        '{"@timestamp":"2021-03-02T09:12:44.001Z","ecs.version":"1.2.0","log.level":"INFO",'
        '"message":"[KafkaServer id=1] started","process.thread.name":"main",'
        '"log.logger":"kafka.server.KafkaServer"}',
        '{"@timestamp":"2021-03-02T09:12:44.001Z","log":{"level":"ERROR",'
        '"logger":"kafka.server.KafkaServer"},"message":"[KafkaServer id=1] failed","process":{"thread":{'
        '"name":"main"}},"error":{"type":"java.lang.IllegalStateException","message":"no",'
        '"stack_trace":"java.lang.IllegalStateException: no\\n\\tat kafka.Kafka$.main(Kafka.scala:109)\\n"}}',
    ),
    "json_logstash": (
        '{"@timestamp":"2021-03-02T09:12:44.001+01:00","@version":"1","message":"[KafkaServer id=1] started",'
        '"logger_name":"kafka.server.KafkaServer","thread_name":"main","level":"INFO","level_value":20000}',
        '{"@timestamp":"2021-03-02T09:12:44.001Z","source_host":"k1","level":"ERROR","thread_name":"main",'
        '"logger_name":"kafka.server.KafkaServer","message":"failed","exception":{'
        '"exception_class":"java.lang.IllegalStateException","exception_message":"no",'
        '"stacktrace":"java.lang.IllegalStateException: no\\n\\tat kafka.Kafka$.main(Kafka.scala:109)"}}',
    ),
    "json_gelf": (
        '{"version":"1.1","host":"k1","timestamp":1614676364.001,"level":6,"_thread":"main",'
        '"_logger":"kafka.server.KafkaServer","short_message":"[KafkaServer id=1] started"}',
        '{"version":"1.1","host":"k1","timestamp":1614676364.001789303,"level":3,"_thread":"main",'
        '"_logger":"kafka.server.KafkaServer","short_message":"failed",'
        '"full_message":"java.lang.IllegalStateException: no\\n\\tat kafka.Kafka$.main(Kafka.scala:109)\\n"}',
    ),
    "json": (
        '{"timestamp":"2021-03-02T09:12:44.001Z","level":"INFO","logger":"kafka.server.KafkaServer",'
        '"thread":"main","message":"[KafkaServer id=1] started"}',
        '{"timestamp":"2021-03-02T09:12:44.001Z","severity":"EMERGENCY","message":"failed","_exception":{'
        '"class":"java.lang.IllegalStateException","message":"no",'
        '"stackTrace":"java.lang.IllegalStateException: no\\n\\tat kafka.Kafka$.main(Kafka.scala:109)"},'
        '"_thread":"main","_logger":"kafka.server.KafkaServer"}',
        '{"time":1614676364001,"severity":"INFO","logger":"kafka.server.KafkaServer","msg":"started"}',
    ),
}

_LINE: Final = "[2024-05-01 10:00:00,123] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)"
WRAPPER_SAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "compose": (
        f"kafka-1  | {_LINE}",
        f"\x1b[36mkafka-1    |\x1b[0m {_LINE}",
        f"\x1b[33mkafka-1  | \x1b[0m{_LINE}",
        f"kafka_kafka.1.x5f0zvk4dnna@node1    | {_LINE}",
    ),
    "kubernetes": (f"2024-05-01T10:00:00.123456789Z stdout F {_LINE}",),
    "docker_json": (
        f'{{"log":"{_LINE}\\n","stream":"stdout","time":"2024-05-01T10:00:00.123456789Z"}}',
        f'{{"log":"{_LINE}","stream":"stdout","kubernetes":{{"pod_name":"kafka-0","container_name":"kafka"}}}}',
    ),
    "journald_json": (
        f'{{"__REALTIME_TIMESTAMP":"1714557600123456","_HOSTNAME":"host1","_SYSTEMD_UNIT":"kafka.service",'
        f'"_PID":"4711","PRIORITY":"6","MESSAGE":"{_LINE}"}}',
    ),
    "loki_json": (f'{{"labels":{{"pod":"kafka-0"}},"line":"{_LINE}","timestamp":"2024-05-01T10:00:00.123456789Z"}}',),
    "message_json": (
        f'{{"timestamp":1714557600123,"message":"{_LINE}","ingestionTime":1714557601000}}',
        f'{{"@timestamp":"2024-05-01T10:00:00.123Z","host":{{"name":"k1"}},"message":"{_LINE}"}}',
    ),
    "google_json": (f'{{"resource":{{"labels":{{"pod_name":"kafka-0"}}}},"textPayload":"{_LINE}"}}',),
    "timestamped": (f"2024-05-01T10:00:00.123456789Z {_LINE}",),
    "pod": (f"[pod/kafka-0/kafka] {_LINE}",),
    "syslog": (
        f"Mar 11 10:21:07 host1 kafka[4711]: {_LINE}",
        f"<30>Mar  1 10:21:07 host1 kafka: {_LINE}",
        f"2024-05-01T10:00:00+0200 host1 kafka-server-start.sh[4711]: {_LINE}",
        f"Wed 2024-05-01 10:00:00 CEST host1 kafka[4711]: {_LINE}",
    ),
    "syslog_5424": (
        f"<165>1 2024-05-01T10:00:00.003Z host1 kafka 4711 - - {_LINE}",
        f'<165>1 2024-05-01T10:00:00.003Z host1 kafka 4711 ID47 [a@1 b="c"] \ufeff{_LINE}',
    ),
    "ansi": (_LINE.replace("INFO", "\x1b[32mINFO\x1b[m"),),
    "stern": (f"kafka-0 kafka {_LINE}",),
}
