"""Files that neither Kafka nor what collects its logs writes, by their names: what else lies in a folder.

A checkout, a home directory or a distribution is full of them. They are counted and not rejected one by one. Only a
file that is recognised as nothing is asked for its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

#: Kinds of files that no Kafka process writes and no collector of logs exports, by what their names end with.
_ENDING: Final = re.compile(
    r"\.(adoc|asc|asp|aspx|avi|avif|avro|bash|bat|bmp|c|cc|class|cmake|cmd|coffee|cpp|cs|css|csproj|dart|dll|doc|docx"
    r"|dylib|egg|ejs|eot|exe|ftl|go|gradle|groovy|h|hbs|hpp|htm|html|ico|iml|ini|ipynb|iws|jar|java|jpeg|jpg|js"
    r"|json|jsp|jsx|kt|kts|less|lua|m|map|md|mdx|mjs|mov|mp3|mp4|mvn|odp|ods|odt|otf|parquet|pdf|pem|php|pl|png"
    r"|po|ppt|pptx|proto|ps1|psd|py|pyc|pyd|pyi|pyx|r|rb|rs|rst|sass|scala|scss|sh|sln|so|sql|svg|swf|swift|tf"
    r"|thrift|tiff|toml|ts|tsx|ttf|vb|vm|vue|war|wasm|wav|webm|webp|whl|woff|woff2|xhtml|xls|xlsx|xml|xsd|xsl"
    r"|xslt|yaml|yml)\Z"
)
_NAME: Final = re.compile(
    r"(license|notice|readme|changelog|authors|contributing|copying|dockerfile|makefile|jenkinsfile|gemfile"
    r"|procfile|vagrantfile|rakefile|gradlew|mvnw|\.ds_store|\.gitignore|\.gitattributes|\.gitmodules|\.gitkeep"
    r"|\.dockerignore|\.editorconfig|\.npmrc|\.npmignore|\.babelrc|\.eslintrc|\.prettierrc|\.classpath"
    r"|\.project|thumbs\.db)"
)
#: Folders of tools.
_FOLDERS: Final = frozenset(
    {".git", ".svn", ".hg", ".idea", ".gradle", ".mvn", "node_modules", "__pycache__", "licenses"}
)
#: Endings of texts that somebody may have saved a log as, and words in the name of one.
_OF_TEXTS: Final = frozenset({"adoc", "htm", "html", "json", "md", "mdx", "rst", "xhtml", "xml", "yaml", "yml"})
_KAFKAS: Final = re.compile(
    r"(?:^|[^a-z])(?:logs?|checkpoints?|properties|kafka|zookeeper|znodes?|brokers?|controllers?|state-?change)(?:[^a-z]|$)"
)


def not_of_kafka(names: Sequence[str]) -> str | None:
    """What a file's name says that it is, where no Kafka file has such a name: its ending (``.java``), a tool's folder
    (``.git/``) or a whole name (``license``). NULL where it may be Kafka's; ``names`` are those along its path."""
    folder = next((name for name in names[:-1] if name in _FOLDERS), None)
    if folder is not None:
        return f"{folder}/"
    name = names[-1].lower() if names else ""
    ending = _ENDING.search(name)
    if ending is None:
        return name if _NAME.fullmatch(name) else None
    return None if ending[1] in _OF_TEXTS and _KAFKAS.search(name) else ending[0]


def in_words(counts: Mapping[str, int], most: int = 5) -> str:
    """Counts by kind of name, the most frequent first: ``.java 640, .html 500 and 12 more kinds``."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"{kind} {count:,}" for kind, count in ordered[:most])
    more = len(ordered) - most
    return shown if more <= 0 else f"{shown} and {more} more kind{'s' if more > 1 else ''}"
