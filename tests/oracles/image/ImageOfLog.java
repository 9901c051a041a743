import java.io.File;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.metadata.MetadataRecordSerde;

/**
 * What a release's own MetadataDelta makes of the files of a node's metadata log, given in their order: a line for each
 * record of a partition or a broker, with what that is from then on. A "-" comes before each node's files.
 *
 * Classes of 3.3 to 4.3 are used alike: what moved, or changed its parameters, is found by its name.
 */
public class ImageOfLog {
    public static void main(String[] files) throws Exception {
        MetadataDelta delta = empty();
        Method replay = Arrays.stream(MetadataDelta.class.getMethods())
            .filter(one -> one.getName().equals("replay"))
            .filter(one -> one.getParameterTypes()[one.getParameterCount() - 1].equals(ApiMessage.class))
            .findFirst().orElseThrow();
        MetadataRecordSerde serde = new MetadataRecordSerde();
        for (String file : files) {
            if (file.equals("-")) {
                delta = empty();
                continue;
            }
            Object records = records().getMethod("open", File.class).invoke(null, new File(file));
            for (Object batch : (Iterable<?>) call(records, "batches")) {
                if ((boolean) call(batch, "isControlBatch")) {
                    continue;
                }
                for (Object record : (Iterable<?>) batch) {
                    ByteBuffer value = (ByteBuffer) call(record, "value");
                    ApiMessage message = serde.read(new ByteBufferAccessor(value), value.remaining()).message();
                    String name = message.getClass().getSimpleName();
                    if (name.endsWith("TransactionRecord")) {
                        continue; // MetadataBatchLoader's: no transaction of these logs was aborted
                    }
                    replay.invoke(delta, replay.getParameterCount() == 1
                        ? new Object[] {message}
                        : new Object[] {call(record, "offset"), 0, message});
                    print(file, call(record, "offset"), name, message, delta);
                }
            }
        }
    }

    private static MetadataDelta empty() throws Exception {
        Class<?>[] builders = MetadataDelta.class.getClasses();
        if (builders.length == 0) { // 3.3
            return MetadataDelta.class.getConstructor(MetadataImage.class).newInstance(MetadataImage.EMPTY);
        }
        Object builder = builders[0].getConstructor().newInstance();
        builders[0].getMethod("setImage", MetadataImage.class).invoke(builder, MetadataImage.EMPTY);
        return (MetadataDelta) call(builder, "build");
    }

    private static Class<?> records() throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.kafka.common.record.internal.FileRecords"); // since 4.2
        } catch (ClassNotFoundException error) {
            return Class.forName("org.apache.kafka.common.record.FileRecords");
        }
    }

    private static void print(String file, Object offset, String name, ApiMessage message, MetadataDelta delta)
            throws Exception {
        String subject;
        List<String> fields = new ArrayList<>();
        if (name.equals("PartitionRecord") || name.equals("PartitionChangeRecord")) {
            Uuid topic = (Uuid) call(message, "topicId");
            int number = (int) call(message, "partitionId");
            Object topics = call(delta.topicsDelta().changedTopics().get(topic), "partitionChanges");
            Object partition = ((Map<?, ?>) topics).get(number);
            for (Field field : partition.getClass().getFields()) {
                fields.add(text(field.getName()) + ":" + text(field.get(partition)));
            }
            subject = topic + "-" + number;
        } else if (name.contains("Broker") || name.contains("enceBroker")) {
            int id = (int) call(message, name.startsWith("Fence") || name.startsWith("Unfence") ? "id" : "brokerId");
            Optional<?> broker = delta.clusterDelta().changedBrokers().get(id);
            if (broker != null && broker.isPresent()) {
                for (String field : new String[] {"epoch", "incarnationId", "fenced", "inControlledShutdown"}) {
                    fields.add(text(field) + ":" + text(call(broker.get(), field)));
                }
            }
            subject = "broker-" + id;
        } else {
            return;
        }
        System.out.println(file + "\t" + offset + "\t" + subject + "\t{" + String.join(",", fields) + "}");
    }

    private static String text(Object value) {
        if (value == null) {
            return "null";
        }
        if (value.getClass().isArray()) {
            List<String> found = new ArrayList<>();
            for (int index = 0; index < Array.getLength(value); index++) {
                found.add(text(Array.get(value, index)));
            }
            return "[" + String.join(",", found) + "]";
        }
        return value instanceof Number || value instanceof Boolean ? value.toString() : "\"" + value + "\"";
    }

    private static Object call(Object object, String name) throws Exception {
        Method method = object.getClass().getMethod(name);
        method.setAccessible(true);
        return method.invoke(object);
    }
}
