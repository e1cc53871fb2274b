import com.fasterxml.jackson.databind.JsonNode;
import com.github.shyiko.mysql.binlog.BinaryLogClient;
import com.github.shyiko.mysql.binlog.event.*;
import com.github.shyiko.mysql.binlog.event.deserialization.EventDeserializer;
import com.github.shyiko.mysql.binlog.event.deserialization.EventDeserializer.CompatibilityMode;
import com.github.shyiko.mysql.binlog.network.ServerException;
import com.github.shyiko.mysql.binlog.network.SSLMode;
import java.io.IOException;
import java.io.Serializable;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** Follows a primary by GTID with mysql-binlog-connector-java; its keep-alive thread connects again. */
public class Adapter {
    private static final long HEARTBEAT_MS = 1000;
    private static final long KEEP_ALIVE_MS = 3000; // so long without a heartbeat is a lost connection; it looks as often
    private static final Logger LOGGER = Logger.getLogger("com.github.shyiko.mysql.binlog");

    private final BinaryLogClient client;
    private final Map<Long, TableMapEventData> tables = new HashMap<>();
    private final boolean tellsTables;
    private boolean isStandalone; // the group is one statement, with no COMMIT behind it

    Adapter(BinaryLogClient client, boolean tellsTables) {
        this.client = client;
        this.tellsTables = tellsTables;
    }

    public static void main(String[] arguments) throws Exception {
        JsonNode start = Lines.read(BinaryLogClient.class);
        BinaryLogClient client = new BinaryLogClient(start.get("host").asText(), start.get("port").asInt(),
                start.get("user").asText(), start.get("password").asText());
        client.setServerId(start.get("server_id").asLong());
        client.setSSLMode(start.get("tls").asBoolean() ? SSLMode.REQUIRED : SSLMode.DISABLED);
        JsonNode resume = start.get("resume");
        client.setGtidSet((resume.isNull() ? start.get("start") : resume.get("gtid")).asText());
        client.setUseSendAnnotateRowsEvent(true); // documented as what to set with MariaDB, to have the SQL beside rows
        client.setHeartbeatInterval(HEARTBEAT_MS);
        client.setKeepAliveInterval(KEEP_ALIVE_MS);
        EventDeserializer deserializer = new EventDeserializer();
        deserializer.setCompatibilityMode(CompatibilityMode.DATE_AND_TIME_AS_LONG_MICRO,
                CompatibilityMode.INVALID_DATE_AND_TIME_AS_MIN_VALUE, CompatibilityMode.CHAR_AND_BINARY_AS_BYTE_ARRAY);
        client.setEventDeserializer(deserializer);
        Adapter adapter = new Adapter(client, start.path("tables").asBoolean());
        int delayMs = start.get("delay_ms").asInt();
        client.registerEventListener(event -> {
            pause(delayMs);
            adapter.take(event);
        });
        client.registerLifecycleListener(new Told());
        LOGGER.addHandler(new Warnings());
        try {
            client.connect(); // returns when the first connection ends; the keep-alive thread goes on
        } catch (Exception error) {
            Lines.error("connect", error, true, false);
            Runtime.getRuntime().halt(1);
        }
    }

    private static void pause(int delayMs) {
        try {
            Thread.sleep(delayMs);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private void take(Event event) {
        EventData data = event.getData();
        switch (event.getHeader().getEventType()) {
            case MARIADB_GTID -> {
                isStandalone = (((MariadbGtidEventData) data).getFlags() & MariadbGtidEventData.FL_STANDALONE) != 0;
                Lines.print("begin", "gtid", data.toString());
            }
            case TABLE_MAP -> {
                TableMapEventData table = (TableMapEventData) data;
                tables.put(table.getTableId(), table);
                if (tellsTables) {
                    Lines.print("table", "table", name(table), "columns", Values.names(table),
                            "key", Values.key(table), "types", Values.types(table));
                }
            }
            case WRITE_ROWS, EXT_WRITE_ROWS -> {
                WriteRowsEventData rows = (WriteRowsEventData) data;
                for (Serializable[] row : rows.getRows()) {
                    change("insert", rows.getTableId(), rows.getIncludedColumns(), null, row);
                }
            }
            case DELETE_ROWS, EXT_DELETE_ROWS -> {
                DeleteRowsEventData rows = (DeleteRowsEventData) data;
                for (Serializable[] row : rows.getRows()) {
                    change("delete", rows.getTableId(), rows.getIncludedColumns(), row, null);
                }
            }
            case UPDATE_ROWS, EXT_UPDATE_ROWS -> {
                UpdateRowsEventData rows = (UpdateRowsEventData) data;
                for (Map.Entry<Serializable[], Serializable[]> row : rows.getRows()) {
                    TableMapEventData table = tables.get(rows.getTableId());
                    Lines.print("change", "table", name(table), "kind", "update",
                            "before", Values.image(table, rows.getIncludedColumnsBeforeUpdate(), row.getKey()),
                            "after", Values.image(table, rows.getIncludedColumns(), row.getValue()));
                }
            }
            case QUERY -> {
                String sql = ((QueryEventData) data).getSql();
                boolean isEnd = sql.equals("COMMIT") || sql.equals("ROLLBACK");
                if (!isEnd) {
                    Lines.print("statement", "sql", sql);
                }
                if (isEnd || isStandalone) {
                    commit();
                }
            }
            case XID, XA_PREPARE -> commit();
            case UNKNOWN -> Lines.print("unknown", "text", event.getHeader().toString());
            default -> {}
        }
    }

    private void change(String kind, long tableId, BitSet columns, Serializable[] before, Serializable[] after) {
        TableMapEventData table = tables.get(tableId);
        Lines.print("change", "table", name(table), "kind", kind,
                "before", before == null ? null : Values.image(table, columns, before),
                "after", after == null ? null : Values.image(table, columns, after));
    }

    private static String name(TableMapEventData table) {
        return table.getDatabase() + "." + table.getTable();
    }

    private void commit() {
        Lines.print("commit");
        Lines.print("position", "position", Map.of("gtid", client.getGtidSet(),
                "file", String.valueOf(client.getBinlogFilename()), "offset", client.getBinlogPosition()));
    }

    /** What the library tells those who listen. */
    private static final class Told implements BinaryLogClient.LifecycleListener {
        private boolean isFailing;

        @Override
        public void onConnect(BinaryLogClient client) {
            isFailing = false;
        }

        @Override
        public void onCommunicationFailure(BinaryLogClient client, Exception error) {
            isFailing = true;
            boolean isLost = error instanceof IOException && !(error instanceof ServerException);
            Lines.error("communication failure", error, false, isLost);
        }

        @Override
        public void onEventDeserializationFailure(BinaryLogClient client, Exception error) {
            isFailing = true;
            Lines.error("event deserialization failure", error, false, false);
        }

        @Override
        public void onDisconnect(BinaryLogClient client) {
            if (!isFailing) {
                Lines.error("disconnected", null, false, true);
            }
        }
    }

    /** What it only logs: that it could not connect again, above all. */
    private static final class Warnings extends Handler {
        @Override
        public void publish(LogRecord record) {
            if (record.getLevel().intValue() >= Level.WARNING.intValue()) {
                Throwable error = record.getThrown();
                Lines.error("log: " + record.getMessage(), error, false, error == null || error instanceof IOException);
            }
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    }
}
