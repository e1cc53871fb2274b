import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;

/**
 * Follows a primary with Debezium's MariaDB connector, and prints each record: destination, key and value as JSON;
 * "stored" when the offset behind those before is on the disk.
 *
 * Arguments: host, port, user, password, snapshot mode, a directory for offsets and schema history,
 * a text in a record behind which it stops, and more properties as name=value.
 */
public class Follow {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.setProperty("name", "judge");
        properties.setProperty("connector.class", "io.debezium.connector.mariadb.MariaDbConnector");
        properties.setProperty("topic.prefix", "judge");
        properties.setProperty("database.hostname", arguments[0]);
        properties.setProperty("database.port", arguments[1]);
        properties.setProperty("database.user", arguments[2]);
        properties.setProperty("database.password", arguments[3]);
        properties.setProperty("database.server.id", "7011");
        properties.setProperty("database.ssl.mode", "disable");
        properties.setProperty("snapshot.mode", arguments[4]);
        properties.setProperty("offset.storage", "org.apache.kafka.connect.storage.FileOffsetBackingStore");
        properties.setProperty("offset.storage.file.filename", arguments[5] + "/offsets");
        properties.setProperty("offset.flush.interval.ms", "0");
        properties.setProperty("schema.history.internal", "io.debezium.storage.file.history.FileSchemaHistory");
        properties.setProperty("schema.history.internal.file.filename", arguments[5] + "/schemas");
        properties.setProperty("include.schema.changes", "true");
        properties.setProperty("converter.schemas.enable", "false");
        properties.setProperty("errors.max.retries", "0");
        for (int number = 7; number < arguments.length; number++) {
            String[] parts = arguments[number].split("=", 2);
            properties.setProperty(parts[0], parts[1]);
        }
        CountDownLatch ended = new CountDownLatch(1);
        boolean[] failed = {false};
        boolean[] seen = {false};
        DebeziumEngine<ChangeEvent<String, String>> engine = DebeziumEngine.create(Json.class)
                .using(properties)
                .using((success, message, error) -> {
                    if (!success && !seen[0]) {
                        Throwable cause = error;
                        while (cause != null && cause.getCause() != null) {
                            cause = cause.getCause();
                        }
                        System.out.println("failed\t" + message + "\t" + cause);
                        failed[0] = true;
                    }
                    ended.countDown();
                })
                .notifying((records, committer) -> {
                    for (ChangeEvent<String, String> record : records) {
                        System.out.println(record.destination() + "\t" + record.key() + "\t" + record.value());
                        committer.markProcessed(record);
                        if (record.value() != null && record.value().contains(arguments[6])) {
                            seen[0] = true;
                        }
                    }
                    committer.markBatchFinished();
                    System.out.println("stored");
                    System.out.flush();
                    if (seen[0]) {
                        ended.countDown();
                    }
                })
                .build();
        Thread thread = new Thread(engine, "engine");
        thread.setDaemon(true);
        thread.start();
        ended.await();
        if (!failed[0]) {
            engine.close();
            System.out.println("end");
        }
        System.out.flush();
        System.exit(failed[0] ? 1 : 0);
    }
}
