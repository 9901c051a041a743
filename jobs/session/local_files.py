"""Files of this machine written without a process for each: Hadoop starts ``chmod`` and ``readlink`` by the thousand.

Without its native library Hadoop has ``chmod`` set what a new file may be asked for, and asks ``readlink`` whether the
two ends of a rename are links: 2,000 processes to ingest and reconstruct a capture of a megabyte, a fifth of all
processor time. Java itself can tell whether there is anything to do, which there is not where the process's umask is
Hadoop's and nothing is a link. The classes below ask it; all else is as in Hadoop's own classes, which they extend.

But for one thing: Hadoop looks whether a name is free, and then renames to it, so that of two who commit the same
version of a Delta table at the same moment both may believe that they did, and the first one's rows are lost. A name
is given here by a link, which the system refuses where the name is taken, if the file system has links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGE: Final = "org.apache.hadoop.fs"
#: By setting of Hadoop, which class is to be used.
_SETTINGS: Final = {"fs.file.impl": "OwnLocalFileSystem", "fs.AbstractFileSystem.file.impl": "OwnLocalFs"}
#: Each before those that need it.
_CLASSES: Final = ("OwnRawLocalFileSystem", "OwnLocalFileSystem", "OwnRawLocalFs", "OwnLocalFs")
_SOURCE: Final = f"""
package {_PACKAGE};

import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.local.LocalConfigKeys;
import org.apache.hadoop.fs.permission.FsPermission;

class OwnRawLocalFileSystem extends RawLocalFileSystem {{
    public void setPermission(Path path, FsPermission wanted) throws IOException {{
        Object held = Files.getPosixFilePermissions(pathToFile(path).toPath(), new LinkOption[0]);
        if (wanted.getStickyBit() || !PosixFilePermissions.fromString(wanted.toString()).equals(held))
            super.setPermission(path, wanted);
    }}
    public FileStatus getFileLinkStatus(Path path) throws IOException {{
        boolean isLink = Files.isSymbolicLink(pathToFile(path).toPath());
        return isLink ? super.getFileLinkStatus(path) : getFileStatus(path);
    }}
}}

public class OwnLocalFileSystem extends LocalFileSystem {{
    public OwnLocalFileSystem() {{ super(new OwnRawLocalFileSystem()); }}
}}

class OwnRawLocalFs extends DelegateToFileSystem {{
    OwnRawLocalFs(Configuration conf) throws IOException, URISyntaxException {{
        super(FsConstants.LOCAL_FS_URI, new OwnRawLocalFileSystem(), conf, "file", false);
    }}
    public void renameInternal(Path from, Path to) throws IOException {{
        File source = new File(from.toUri().getPath());
        File target = new File(to.toUri().getPath());
        if (!source.isFile()) {{
            super.renameInternal(from, to);
            return;
        }}
        try {{
            Files.createLink(target.toPath(), source.toPath());
            source.delete();
        }} catch (java.nio.file.FileAlreadyExistsException taken) {{
            throw new FileAlreadyExistsException(taken.getMessage());
        }} catch (FileSystemException withoutLinks) {{
            super.renameInternal(from, to);
        }} catch (UnsupportedOperationException withoutLinks) {{
            super.renameInternal(from, to);
        }}
    }}
    public int getUriDefaultPort() {{ return -1; }}
    public boolean isValidName(String name) {{ return true; }}
    public FsServerDefaults getServerDefaults(Path path) throws IOException {{
        return LocalConfigKeys.getServerDefaults();
    }}
    public FsServerDefaults getServerDefaults() throws IOException {{ return LocalConfigKeys.getServerDefaults(); }}
}}

public class OwnLocalFs extends ChecksumFs {{
    public OwnLocalFs(URI uri, Configuration conf) throws IOException, URISyntaxException {{
        super(new OwnRawLocalFs(conf));
    }}
}}
"""


def use_own_local_files(spark: SparkSession) -> None:
    """Have Hadoop use the classes in the session's Java, which must be the only one: none elsewhere knows them. A Java
    that an earlier session of the process left has them already."""
    from py4j.protocol import Py4JJavaError

    jvm: Any = spark._jvm
    try:
        jvm.java.lang.Class.forName(f"{_PACKAGE}.{_CLASSES[-1]}")
    except Py4JJavaError:
        _define_classes(jvm)
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    # what Spark has used to start is kept for the next who asks, whatever the settings
    jvm.org.apache.hadoop.fs.FileSystem.getLocal(settings).close()
    for setting, name in _SETTINGS.items():
        settings.set(setting, f"{_PACKAGE}.{name}")


def _define_classes(jvm: Any) -> None:
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(_SOURCE)
    codes = compiler.getBytecodes()
    invoke = jvm.java.lang.invoke
    neighbour = jvm.java.lang.Class.forName(f"{_PACKAGE}.LocalFileSystem")
    lookup = invoke.MethodHandles.privateLookupIn(neighbour, invoke.MethodHandles.lookup())
    for name in _CLASSES:
        lookup.defineClass(codes.get(f"{_PACKAGE}.{name}"))
