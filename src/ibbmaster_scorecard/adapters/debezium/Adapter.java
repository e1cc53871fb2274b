import com.fasterxml.jackson.databind.JsonNode;
import io.debezium.connector.mariadb.MariaDbConnector;
import io.debezium.data.Bits;
import io.debezium.embedded.Connect;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.RecordChangeEvent;
import io.debezium.engine.format.ChangeEventFormat;
import io.debezium.time.Date;
import io.debezium.time.MicroTime;
import io.debezium.time.MicroTimestamp;
import io.debezium.time.Timestamp;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.time.LocalDate;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.source.SourceRecord;

/** Follows a primary with Debezium's MariaDB connector in its embedded engine, which keeps its position itself. */
public class Adapter {
    private static final String PREFIX = "scorecard";

    private final int delayMs;
    private final boolean tellsTables;

    Adapter(int delayMs, boolean tellsTables) {
        this.delayMs = delayMs;
        this.tellsTables = tellsTables;
    }

    public static void main(String[] arguments) throws Exception {
        JsonNode start = Lines.read(MariaDbConnector.class);
        Adapter adapter = new Adapter(start.get("delay_ms").asInt(), start.path("tables").asBoolean());
        DebeziumEngine.create(ChangeEventFormat.of(Connect.class))
                .using(properties(start))
                .using((isSuccess, message, error) -> {
                    Lines.error("the engine stopped", error, true, false);
                    Runtime.getRuntime().halt(1);
                })
                .notifying(adapter::take)
                .build()
                .run();
    }

    private static Properties properties(JsonNode start) {
        String directory = start.get("directory").asText();
        Properties properties = new Properties();
        properties.setProperty("name", PREFIX);
        properties.setProperty("connector.class", MariaDbConnector.class.getName());
        properties.setProperty("topic.prefix", PREFIX);
        properties.setProperty("database.hostname", start.get("host").asText());
        properties.setProperty("database.port", start.get("port").asText());
        properties.setProperty("database.user", start.get("user").asText());
        properties.setProperty("database.password", start.get("password").asText());
        properties.setProperty("database.server.id", start.get("server_id").asText());
        properties.setProperty("database.ssl.mode", start.get("tls").asBoolean() ? "trust" : "disable");
        properties.setProperty("snapshot.mode", "no_data");
        properties.setProperty("offset.storage", "org.apache.kafka.connect.storage.FileOffsetBackingStore");
        properties.setProperty("offset.storage.file.filename", directory + "/offsets");
        properties.setProperty("offset.flush.interval.ms", "0");
        properties.setProperty("schema.history.internal", "io.debezium.storage.file.history.FileSchemaHistory");
        properties.setProperty("schema.history.internal.file.filename", directory + "/schemas");
        properties.setProperty("connect.keep.alive.interval.ms", "3000"); // its heartbeat period is 0.8 of that
        properties.setProperty("provide.transaction.metadata", "true");
        if (start.path("tables").asBoolean()) { // types of the database beside those of Kafka
            properties.setProperty("column.propagate.source.type", ".*");
        }
        properties.setProperty("decimal.handling.mode", "string");
        properties.setProperty("bigint.unsigned.handling.mode", "precise");
        return properties;
    }

    private void take(
            List<RecordChangeEvent<SourceRecord>> records,
            DebeziumEngine.RecordCommitter<RecordChangeEvent<SourceRecord>> committer) throws InterruptedException {
        for (RecordChangeEvent<SourceRecord> event : records) {
            Thread.sleep(delayMs);
            SourceRecord record = event.record();
            if (record.value() instanceof Struct value) {
                if (tellsTables && value.schema().field("op") != null) {
                    printTable(record, value);
                }
                print(record.topic(), value);
            }
            committer.markProcessed(event);
        }
        committer.markBatchFinished();
        Map<String, ?> offset = records.get(records.size() - 1).record().sourceOffset();
        if (!offset.containsKey("snapshot")) { // with an offset inside of its snapshot it begins that again
            Lines.print("position", "position", offset);
        }
    }

    /** What the schemas of a record say of its table. */
    private static void printTable(SourceRecord record, Struct value) {
        List<Field> key = record.keySchema() == null ? List.of() : record.keySchema().fields();
        List<Field> fields = value.schema().field("after").schema().fields();
        Struct source = value.getStruct("source");
        Lines.print("table", "table", source.getString("db") + "." + source.getString("table"),
                "columns", fields.stream().map(Field::name).toList(), "key", key.stream().map(Field::name).toList(),
                "types", fields.stream().map(field -> type(field.schema().parameters())).toList());
    }

    private static String type(Map<String, String> source) {
        String type = source.get("__debezium.source.column.type");
        String length = source.get("__debezium.source.column.length");
        String scale = source.get("__debezium.source.column.scale");
        String[] words = type.split(" ", 2); // "INT UNSIGNED"
        String brackets = length == null ? "" : "(" + length + (scale == null ? "" : "," + scale) + ")";
        return words[0] + brackets + (words.length == 1 ? "" : " " + words[1]);
    }

    private static void print(String topic, Struct value) {
        if (topic.equals(PREFIX + ".transaction")) {
            boolean isBegin = value.getString("status").equals("BEGIN");
            Lines.print(isBegin ? "begin" : "commit", "gtid", value.getString("id"));
        } else if (value.schema().field("ddl") != null) {
            String snapshot = value.getStruct("source").getString("snapshot");
            if (snapshot == null || snapshot.equals("false")) { // else it was not in the log
                Lines.print("statement", "sql", value.getString("ddl"));
            }
        } else {
            Struct source = value.getStruct("source");
            String kind = switch (value.getString("op")) {
                case "c" -> "insert";
                case "u" -> "update";
                case "d" -> "delete";
                default -> value.getString("op");
            };
            Lines.print("change", "table", source.getString("db") + "." + source.getString("table"), "kind", kind,
                    "before", image(value.getStruct("before")), "after", image(value.getStruct("after")));
        }
    }

    private static Map<String, Object> image(Struct row) {
        if (row == null) {
            return null;
        }
        Map<String, Object> values = new LinkedHashMap<>();
        for (Field field : row.schema().fields()) {
            values.put(field.name(), value(field.schema().name(), row.get(field)));
        }
        return values;
    }

    /** A value as its schema says that it is meant. */
    private static Object value(String schema, Object value) {
        if (value instanceof ByteBuffer buffer) {
            byte[] bytes = new byte[buffer.remaining()];
            buffer.duplicate().get(bytes);
            return value(schema, bytes);
        }
        if (value instanceof byte[] bytes) {
            return Bits.LOGICAL_NAME.equals(schema) ? Lines.number(bytes) : Lines.text(bytes);
        }
        if (value instanceof BigDecimal number) {
            return number.toBigIntegerExact(); // BIGINT UNSIGNED
        }
        if (value instanceof Boolean isSet) {
            return isSet ? 1 : 0; // BIT(1)
        }
        if (value instanceof Struct point) {
            return Lines.text(point.getBytes("wkb"));
        }
        if (value instanceof Number number && schema != null) {
            return switch (schema) {
                case Date.SCHEMA_NAME -> LocalDate.ofEpochDay(number.longValue()).toString();
                case Timestamp.SCHEMA_NAME -> Lines.moment(number.longValue() * 1000);
                case MicroTimestamp.SCHEMA_NAME -> Lines.moment(number.longValue());
                case MicroTime.SCHEMA_NAME -> Lines.time(number.longValue());
                default -> number;
            };
        }
        return value;
    }
}
